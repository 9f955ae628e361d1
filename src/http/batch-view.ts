// Batches and items as the API shows them: plain JSON, times in ISO 8601. Whoever may not act does not see what looks like
// a secret.
import type { Changes } from "../batches/changes.ts";
import type { Batch, BatchItem } from "../job/batch.ts";
import { hasRole, type Role } from "../shared/roles.ts";
import type { ErrorGroup } from "../store/batches/errors.ts";
import type { ChangesView } from "./contracts/batch-changes.ts";
import type { BatchView, ErrorGroupView, ItemView } from "./contracts/batches.ts";
import { iso } from "./job-view.ts";
import { redact } from "./redact.ts";

const shownTo = (role: Role): (<T>(value: T) => T) =>
  // A copy of the same shape.
  hasRole(role, "operator") ? (value) => value : (value) => redact(value) as typeof value;

export function toBatchView(batch: Batch, role: Role): BatchView {
  return {
    id: batch.id,
    kind: batch.kind,
    queue: batch.queue,
    owner: batch.owner,
    key: batch.key,
    state: batch.state,
    reason: batch.reason,
    total: batch.total,
    declared: batch.declared,
    added: batch.added,
    closed: batch.closed,
    counts: batch.counts,
    countedAs: batch.countedAs,
    warnings: batch.warnings,
    ended: batch.ended,
    rate: batch.rate,
    etaMs: batch.etaMs,
    concurrency: batch.concurrency,
    attempts: batch.attempts,
    priority: batch.priority,
    outcomes: batch.outcomes,
    fields: shownTo(role)(batch.fields),
    completions: batch.completions,
    version: batch.version,
    createdAt: batch.createdAt.toISOString(),
    startedAt: iso(batch.startedAt),
    pausedAt: iso(batch.pausedAt),
    closedAt: iso(batch.closedAt),
    finishedAt: iso(batch.finishedAt),
  };
}

export function toItemView(item: BatchItem, role: Role): ItemView {
  const shown = shownTo(role);
  return {
    seq: item.seq,
    state: item.state,
    payload: shown(item.payload ?? null),
    attempt: item.attempt,
    bounces: item.bounces,
    error: item.error,
    result: shown(item.result ?? null),
    jobId: item.jobId,
    parcelId: item.parcelId,
    handedUntil: iso(item.handedUntil),
    runAt: iso(item.runAt),
    startedAt: iso(item.startedAt),
    endedAt: iso(item.endedAt),
  };
}

export function toErrorGroupView(group: ErrorGroup): ErrorGroupView {
  return { ...group, firstAt: group.firstAt.toISOString(), lastAt: group.lastAt.toISOString() };
}

export function toChangesView({ changes, batches, items, ...rest }: Changes, role: Role): ChangesView {
  const shown = Object.entries(items).map(([id, some]) => [id, some.map((item) => toItemView(item, role))] as const);
  return {
    ...rest,
    changes: changes.map((change) => ({ ...change, at: iso(change.at) })),
    batches: batches.map((batch) => toBatchView(batch, role)),
    items: Object.fromEntries(shown),
  };
}
