// What is told when a batch moved on: workers, that there are items to run; listeners, that it ended.
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Emitter } from "../shared/emitter.ts";
import type { Advanced } from "../store/batches/advance.ts";
import type { WakeUps } from "./wake-ups.ts";

export function tellAdvanced(
  { wakeUps, events }: { wakeUps: WakeUps; events: Emitter<HoldfastEvents> },
  batchId: string,
  { given, finished, state, kind, rank, owner, follow }: Advanced,
): void {
  if (given > 0) wakeUps.send({ kind, rank });
  if (follow !== null) wakeUps.send({ kind: follow, rank: 0 });
  if (finished) events.emit("batch.finished", { batchId, kind, owner, state: state === "done" ? "done" : "cancelled" });
}
