// Keeps hot tables vacuumed: on a server beside autovacuum, which may be late; on the embedded tier instead of it, with a
// CHECKPOINT, without which its log would grow and its next start would take long.
import { type Chore, defineChore } from "../../job/define-chore.ts";
import { sleep } from "../../shared/sleep.ts";
import {
  checkpoint,
  type DeadRows,
  deadRowsOf,
  tablesToVacuum,
  vacuumHot,
  vacuumTable,
  walBytes,
} from "../../store/janitor/vacuum.ts";
import type { Store } from "../../store/sql.ts";

const TIMEOUT_MS = 25_000;
/** While somebody holds an old snapshot a vacuum removes nothing: do not read the table for that every minute. */
const IN_VAIN_PAUSE_MS = 600_000;
const VACUUM_AFTER_BYTES = 16 * 1_048_576;
const CHECKPOINT_AFTER_BYTES = 64 * 1_048_576;
const CHECKPOINT_AFTER_MS = 300_000;
const LOOK_EVERY_MS = 200;
const MOST_LOOKS = 5;

export function makeVacuum(store: Store): Chore {
  return store.tier === "server" ? serverVacuum(store) : embeddedVacuum(store);
}

function serverVacuum(store: Store): Chore {
  const notBefore = new Map<string, number>();
  return defineChore("vacuum", {
    every: "1m",
    deadline: "2m",
    async run(context) {
      for (const table of await tablesToVacuum(store)) {
        const { name, dead } = table;
        if ((notBefore.get(name) ?? 0) > performance.now()) continue;
        await vacuumTable(store, name, TIMEOUT_MS);
        context.count("tables", 1);
        const left = await leftIn(store, table);
        if (left !== undefined && left > dead / 2) notBefore.set(name, performance.now() + IN_VAIN_PAUSE_MS);
        if (context.signal.aborted) return;
      }
    },
  });
}

/** What a vacuum has left. PostgreSQL 14 hears of it half a second later. undefined: it was not vacuumed, but locked. */
async function leftIn(store: Store, { name, vacuumed }: DeadRows): Promise<number | undefined> {
  for (let looks = 1; ; looks += 1) {
    const now = await deadRowsOf(store, name);
    if (!now) return 0;
    if (now.vacuumed !== vacuumed) return now.dead;
    if (looks > MOST_LOOKS) return undefined;
    await sleep(LOOK_EVERY_MS);
  }
}

function embeddedVacuum(store: Store): Chore {
  let vacuumedAt = 0;
  let checkpointBytes: number | undefined;
  let checkpointAt = performance.now();
  return defineChore("vacuum", {
    every: "1m",
    deadline: "2m",
    async run(context) {
      const bytes = await walBytes(store);
      checkpointBytes ??= bytes;
      if (bytes - vacuumedAt >= VACUUM_AFTER_BYTES) {
        await vacuumHot(store, TIMEOUT_MS);
        vacuumedAt = await walBytes(store);
        context.count("vacuums", 1);
      }
      const grown = (await walBytes(store)) - checkpointBytes;
      const isLong = performance.now() - checkpointAt >= CHECKPOINT_AFTER_MS;
      if (grown >= CHECKPOINT_AFTER_BYTES || (isLong && grown > 1_048_576)) {
        await checkpoint(store, TIMEOUT_MS);
        checkpointBytes = await walBytes(store);
        checkpointAt = performance.now();
        context.count("checkpoints", 1);
      }
    },
  });
}
