// Gets outcomes written, whatever the database does meanwhile. Runs that succeed share statements; everything else
// shares others, so that one locked row never holds up the rest.
//
// "No answer" is answered by asking again: each statement is guarded by the token and can be sent twice. The promise
// of `settle` resolves with what really happened to the run; it is never an exception.
import { isConnectionTrouble, isLockTimeout, isRetryable } from "../db/retryable.ts";
import { makeCoalescer } from "../shared/coalesce.ts";
import { jitter, sleep } from "../shared/sleep.ts";
import { toStorableJson } from "../job/storable.ts";
import { type Outcome, recordError } from "../job/outcome.ts";
import { isMissingPartition, makePartitions } from "../store/janitor/partitions.ts";
import {
  type EndedRun,
  settleClaim,
  settleDone,
  settleRuns,
  type Verdict,
  whyNotSettled,
} from "../store/jobs/settle.ts";
import type { LeaseId } from "../store/jobs/beat.ts";
import type { Store } from "../store/sql.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Run } from "./run.ts";

export type Settled =
  | { verdict: Verdict; runAt: Date | undefined }
  | { verdict: "lost"; runAt: undefined }
  /** Shutdown gave up waiting for the database: the lease will expire. */
  | { verdict: "abandoned"; runAt: undefined };

export interface Settler {
  settle(run: Run, outcome: Outcome): Promise<Settled>;
  /** From now on an unreachable database is given up on after `ms`. */
  giveUpAfter(ms: number): void;
  idle(): Promise<void>;
}

export interface SettlerInput {
  store: Store;
  keeper: LeaseKeeper;
  onTrouble(error: unknown): void;
}

interface Entry extends EndedRun {
  run: Run;
}

const MAX_ROWS = 1_000;
const MAX_BYTES = 4 * 1_048_576;

export function makeSettler({ store, keeper, onTrouble }: SettlerInput): Settler {
  let giveUpAt = Infinity;

  /** Tries until it works: with the database away, a finished run waits here, and its lease decides its fate. */
  async function persist<T>(work: () => Promise<T>): Promise<T | undefined> {
    let refusals = 0;
    for (let pause = 25; ; pause = Math.min(pause * 2, 2_000)) {
      try {
        return await work();
      } catch (error) {
        if (isLockTimeout(error)) return undefined;
        onTrouble(error);
        if (isMissingPartition(error)) await makePartitions(store).catch(onTrouble);
        // What the database refuses again and again it will always refuse.
        if (!isConnectionTrouble(error) && !isRetryable(error) && ++refusals >= 5) throw error;
        if (Date.now() > giveUpAt) throw error;
        await sleep(jitter(pause));
      }
    }
  }

  async function runDone(entries: Entry[]): Promise<(Settled | Promise<Settled>)[]> {
    const finished = keeper.onlyOf(entries.map((entry) => entry.run));
    const { claims, mixed } = byClaim(entries);
    const parts = claims.map(async ([first, ...rest]) => {
      const part = [first, ...rest];
      const lease = finished.find(({ token, leaseMs }) => token === first.token && leaseMs === first.run.leaseMs);
      const ids = part.map((entry) => entry.id);
      const done = new Set(await settleClaim(store, first.token, ids, first.keepMs, lease?.leaseMs ?? null));
      conclude(part, done, lease ? [lease] : []);
    });
    if (mixed.length > 0) {
      const leases = finished.filter((lease) => mixed.some((entry) => entry.token === lease.token));
      parts.push(settleDone(store, mixed, leases).then((done) => conclude(mixed, done, leases)));
    }
    const results = new Map<Entry, Settled>();
    function conclude(part: readonly Entry[], done: ReadonlySet<string>, leases: readonly LeaseId[]): void {
      const gone = new Set(done.size === part.length ? leases.map((lease) => lease.token) : []);
      for (const entry of part) {
        if (!done.has(entry.id)) continue;
        keeper.drop(entry.run, gone.has(entry.token) ? "row-gone" : "settled");
        results.set(entry, DONE);
      }
    }
    for (const part of await Promise.allSettled(parts)) {
      if (part.status === "fulfilled") continue;
      // Unknown, or a lock in the way: the careful statement sorts it out, run by run.
      const error: unknown = part.reason;
      if (!isLockTimeout(error)) onTrouble(error);
      if (isMissingPartition(error)) await makePartitions(store).catch(onTrouble);
    }
    return entries.map((entry) => results.get(entry) ?? carefully.add(entry));
  }

  /** One pass over these runs; those whose row somebody has locked are missing from the answer. */
  async function pass(entries: readonly Entry[]): Promise<Map<string, Settled>> {
    const settled = new Map<string, Settled>();
    for (const row of (await persist(() => settleRuns(store, entries))) ?? []) {
      settled.set(row.id, { verdict: row.verdict, runAt: row.runAt });
    }
    const open = entries.filter((entry) => !settled.has(entry.id));
    if (open.length === 0) return settled;
    const reasons = await persist(() => whyNotSettled(store, open));
    for (const entry of open) {
      const why = reasons?.get(entry.id);
      // Settled by an earlier request whose reply was lost.
      if (why === "already") settled.set(entry.id, { verdict: entry.outcome, runAt: undefined });
      if (why === "lost") settled.set(entry.id, LOST);
    }
    return settled;
  }

  function finish(entry: Entry, settled: Settled): Settled {
    const isOver = settled.verdict !== "lost" && settled.verdict !== "abandoned";
    keeper.drop(entry.run, isOver ? "settled" : "left-behind");
    return settled;
  }

  /** For a run whose row is locked, by its own open transaction perhaps: nobody else waits with it. */
  async function alone(entry: Entry): Promise<Settled> {
    for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
      await sleep(pause);
      try {
        const settled = (await pass([entry])).get(entry.id);
        if (settled) return finish(entry, settled);
        if (Date.now() > giveUpAt) return finish(entry, ABANDONED);
      } catch {
        return finish(entry, ABANDONED);
      }
    }
  }

  async function runCarefully(entries: Entry[]): Promise<(Settled | Promise<Settled>)[]> {
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
      return result ? finish(entry, result) : alone(entry);
    });
  }

  const quickly = makeCoalescer<Entry, Settled>({ run: runDone, maxEntries: MAX_ROWS, maxWeight: MAX_BYTES, weigh });
  const carefully = makeCoalescer<Entry, Settled>({
    run: runCarefully,
    maxEntries: 200,
    maxWeight: MAX_BYTES,
    weigh,
    lanes: 4,
  });

  return {
    settle(run, outcome) {
      const entry = toEntry(run, outcome);
      const isPlain = entry.outcome === "done" && entry.error === undefined && entry.group === null;
      return (isPlain ? quickly : carefully).add(entry);
    },
    giveUpAfter(ms) {
      giveUpAt = Date.now() + ms;
    },
    async idle() {
      await quickly.idle();
      await carefully.idle();
    },
  };
}

const DONE: Settled = Object.freeze({ verdict: "done", runAt: undefined });
const LOST: Settled = Object.freeze({ verdict: "lost", runAt: undefined });
const ABANDONED: Settled = Object.freeze({ verdict: "abandoned", runAt: undefined });

/** Enough runs of one claim to be worth a statement of their own; fewer share one, pair by pair. */
const WORTH_A_STATEMENT = 32;

function byClaim(entries: readonly Entry[]): { claims: [Entry, ...Entry[]][]; mixed: Entry[] } {
  const groups = new Map<string, [Entry, ...Entry[]]>();
  const mixed: Entry[] = [];
  for (const entry of entries) {
    if (entry.result !== undefined) {
      mixed.push(entry);
      continue;
    }
    const name = `${entry.token} ${entry.run.leaseMs} ${entry.keepMs}`;
    const group = groups.get(name);
    if (group) group.push(entry);
    else groups.set(name, [entry]);
  }
  const claims: [Entry, ...Entry[]][] = [];
  for (const group of groups.values()) {
    if (group.length >= WORTH_A_STATEMENT) claims.push(group);
    else mixed.push(...group);
  }
  return { claims, mixed };
}

const weigh = (entry: Entry): number => 200 + (entry.result?.length ?? 0);

function toEntry(run: Run, outcome: Outcome): Entry {
  const base = {
    run,
    id: run.job.id,
    token: run.token,
    keepMs: run.kind.keepDoneMs,
    group: run.job.group_key,
    delayMs: 0,
  };
  switch (outcome.type) {
    case "done":
      return resultEntry(base, outcome.result, run);
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

/** A result that cannot be kept is the handler's mistake, and the same on every try. */
function resultEntry(base: Omit<Entry, "outcome">, result: unknown, run: Run): Entry {
  if (result === undefined) return { ...base, outcome: "done" };
  try {
    return { ...base, outcome: "done", result: toStorableJson(`The result of ${run.job.kind}`, result) };
  } catch (error) {
    return { ...base, outcome: "dead", error: recordError(error, "fatal") };
  }
}
