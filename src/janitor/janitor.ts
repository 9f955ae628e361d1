// Keeps the house: gives each chore its turn. Each has its own clock, deadline and budget; one that fails, throws or hangs
// is reported and tried again with growing pauses, and never stops another or the process.
//
// A chore runs at once when a process starts, and then every interval, in one process at a time. Every process looks
// every few seconds for chores whose process died in the middle, and takes them over.
import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { OptionInvalid } from "../errors.ts";
import type { Chore } from "../job/define-chore.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Emitter } from "../shared/emitter.ts";
import { orAfter } from "../shared/either-signal.ts";
import { checkLimit, checkNumberCursor, cutPage } from "../shared/page.ts";
import { makePulses, type Pulses } from "../shared/pulse.ts";
import { makeService, type Service } from "../shared/service.ts";
import { type Alarm, jitter, makeAlarm } from "../shared/sleep.ts";
import { type ChoreRun, listRuns } from "../store/janitor/chore-history.ts";
import { letGoOfTurns, overdueTurns } from "../store/janitor/chore-turn.ts";
import { type ChoreState, choreStates } from "../store/stats/gauges.ts";
import type { Store } from "../store/sql.ts";
import { backoffMs, type BatchSize, type ChoreResult, runChore } from "./run-chore.ts";

export interface JanitorInput {
  store: Store;
  events: Emitter<HoldfastEvents>;
  chores: readonly Chore[];
  /** Where its loops are registered. */
  pulses?: Pulses;
}

/** What a chore would remove now, without touching it. */
export interface ChorePreview {
  chore: string;
  /** How many of what would go, by outcome. */
  rows: Record<string, number>;
  /** There are more than were counted. */
  more: boolean;
}

export interface HistoryOptions {
  chore?: string | undefined;
  limit?: number | undefined;
  /** What `next` of the page before was. */
  cursor?: string | undefined;
}

/** `hf.janitor`: gives each chore its turn, in one process at a time; runs, previews and tells what it did. */
export interface Janitor extends Service {
  /** Another chore, also while the janitor is at work. */
  add(chore: Chore): void;
  /** One of the same name as it is written now: from its next turn on. */
  replace(chore: Chore): void;
  readonly chores: readonly Chore[];
  /** Runs one now, or all, one after the other, whether they are due or not. One that runs already is left alone. */
  run(name?: string): Promise<ChoreResult[]>;
  preview(name?: string): Promise<ChorePreview[]>;
  /** How each stands: when it last succeeded, when it is due, who is at it. */
  states(): Promise<ChoreState[]>;
  history(options?: HistoryOptions): Promise<{ runs: ChoreRun[]; next: string | null }>;
}

const WATCH_MS = 3_000;
const MAX_PAGE = 1_000;
const PREVIEW_LIMIT = 100_000;
/** The longest that a timer of ours sleeps without looking at the clock. */
const LONGEST_WAIT_MS = 3_600_000;

export function makeJanitor({ store, events, chores: own, pulses = makePulses() }: JanitorInput): Janitor {
  const by = `${hostname()}:${process.pid}`;
  const chores = new Map<string, { chore: Chore; alarm: Alarm; size: BatchSize }>();
  const loops: Promise<void>[] = [];
  const stopping = new AbortController();
  // Every run listens to it.
  setMaxListeners(0, stopping.signal);
  const watchAlarm = makeAlarm();
  let isStarted = false;

  function add(chore: Chore): void {
    if (chores.has(chore.name)) {
      throw new OptionInvalid(`There are two chores named "${chore.name}".`, "Give each a name of its own.");
    }
    chores.set(chore.name, { chore, alarm: makeAlarm(), size: { now: chore.batchSize } });
    if (isStarted) loops.push(repeat(chore.name));
  }
  for (const chore of own) add(chore);

  function replace(chore: Chore): void {
    const known = chores.get(chore.name);
    if (!known) return add(chore);
    known.chore = chore;
    known.alarm.ring();
  }

  async function repeat(name: string): Promise<void> {
    const known = chores.get(name)!;
    const { alarm, size } = known;
    let atOnce = true;
    let failures = 0;
    const pulse = pulses.register(`janitor: ${name}`);
    while (!stopping.signal.aborted) {
      let waitMs: number;
      // As it is written now.
      const { chore } = known;
      try {
        pulse.beat(chore.deadlineMs);
        const answer = await runChore({ store, events, chore, by, atOnce, size, stopping: stopping.signal });
        waitMs = answer.waitMs;
        // Somebody else is at it: that is the first run.
        atOnce = false;
        failures = 0;
      } catch (error) {
        events.emit("trouble", { where: `janitor: ${name}`, error });
        waitMs = jitter(backoffMs(failures));
        failures += 1;
      }
      waitMs = Math.min(waitMs, LONGEST_WAIT_MS);
      pulse.beat(waitMs);
      if (!stopping.signal.aborted) await alarm.wait(waitMs);
    }
    pulse.end();
  }

  /** Who died in the middle of a chore leaves it to us. */
  async function watch(): Promise<void> {
    const pulse = pulses.register("janitor: watch");
    while (!stopping.signal.aborted) {
      pulse.beat(WATCH_MS);
      try {
        for (const name of await overdueTurns(store)) chores.get(name)?.alarm.ring();
      } catch {
        // The chores themselves say what is wrong with the database.
      }
      await watchAlarm.wait(jitter(WATCH_MS));
    }
    pulse.end();
  }

  function find(name: string | undefined): { chore: Chore; size: BatchSize }[] {
    if (name === undefined) return [...chores.values()];
    const found = chores.get(name);
    if (found) return [found];
    throw new OptionInvalid(`There is no chore "${name}".`, `Chores: ${[...chores.keys()].join(", ")}.`);
  }

  const service = makeService({
    async onStart() {
      if (store.tier === "embedded") await letGoOfTurns(store);
      isStarted = true;
      for (const name of chores.keys()) loops.push(repeat(name));
      // An embedded database has no other process that could have died.
      if (store.tier === "server") loops.push(watch());
    },
    async onStop() {
      stopping.abort();
      for (const { alarm } of chores.values()) alarm.ring();
      watchAlarm.ring();
      await Promise.all(loops);
    },
  });

  return {
    ...service,
    add,
    replace,
    get chores() {
      return [...chores.values()].map(({ chore }) => chore);
    },
    async run(name) {
      const results: ChoreResult[] = [];
      for (const { chore, size } of find(name)) {
        const input = { store, events, chore, by, atOnce: true, size, stopping: stopping.signal };
        results.push((await runChore(input)).result);
      }
      return results;
    },
    async preview(name) {
      const previews: ChorePreview[] = [];
      for (const { chore } of find(name)) {
        if (!chore.preview) continue;
        const signal = orAfter(chore.deadlineMs, stopping.signal);
        const rows = await chore.preview({ signal, limit: PREVIEW_LIMIT });
        const more = Object.values(rows).some((count) => count >= PREVIEW_LIMIT);
        previews.push({ chore: chore.name, rows, more });
      }
      return previews;
    },
    states: () => choreStates(store),
    async history({ chore, limit = 50, cursor } = {}) {
      const before = checkNumberCursor(cursor);
      const found = await listRuns(store, { chore: chore ?? null, before, limit: checkLimit(limit, MAX_PAGE) + 1 });
      const { page: runs, next } = cutPage(found, limit);
      return { runs, next };
    },
  };
}
