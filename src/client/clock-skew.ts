// How far this machine's clock is from the database's, as far as one question can tell.
import { databaseNow } from "../store/stats/database-clock.ts";
import type { Store } from "../store/sql.ts";

export interface ClockSkew {
  now: Date;
  /** How long the database took to answer. */
  tookMs: number;
  /** This machine's clock minus the database's; 0 if the time of the answer explains the difference. */
  skewMs: number;
}

export async function readClockSkew(store: Store): Promise<ClockSkew> {
  const sentAt = Date.now();
  const startedAt = performance.now();
  const now = await databaseNow(store);
  const tookMs = Math.round(performance.now() - startedAt);
  const difference = sentAt + tookMs / 2 - now.getTime();
  const sure = Math.max(0, Math.abs(difference) - tookMs / 2);
  return { now, tookMs, skewMs: Math.round(Math.sign(difference) * sure) };
}
