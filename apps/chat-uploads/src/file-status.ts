// What a sender wants to know about a file, from what is known about it. Pure; the page has the words.
import type { Job, Parcel } from "holdfast";

export type FileStatus =
  | { code: "waiting"; until: Date }
  /** Nobody has asked for a while. */
  | { code: "offline"; until: Date; since: Date | null }
  /** It is there, and does not fetch. */
  | { code: "stuck"; until: Date }
  | { code: "fetched"; until: Date }
  | { code: "received"; at: Date }
  | { code: "expired"; at: Date; reason: string }
  | { code: "retrying"; tries: number; nextAt: Date; error: string | null; until: Date }
  | { code: "undelivered"; tries: number; error: string | null }
  /** Longer ago than anybody remembers. */
  | { code: "forgotten" };

export interface KnownFile {
  parcel: Parcel | undefined;
  /** The job that posts it, if one does. */
  job: Job | undefined;
  /** The workspace's last sign of life. */
  polledAt: Date | null;
  now: Date;
  offlineAfterMs: number;
}

export function fileStatus({ parcel, job, polledAt, now, offlineAfterMs }: KnownFile): FileStatus {
  if (!parcel) return { code: "forgotten" };
  const { state, reason, createdAt, expiresAt: until } = parcel;
  if (state === "acked") return { code: "received", at: parcel.ackedAt ?? now };
  if (state === "expired") return { code: "expired", at: parcel.expiredAt ?? until, reason: reason ?? "never fetched" };
  if (job) {
    const error = job.lastError?.message ?? null;
    if (job.state === "dead" || job.state === "cancelled") return { code: "undelivered", tries: job.attempt, error };
    if (job.status === "retrying") return { code: "retrying", tries: job.attempt, nextAt: job.runAt, error, until };
    return { code: "waiting", until };
  }
  if (state === "fetched") return { code: "fetched", until };
  const ageMs = now.getTime() - createdAt.getTime();
  if (ageMs < offlineAfterMs)
    return isAway() ? { code: "offline", until, since: polledAt } : { code: "waiting", until };
  return isAway() ? { code: "offline", until, since: polledAt } : { code: "stuck", until };

  /** One that was never seen is given the time to come. */
  function isAway(): boolean {
    const since = polledAt ?? createdAt;
    return now.getTime() - since.getTime() >= offlineAfterMs;
  }
}
