// Is a recipient stuck, and on what: in words that a person can act on.
import type { InboxRow } from "../store/inbox/stats.ts";

/** Why a recipient's parcels do not move. */
export interface Stuck {
  code: "not polling" | "not fetching" | "not acking";
  /** "has not polled since 2026-01-31 14:02 UTC". */
  message: string;
  /** How long the oldest of what it should have taken has waited. */
  forMs: number;
}

export function findStuck(inbox: InboxRow, stuckAfterMs: number): Stuck | null {
  const { waitingForMs, unackedForMs, polledAgoMs, polledAt, ackedAgoMs } = inbox;
  if (waitingForMs !== null && waitingForMs >= stuckAfterMs) {
    if (polledAt === null) return { code: "not polling", message: "has never polled", forMs: waitingForMs };
    if (polledAgoMs !== null && polledAgoMs >= stuckAfterMs) {
      return { code: "not polling", message: `has not polled since ${inWords(polledAt)}`, forMs: waitingForMs };
    }
    return { code: "not fetching", message: "polls but does not fetch", forMs: waitingForMs };
  }
  if (unackedForMs !== null && unackedForMs >= stuckAfterMs && (ackedAgoMs === null || ackedAgoMs >= unackedForMs)) {
    return { code: "not acking", message: "fetches but never acks", forMs: unackedForMs };
  }
  return null;
}

const inWords = (at: Date): string => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
