// Turns beats into events: how many leases were renewed, how many turned out to be lost, and beats that got no answer.
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Emitter } from "../shared/emitter.ts";
import type { BeatResult } from "../store/jobs/beat.ts";

export interface BeatReport {
  onBeat(results: readonly BeatResult[], tookMs: number): void;
  onMissed(error: unknown): void;
}

export function reportBeats(
  events: Emitter<HoldfastEvents>,
  workerId: string,
  onTrouble: (error: unknown) => void,
): BeatReport {
  const count = (results: readonly BeatResult[], wanted: BeatResult["state"]): number =>
    results.reduce((sum, { state }) => sum + (state === wanted ? 1 : 0), 0);
  return {
    onBeat(results, tookMs) {
      // It only took rows of finished leases away.
      if (results.length === 0 || !events.has("lease.beat")) return;
      const [renewed, lost] = [count(results, "renewed"), count(results, "lost")];
      events.emit("lease.beat", { workerId, renewed, lost, tookMs, error: undefined });
    },
    onMissed(error) {
      events.emit("lease.beat", { workerId, renewed: 0, lost: 0, tookMs: null, error });
      onTrouble(error);
    },
  };
}
