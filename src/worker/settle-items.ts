// Gets the outcomes of items written: many of one batch in a statement, one statement in flight for a batch (its lock lets
// no second one in), a few batches at a time. Otherwise like worker/settle.ts: no answer is answered by asking again.
import { AsyncLocalStorage } from "node:async_hooks";
import { fingerprintOf } from "../job/fingerprint.ts";
import { type ItemJobPayload, ItemResult } from "../job/item.ts";
import type { Outcome } from "../job/outcome.ts";
import { jitter, sleep } from "../shared/sleep.ts";
import type { Advanced } from "../store/batches/advance.ts";
import { type ItemRun, type ItemVerdict, settleItems, whyItemsNotSettled } from "../store/batches/settle.ts";
import type { Store } from "../store/sql.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { markRuns } from "./light.ts";
import { keepable, makePersistence } from "./persist.ts";
import { longestPauseMs, type Run } from "./run.ts";

export interface SettledRunOfItem {
  verdict: ItemVerdict | "lost" | "abandoned";
  runAt?: Date;
  /** What the item is counted as, if it ended. */
  label?: string | null;
}

export interface ItemSettler {
  settle(run: Run): void;
  giveUpAfter(ms: number): void;
  idle(): Promise<void>;
}

export interface ItemSettlerInput {
  store: Store;
  keeper: LeaseKeeper;
  onSettled(run: Run, settled: SettledRunOfItem): void;
  /** A batch moved on: items were given slots, or it ended. */
  onAdvanced(batchId: string, advanced: Advanced): void;
  onTrouble(error: unknown): void;
}

const MAX_ROWS = 1_000;
const MAX_BYTES = 4 * 1_048_576;
/** Batches whose items are being settled at once. */
const LANES = 4;

const refOf = (run: Run): ItemJobPayload => run.job.payload as ItemJobPayload;

export function makeItemSettler(input: ItemSettlerInput): ItemSettler {
  const { store, keeper, onSettled, onAdvanced, onTrouble } = input;
  const outside = AsyncLocalStorage.snapshot();
  const waiting = new Map<string, Run[]>();
  const active = new Set<string>();
  const { persist, giveUpAfter, isGivenUp } = makePersistence(store, onTrouble);
  let isScheduled = false;
  const onQuiet: (() => void)[] = [];
  /** Runs that wait for a lock by themselves. */
  let solo = 0;

  function pump(): void {
    if (isScheduled) return;
    isScheduled = true;
    // Handlers that end in the same turn of the event loop share the statement.
    outside(setImmediate, () => {
      isScheduled = false;
      for (const [batchId, runs] of waiting) {
        if (active.size >= LANES) return;
        if (active.has(batchId)) continue;
        const part = takePart(runs);
        if (part.length === runs.length) waiting.delete(batchId);
        else waiting.set(batchId, runs.slice(part.length));
        active.add(batchId);
        void settlePart(batchId, part).finally(() => {
          active.delete(batchId);
          if (waiting.size > 0) pump();
          else quiet();
        });
      }
    });
  }

  function takePart(runs: readonly Run[]): Run[] {
    let bytes = 0;
    let count = 0;
    while (count < runs.length && count < MAX_ROWS && bytes < MAX_BYTES) bytes += runs[count++]!.result?.length ?? 200;
    return runs.slice(0, count);
  }

  async function settlePart(batchId: string, runs: Run[]): Promise<void> {
    let open = await pass(batchId, runs);
    // Somebody holds the batch: what waits for it waits together.
    for (let pause = 20; open === "locked"; pause = Math.min(pause * 2, 500)) {
      await sleep(jitter(pause));
      open = await pass(batchId, runs);
    }
    // Rows that their handlers' own transactions have locked must not hold up the rest of the batch.
    for (const run of open) {
      solo += 1;
      void alone(batchId, run).finally(() => {
        solo -= 1;
        quiet();
      });
    }
  }

  async function alone(batchId: string, run: Run): Promise<void> {
    for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
      await sleep(pause);
      if ((await pass(batchId, [run])).length === 0) return;
    }
  }

  function quiet(): void {
    if (waiting.size > 0 || active.size > 0 || solo > 0) return;
    for (const tell of onQuiet.splice(0)) tell();
  }

  /** Settles what it can; returns those whose row somebody has locked, or that the batch is locked. */
  async function pass(batchId: string, runs: Run[]): Promise<Run[] | "locked"> {
    const finished = keeper.onlyOf(runs);
    const leases = [...finished];
    const settling = async () => {
      await markRuns(store, runs);
      return await settleItems(store, batchId, runs.map(toItemRun), leases);
    };
    let open = runs;
    try {
      const result = await persist(settling, longestPauseMs(runs));
      if (!result) return givenUp(runs).length === 0 ? [] : "locked";
      const settled = new Map(result.items.map((item) => [item.id, item]));
      const areGone = settled.size === runs.length;
      open = runs.filter((run) => !settled.has(run.job.id));
      if (result.advanced) onAdvanced(batchId, result.advanced);
      for (const run of runs) {
        const one = settled.get(run.job.id);
        if (one) conclude(run, one, areGone && run.lease !== undefined && finished.has(run.lease));
      }
      return open.length === 0 ? [] : await sortOut(batchId, open);
    } catch (error) {
      // One row the database refuses must not take the others with it; what is settled stays so.
      if (runs.length > 1) {
        const left: Run[] = [];
        for (const run of open) {
          const locked = await pass(batchId, [run]);
          if (locked === "locked" || locked.length > 0) left.push(run);
        }
        return left;
      }
      onTrouble(error);
      conclude(runs[0]!, { verdict: "abandoned" }, false);
      return [];
    }
  }

  async function sortOut(batchId: string, runs: Run[]): Promise<Run[]> {
    const asked = runs.map((run) => ({ id: run.job.id, token: run.token, batchId, seq: refOf(run).seq }));
    const reasons = await persist(() => whyItemsNotSettled(store, asked), longestPauseMs(runs));
    const open: Run[] = [];
    for (const run of runs) {
      const why = reasons?.get(run.job.id) ?? "locked";
      if (why === "locked") open.push(run);
      else if (why === "lost") conclude(run, { verdict: run.completedAs ?? "lost" }, false);
      else if (why === "back") conclude(run, { verdict: wantedOf(run) }, false);
      else conclude(run, { verdict: why }, false);
    }
    return givenUp(open);
  }

  function givenUp(runs: Run[]): Run[] {
    if (!isGivenUp()) return runs;
    for (const run of runs) conclude(run, { verdict: "abandoned" }, false);
    return [];
  }

  function conclude(run: Run, settled: SettledRunOfItem, isRowGone: boolean): void {
    const isOver = settled.verdict !== "lost" && settled.verdict !== "abandoned";
    keeper.drop(run, isRowGone ? "row-gone" : isOver ? "settled" : "left-behind");
    // What its own transaction set off, which has committed.
    if (run.advanced) onAdvanced(refOf(run).batch, run.advanced);
    onSettled(run, settled);
  }

  return {
    settle(run) {
      const outcome = run.outcome!;
      run.outcome = keepable(run, outcome, resultOf(outcome), `The result of an item of ${run.job.kind}`);
      const { batch } = refOf(run);
      const runs = waiting.get(batch);
      if (runs) runs.push(run);
      else waiting.set(batch, [run]);
      pump();
    },
    giveUpAfter,
    idle() {
      if (waiting.size === 0 && active.size === 0 && solo === 0) return Promise.resolve();
      return new Promise((resolve) => onQuiet.push(resolve));
    },
  };
}

/** Undefined: the handler gave none to keep. */
function resultOf(outcome: Outcome): unknown {
  return outcome.type === "done" && outcome.result instanceof ItemResult ? outcome.result.result : undefined;
}

const wantedOf = (run: Run): ItemVerdict => toItemRun(run).outcome;

function toItemRun(run: Run): ItemRun {
  const outcome = run.outcome!;
  const base = { id: run.job.id, token: run.token, delayMs: 0 };
  const failed = (error: ItemRun["error"]) => ({ error, fingerprint: error && fingerprintOf(error) });
  switch (outcome.type) {
    case "done": {
      const end = outcome.result instanceof ItemResult ? outcome.result : undefined;
      return { ...base, outcome: "done", label: end?.label ?? run.kind.batch?.first ?? "done", result: run.result };
    }
    case "gone": {
      // What it was about no longer exists: an outcome, where the kind has one for it.
      const isOutcome = run.kind.batch?.labels.includes("gone");
      return isOutcome
        ? { ...base, outcome: "done", label: "gone", error: outcome.error }
        : { ...base, outcome: "dead", ...failed(outcome.error) };
    }
    case "retry": {
      const delayMs = outcome.delayMs ?? run.kind.retryPolicy.delayMs(run.job.attempt);
      return { ...base, outcome: "retry", ...failed(outcome.error), delayMs };
    }
    case "dead":
      return { ...base, outcome: "dead", ...failed(outcome.error) };
    case "snooze":
      return { ...base, outcome: "snooze", delayMs: outcome.delayMs };
    case "release":
      return { ...base, outcome: "release" };
    case "cancelled":
      return { ...base, outcome: "cancelled", error: outcome.error };
  }
}
