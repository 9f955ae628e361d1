// Gets outcomes written, whatever the database does meanwhile. Runs that succeed share statements; everything else
// shares others, so that one locked row never holds up the rest.
//
// "No answer" is answered by asking again: each statement is guarded by the token and can be sent twice. What really
// happened to a run is told by `onSettled`, once per run; it is never an exception.
import { AsyncLocalStorage } from "node:async_hooks";
import { isLockTimeout } from "../db/retryable.ts";
import type { Outcome } from "../job/outcome.ts";
import { makeCoalescer } from "../shared/coalesce.ts";
import { sleep } from "../shared/sleep.ts";
import { isMissingPartition, makePartitions } from "../store/janitor/partitions.ts";
import { type KeepEnded, keepEndedIn } from "../store/jobs/keep-ended.ts";
import {
  type DoneRun,
  type EndedRun,
  type SettledRun,
  settleClaim,
  settleLightClaim,
  settleDone,
  type Verdict,
  type WhyNot,
  whyNotSettled,
} from "../store/jobs/settle.ts";
import type { Advanced } from "../store/batches/advance.ts";
import { settleAnyRuns } from "../store/batches/settle-any.ts";
import type { Store } from "../store/sql.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { markRuns } from "./light.ts";
import { keepable, makePersistence } from "./persist.ts";
import { makeItemSettler } from "./settle-items.ts";
import { type HeldLease, isItem, longestPauseMs, type Run } from "./run.ts";

export interface Settled {
  /** abandoned: shutdown gave up on the database, or the database refuses the outcome; the lease will expire. */
  verdict: Verdict | "handed" | "lost" | "abandoned";
  runAt?: Date;
  heir?: string | null;
  /** What an item is counted as, if it ended. */
  label?: string | null;
}

export interface Settler {
  settle(run: Run, outcome: Outcome): void;
  /** From now on an unreachable database is given up on after `ms`. */
  giveUpAfter(ms: number): void;
  idle(): Promise<void>;
}

export interface SettlerInput {
  store: Store;
  keeper: LeaseKeeper;
  /** How long what ends cancelled stays. */
  keepEnded: KeepEnded;
  onSettled(run: Run, outcome: Outcome, settled: Settled): void;
  /** An item's batch moved on. */
  onAdvanced(batchId: string, advanced: Advanced): void;
  onTrouble(error: unknown): void;
}

interface Entry extends EndedRun {
  run: Run;
}

const MAX_ROWS = 1_000;
/** Statements in flight: while one waits for the disk, the next can run. */
const LANES = 2;
const MAX_BYTES = 4 * 1_048_576;
/** Enough runs of one claim to be worth a statement of their own; fewer share one, pair by pair. */
const WORTH_A_STATEMENT = 32;

const DONE: Settled = Object.freeze({ verdict: "done" });
const LOST: Settled = Object.freeze({ verdict: "lost" });
const ABANDONED: Settled = Object.freeze({ verdict: "abandoned" });

export function makeSettler({ store, keeper, keepEnded, onSettled, onAdvanced, onTrouble }: SettlerInput): Settler {
  const { persist, giveUpAfter, isGivenUp } = makePersistence(store, onTrouble);
  // Not from the context of the handler that happened to end first.
  const outside = AsyncLocalStorage.snapshot();
  let quick: Run[] = [];
  let flushing = 0;
  let isScheduled = false;
  let onQuiet: (() => void) | undefined;

  const items = makeItemSettler({
    store,
    keeper,
    onSettled: (run, settled) => onSettled(run, run.outcome!, settled),
    onAdvanced,
    onTrouble,
  });

  // ---- the hot path: success, no group

  function pump(): void {
    if (flushing === LANES || isScheduled) return;
    if (quick.length === 0) return void (flushing === 0 && onQuiet?.());
    isScheduled = true;
    // Handlers that end in the same turn of the event loop share the statement.
    outside(setImmediate, () => {
      isScheduled = false;
      flushing += 1;
      void settleQuickly(takeBatch()).then(() => {
        flushing -= 1;
        pump();
      });
      pump();
    });
  }

  function takeBatch(): Run[] {
    let bytes = 0;
    let count = 0;
    while (count < quick.length && count < MAX_ROWS && bytes < MAX_BYTES) bytes += quick[count++]!.result?.length ?? 0;
    const batch = count === quick.length ? quick : quick.slice(0, count);
    quick = count === quick.length ? [] : quick.slice(count);
    return batch;
  }

  async function settleQuickly(batch: readonly Run[]): Promise<void> {
    const { claims, mixed } = byClaim(batch);
    // A statement may end a lease only if all of its runs are in that statement: another one can still fail.
    const parts = claims.map((runs) => settleOneClaim(runs, keeper.onlyOf(runs)));
    if (mixed.length > 0) parts.push(settleMixed(mixed, keeper.onlyOf(mixed)));
    await Promise.all(parts);
  }

  async function settleOneClaim(runs: readonly Run[], finished: ReadonlySet<HeldLease>): Promise<void> {
    const { token, leaseMs, kind, lease } = runs[0]!;
    const isLast = lease !== undefined && finished.has(lease);
    const isDone = await tried(() => {
      if (isLast && lease.isLight && lease.runs.length === runs.length) {
        return settleLightClaim(store, lease, runs.length, kind.keepDoneMs);
      }
      const ids = runs.map((run) => run.job.id);
      return settleClaim(store, { token, leaseMs }, ids, kind.keepDoneMs, isLast);
    });
    for (const run of runs) {
      if (isDone) concludeDone(run, isLast);
      else settleCarefully(run);
    }
  }

  async function settleMixed(runs: readonly Run[], finished: ReadonlySet<HeldLease>): Promise<void> {
    const leases = [...finished].filter((lease) => runs.some((run) => run.lease === lease));
    const settling = async (): Promise<Set<string>> => {
      await markRuns(store, runs);
      return await settleDone(store, runs.map(toDoneRun), leases);
    };
    const done = (await tried(settling)) ?? new Set<string>();
    const areGone = done.size === runs.length;
    for (const run of runs) {
      if (done.has(run.job.id)) concludeDone(run, areGone && run.lease !== undefined && leases.includes(run.lease));
      else settleCarefully(run);
    }
  }

  /** Undefined: unknown, or a lock in the way. The careful statement sorts it out, run by run. */
  async function tried<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error)) onTrouble(error);
      if (isMissingPartition(error)) await makePartitions(store).catch(onTrouble);
      return undefined;
    }
  }

  function concludeDone(run: Run, isRowGone: boolean): void {
    keeper.drop(run, isRowGone ? "row-gone" : "settled");
    onSettled(run, run.outcome!, DONE);
  }

  // ---- everything else

  function settleCarefully(run: Run): void {
    // The coalescer's run never rejects.
    void careful.add(toEntry(run, keepEnded));
  }

  const careful = makeCoalescer<Entry, void>({
    maxEntries: 200,
    maxWeight: MAX_BYTES,
    weigh: (entry) => 200 + (entry.result?.length ?? 0),
    lanes: 4,
    async run(entries) {
      let settled: Map<string, Settled>;
      try {
        settled = await pass(entries);
      } catch {
        // One row the database refuses must not take the others with it.
        if (entries.length > 1) return entries.map(alone);
        settled = new Map(entries.map((entry) => [entry.id, ABANDONED]));
      }
      return entries.map((entry) => {
        const result = settled.get(entry.id);
        return result ? conclude(entry, result) : alone(entry);
      });
    },
  });

  /** One pass over these runs; those whose row somebody has locked are missing from the answer. */
  async function pass(entries: readonly Entry[]): Promise<Map<string, Settled>> {
    const settled = new Map<string, Settled>();
    const settling = async (): Promise<SettledRun[]> => {
      await markRuns(
        store,
        entries.map((entry) => entry.run),
      );
      return await settleAnyRuns(store, entries);
    };
    const pauseMs = longestPauseMs(entries.map((entry) => entry.run));
    for (const row of (await persist(settling, pauseMs)) ?? []) {
      settled.set(row.id, { verdict: row.verdict, runAt: row.runAt, heir: row.heir });
    }
    const open = entries.filter((entry) => !settled.has(entry.id));
    if (open.length === 0) return settled;
    const reasons = await persist(() => whyNotSettled(store, open), pauseMs);
    for (const entry of open) {
      const why = reasons?.get(entry.id) ?? "locked";
      if (why === "locked") continue;
      settled.set(entry.id, whatBecameOf(entry, why));
    }
    return settled;
  }

  /** For a run whose row is locked, by its own open transaction perhaps: nobody else waits with it. */
  async function alone(entry: Entry): Promise<void> {
    for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
      await sleep(pause);
      try {
        const settled = (await pass([entry])).get(entry.id);
        if (settled) return conclude(entry, settled);
        if (isGivenUp()) return conclude(entry, ABANDONED);
      } catch {
        return conclude(entry, ABANDONED);
      }
    }
  }

  function conclude({ run }: Entry, settled: Settled): void {
    const isOver = settled.verdict !== "lost" && settled.verdict !== "abandoned";
    keeper.drop(run, isOver ? "settled" : "left-behind");
    onSettled(run, run.outcome!, settled);
  }

  return {
    settle(run, outcome) {
      if (isItem(run)) {
        run.outcome = outcome;
        return items.settle(run);
      }
      // Nothing is left to write, and it is told before whatever comes next of the job: asking could take longer than that.
      if (run.hasCompleted && run.completedAs) {
        run.outcome = outcome;
        keeper.drop(run, "settled");
        return onSettled(run, outcome, { verdict: run.completedAs, heir: run.heir });
      }
      const result = outcome.type === "done" ? outcome.result : undefined;
      run.outcome = keepable(run, outcome, result, `The result of ${run.job.kind}`);
      if (run.outcome.type !== "done" || run.job.group_key !== null) return settleCarefully(run);
      quick.push(run);
      pump();
    },
    giveUpAfter(ms) {
      giveUpAfter(ms);
      items.giveUpAfter(ms);
    },
    async idle() {
      await items.idle();
      if (flushing > 0 || quick.length > 0) await new Promise<void>((resolve) => (onQuiet = resolve));
      await careful.idle();
    },
  };
}

function byClaim(runs: readonly Run[]): { claims: Run[][]; mixed: Run[] } {
  const groups = new Map<HeldLease | undefined, Map<number | null, Run[]>>();
  const mixed: Run[] = [];
  for (const run of runs) {
    if (run.result !== undefined || run.lease === undefined) {
      mixed.push(run);
      continue;
    }
    let byKeep = groups.get(run.lease);
    if (!byKeep) groups.set(run.lease, (byKeep = new Map()));
    const same = byKeep.get(run.kind.keepDoneMs);
    if (same) same.push(run);
    else byKeep.set(run.kind.keepDoneMs, [run]);
  }
  const claims: Run[][] = [];
  // One that is light would have to be marked before it could share: for a few that is one statement more.
  const isFew = groups.size <= LANES;
  for (const [lease, byKeep] of groups) {
    for (const same of byKeep.values()) {
      if (same.length >= WORTH_A_STATEMENT || (isFew && lease!.isLight)) claims.push(same);
      else mixed.push(...same);
    }
  }
  return { claims, mixed };
}

/** Not by this request: by one of ours whose reply was lost, by the handler's own transaction, or by somebody else. */
function whatBecameOf({ run, outcome }: Entry, why: Exclude<WhyNot, "locked">): Settled {
  if (why !== "lost" && why !== "back") return { verdict: why, heir: run.heir };
  // After its completion it may have come back, and be claimed again: that is no lost lease.
  if (run.completedAs) return { verdict: run.completedAs, heir: run.heir };
  if (why === "lost") return LOST;
  return { verdict: outcome === "done" ? "again" : outcome };
}

function toDoneRun(run: Run): DoneRun {
  return { id: run.job.id, token: run.token, result: run.result, keepMs: run.kind.keepDoneMs };
}

function toEntry(run: Run, keepEnded: KeepEnded): Entry {
  const outcome = run.outcome!;
  const keepEndedMs = keepEndedIn(keepEnded, run.job.queue);
  const base = { run, ...toDoneRun(run), keepEndedMs, group: run.job.group_key, delayMs: 0 };
  switch (outcome.type) {
    case "done":
      return { ...base, outcome: "done" };
    case "gone":
      return { ...base, outcome: "done", error: outcome.error };
    case "retry": {
      const delayMs = outcome.delayMs ?? run.kind.retryPolicy.delayMs(run.job.attempt);
      return { ...base, outcome: "retry", error: outcome.error, delayMs };
    }
    case "dead":
      return { ...base, outcome: "dead", error: outcome.error };
    case "snooze":
      return { ...base, outcome: "snooze", delayMs: outcome.delayMs };
    case "release":
      return { ...base, outcome: "release" };
    case "cancelled":
      return { ...base, outcome: "cancelled", error: outcome.error };
  }
}
