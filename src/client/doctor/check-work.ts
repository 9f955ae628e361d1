// The work: does somebody do what is due, do jobs end their process, are some dead, do recipients fetch, is the house kept.
import type { Inboxes } from "../../inbox/inbox.ts";
import type { Chore } from "../../job/define-chore.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import { kindWarnings } from "../../job/warnings.ts";
import { formatDuration } from "../../shared/duration.ts";
import { readSuspects, readWaitingKinds } from "../../store/doctor/work-facts.ts";
import { listWorkers } from "../../store/workers/list.ts";
import { choreStates } from "../../store/stats/gauges.ts";
import { databaseNow } from "../../store/stats/database-clock.ts";
import type { Store } from "../../store/sql.ts";
import type { Queues } from "../queues.ts";
import { count, type Finding, ok, problem, warning } from "./finding.ts";

/** A worker says every ten seconds that it is there. */
const SILENT_MS = 60_000;
/** A poll or two away from being taken. */
const DUE_MS = 10_000;
const STALLED_MS = 300_000;

export async function checkWorkers(store: Store): Promise<Finding[]> {
  const [{ workers, orphans }, waiting] = await Promise.all([listWorkers(store), readWaitingKinds(store)]);
  const alive = workers.filter(({ silentMs }) => silentMs < SILENT_MS);
  const known = new Set(alive.flatMap(({ kinds }) => kinds));
  const found: Finding[] = [];
  for (const { kind, queue, waitsForMs } of waiting) {
    const since = `a job of ${kind} (queue ${queue}) has been due for ${formatDuration(Math.round(waitsForMs))}`;
    if (waitsForMs > DUE_MS && !known.has(kind)) {
      const fix = `Start a worker that knows it: list ${kind} in holdfast.config.ts, and run holdfast worker.`;
      found.push(problem("workers", `No worker runs ${kind}, and ${since}.`, fix));
    } else if (waitsForMs > STALLED_MS) {
      const fix = "See what the workers are at: holdfast workers. Raise --concurrency, or start more of them.";
      found.push(warning("workers", `Though workers run ${kind}, ${since}.`, fix));
    }
  }
  const overdue = orphans.filter(({ expiresInMs }) => expiresInMs < -SILENT_MS);
  if (overdue.length > 0) {
    const message = `Nobody recovers ${count(overdue.length, "lease")} of workers that died.`;
    found.push(problem("workers", message, "Start a worker: its janitor recovers them."));
  }
  if (found.length > 0) return found;
  if (alive.length > 0) return [ok("workers", `${count(alive.length, "worker")}, ${count(known.size, "kind")}`)];
  return [
    warning("workers", "There is none; nothing waits for one.", "Start one: holdfast worker, or holdfast start."),
  ];
}

export async function checkCrashes(store: Store): Promise<Finding[]> {
  const suspects = await readSuspects(store);
  if (suspects.length === 0) return [ok("crashes", "no job is suspected of ending its process")];
  return suspects.map(({ kind, jobs, crashes }) => {
    const alone = crashes > 0 ? `; one of them ran alone then, ${count(crashes, "time")}` : "";
    const message = `${count(jobs, "job")} of ${kind} ran in a process that died${alone}.`;
    const fix = "Look at their lastError, and at the worker's memory limit. Three crashes alone make a job dead.";
    return warning("crashes", message, fix);
  });
}

export async function checkQueues(queues: Queues): Promise<Finding[]> {
  const all = await queues.list();
  const dead = all.flatMap((queue) => {
    if (queue.dead === 0) return [];
    const fix = `holdfast jobs list --state dead --queue ${queue.queue}; then holdfast jobs retry, or discard`;
    return [warning("dead", `${count(queue.dead, "dead job")} in queue ${queue.queue}.`, fix)];
  });
  const paused = all.flatMap(({ queue, pausedAt, pausedBy }) => {
    if (pausedAt === null) return [];
    const message = `Queue ${queue} is paused since ${pausedAt.toISOString()}, by ${pausedBy ?? "somebody"}.`;
    return [warning("paused", message, `holdfast queues resume ${queue}`)];
  });
  return [...(dead.length > 0 ? dead : [ok("dead", "no dead jobs")]), ...paused];
}

/** Chores that fail, and chores that nobody runs. Those of every process are known to that process only. */
export async function checkJanitor(store: Store, chores: readonly Chore[]): Promise<Finding[]> {
  const [states, now] = await Promise.all([choreStates(store), databaseNow(store)]);
  const found: Finding[] = [];
  const late: string[] = [];
  for (const { name, everyMs, everywhere } of chores) {
    const { failures = 0, error = null, succeededAt = null } = states.find(({ chore }) => chore === name) ?? {};
    if (failures > 0) {
      const message = `The chore ${name} failed ${count(failures, "time")} in a row: ${error ?? "no reason"}`;
      found.push(problem("janitor", message, `Mend that; then holdfast janitor run ${name}`));
    } else if (!everywhere && now.getTime() - (succeededAt?.getTime() ?? 0) > 3 * everyMs + 120_000) {
      const ago = succeededAt && formatDuration(now.getTime() - succeededAt.getTime());
      late.push(ago === null ? `${name} never ran` : `${name} last succeeded ${ago} ago`);
    }
  }
  if (late.length > 0) {
    const more = late.length > 3 ? ` and ${late.length - 3} more` : "";
    const fix = "A worker does it while it runs, or hf.janitor.start() in any process. Once: holdfast janitor run";
    found.push(warning("janitor", `Nobody keeps the house: ${late.slice(0, 3).join(", ")}${more}.`, fix));
  }
  return found.length > 0 ? found : [ok("janitor", `${count(chores.length, "chore")}, on time`)];
}

export async function checkInboxes(inboxes: Inboxes): Promise<Finding[]> {
  const { inboxes: some } = await inboxes.list({ limit: 100 });
  const found = some.flatMap(({ recipient, stuck }) =>
    stuck ? [warning("inboxes", `${recipient}: ${stuck.message}`, `holdfast inbox list ${recipient}`)] : [],
  );
  if (found.length > 0) return found;
  return [ok("inboxes", some.length === 0 ? "none" : `${count(some.length, "recipient")}, none stuck`)];
}

export function checkKinds(kinds: readonly AnyJobKind[]): Finding[] {
  const found = kindWarnings(kinds).map(({ message }) => {
    // Its last sentence says what to set.
    const at = message.indexOf(" Set ");
    return warning("kinds", message.slice(0, at), message.slice(at + 1));
  });
  if (found.length > 0) return found;
  return [ok("kinds", kinds.length === 0 ? "none are known here" : `${count(kinds.length, "kind")}, settings fit`)];
}
