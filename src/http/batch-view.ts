// Batches and items as the API shows them: plain JSON, times in ISO 8601.
import type { Changes } from "../batches/changes.ts";
import type { Batch, BatchItem } from "../job/batch.ts";
import type { ErrorGroup } from "../store/batches/errors.ts";
import type { ChangesView } from "./contracts/batch-changes.ts";
import type { BatchView, ErrorGroupView, ItemView } from "./contracts/batches.ts";
import { iso } from "./job-view.ts";
import type { Eyes } from "./eyes.ts";

export function toBatchView(batch: Batch, eyes: Eyes): BatchView {
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
    fields: eyes.see(batch.fields, batch.kind),
    completions: batch.completions,
    version: batch.version,
    createdAt: batch.createdAt.toISOString(),
    startedAt: iso(batch.startedAt),
    pausedAt: iso(batch.pausedAt),
    closedAt: iso(batch.closedAt),
    finishedAt: iso(batch.finishedAt),
  };
}

/** `kind`: of its batch. */
export function toItemView(item: BatchItem, eyes: Eyes, kind: string | undefined): ItemView {
  return {
    seq: item.seq,
    state: item.state,
    payload: eyes.see(item.payload ?? null, kind),
    attempt: item.attempt,
    bounces: item.bounces,
    error: item.error,
    result: eyes.see(item.result ?? null, kind),
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

export function toChangesView({ changes, batches, items, ...rest }: Changes, eyes: Eyes): ChangesView {
  const kinds = new Map(batches.map(({ id, kind }) => [id, kind]));
  const shown = Object.entries(items).map(
    ([id, some]) => [id, some.map((item) => toItemView(item, eyes, kinds.get(id)))] as const,
  );
  return {
    ...rest,
    changes: changes.map((change) => ({ ...change, at: iso(change.at) })),
    batches: batches.map((batch) => toBatchView(batch, eyes)),
    items: Object.fromEntries(shown),
  };
}
