// Keeps the house: recovers work whose worker died, makes tomorrow's partitions, purges what is past its retention.
//
// Each chore has its own clock; one that fails is reported and tried again later, and never stops another. Every chore
// is safe when two processes do it at the same moment.
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Emitter } from "../shared/emitter.ts";
import { makeService, type Service } from "../shared/service.ts";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { endSetApart, expireIfOverdue, nextExpiryMs } from "../store/janitor/expire-leases.ts";
import { makePartitions } from "../store/janitor/partitions.ts";
import { forgetNotes } from "../store/notes/notes.ts";
import { dropExpiredPartitions, purgeEarly, purgeKeys } from "../store/janitor/purge.ts";
import type { Store } from "../store/sql.ts";
import { removeSilentWorkers } from "../store/workers/register.ts";

export interface JanitorInput {
  store: Store;
  events: Emitter<HoldfastEvents>;
  /** For how long this process has seen the database without interruption. */
  seenForMs(): number;
  /** The workers of this process. */
  liveWorkers(): string[];
  /** Recovered jobs are due again. */
  onRecovered(kinds: string[]): void;
  /** Jobs were buried or cancelled; these were admitted in their place. */
  onEnded(heirs: string[]): void;
  keepMs: number | null;
}

interface Chore {
  name: string;
  everyMs: number;
  /** Returns when it wants to run next, if sooner than `everyMs`. */
  run(): Promise<number | undefined>;
}

const BATCH = 1_000;
const BUDGET_MS = 2_000;

export function makeJanitor(input: JanitorInput): Service {
  const { store, events } = input;

  async function expireLeases(): Promise<number | undefined> {
    for (let batch = BATCH; batch === BATCH;) {
      const atOnce = store.tier === "embedded";
      const expired = await expireIfOverdue(store, {
        limit: 100,
        seenForMs: input.seenForMs(),
        atOnce,
        // One process has an embedded database: its own workers are alive, however late their beats.
        spare: atOnce ? input.liveWorkers() : [],
      });
      batch = expired.length >= 100 ? BATCH : 0;
      for (const { id, kind } of expired) events.emit("lease.expired", { jobId: id, kind });
      if (expired.length > 0) input.onRecovered([...new Set(expired.map((job) => job.kind))]);
    }
    for (let left = true; left;) {
      const ended = await endSetApart(store, 100, input.keepMs);
      left = ended.length > 0;
      if (left) input.onEnded(ended.flatMap(({ heir }) => heir ?? []));
    }
    // Awake when the next one is due; new leases are at least this long.
    return Math.max(100, (await nextExpiryMs(store)) ?? Infinity);
  }

  async function bounded(step: () => Promise<number>): Promise<undefined> {
    const until = Date.now() + BUDGET_MS;
    while ((await step()) >= BATCH && Date.now() < until);
  }

  const chores: Chore[] = [
    { name: "expire leases", everyMs: 1_000, run: expireLeases },
    { name: "make partitions", everyMs: 3_600_000, run: async () => void (await makePartitions(store)) },
    { name: "drop partitions", everyMs: 3_600_000, run: async () => void (await dropExpiredPartitions(store)) },
    { name: "purge finished", everyMs: 60_000, run: () => bounded(() => purgeEarly(store, BATCH)) },
    { name: "purge keys", everyMs: 600_000, run: () => bounded(() => purgeKeys(store, BATCH)) },
    { name: "forget notes", everyMs: 60_000, run: () => bounded(() => forgetNotes(store, BATCH)) },
    { name: "remove silent workers", everyMs: 60_000, run: async () => void (await removeSilentWorkers(store)) },
  ];

  let stopping = false;
  const alarms = chores.map(() => makeAlarm());
  let loops: Promise<void>[] = [];

  async function repeat(chore: Chore, index: number): Promise<void> {
    let pauseMs = 0;
    while (!stopping) {
      let waitMs = chore.everyMs;
      try {
        waitMs = Math.min(waitMs, (await chore.run()) ?? Infinity);
        pauseMs = 0;
      } catch (error) {
        events.emit("trouble", { where: `janitor: ${chore.name}`, error });
        pauseMs = Math.min(Math.max(1_000, pauseMs * 2), 30_000);
        waitMs = Math.min(pauseMs, chore.everyMs);
      }
      if (!stopping) await alarms[index]!.wait(jitter(waitMs));
    }
  }

  return makeService({
    onStart() {
      loops = chores.map(repeat);
      return Promise.resolve();
    },
    async onStop() {
      stopping = true;
      for (const alarm of alarms) alarm.ring();
      await Promise.all(loops);
    },
  });
}
