// Parcels and inboxes as the API shows them: plain JSON, times in ISO 8601, durations as texts.
import type { InboxStats } from "../inbox/inbox.ts";
import type { ResolvedInboxOptions } from "../options/inbox.ts";
import { formatDuration } from "../shared/duration.ts";
import type { Parcel } from "../store/inbox/rows.ts";
import type { InboxView, LimitsView, ParcelView } from "./contracts/inbox.ts";
import { iso } from "./job-view.ts";

export function toParcelView(parcel: Parcel): ParcelView {
  return {
    id: parcel.id,
    recipient: parcel.recipient,
    state: parcel.state,
    reason: parcel.reason,
    name: parcel.name,
    type: parcel.type,
    size: parcel.size,
    sha256: parcel.sha256,
    key: parcel.key,
    meta: parcel.meta ?? null,
    createdAt: parcel.createdAt.toISOString(),
    expiresAt: parcel.expiresAt.toISOString(),
    readableUntil: parcel.readableUntil.toISOString(),
    fetchedAt: iso(parcel.fetchedAt),
    fetchCount: parcel.fetchCount,
    ackedAt: iso(parcel.ackedAt),
    expiredAt: iso(parcel.expiredAt),
    removedAt: iso(parcel.removedAt),
  };
}

export function toInboxView(inbox: InboxStats): InboxView {
  return {
    recipient: inbox.recipient,
    waiting: inbox.waiting,
    fetched: inbox.fetched,
    bytes: inbox.bytes,
    oldestAt: iso(inbox.oldestAt),
    acked: inbox.acked,
    ackedBytes: inbox.ackedBytes,
    expired: inbox.expired,
    neverFetched: inbox.neverFetched,
    neverAcked: inbox.neverAcked,
    expiredBytes: inbox.expiredBytes,
    polledAt: iso(inbox.polledAt),
    fetchedAt: iso(inbox.fetchedAt),
    ackedAt: iso(inbox.ackedAt),
    stuck: inbox.stuck,
  };
}

export function toLimitsView(limits: ResolvedInboxOptions): LimitsView {
  return {
    maxFileBytes: limits.maxFileBytes,
    maxFilesPerPut: limits.maxFilesPerPut,
    maxPutBytes: Math.min(limits.maxFileBytes * limits.maxFilesPerPut, limits.quotaBytes),
    quotaBytes: limits.quotaBytes,
    quotaParcels: limits.quotaParcels,
    ttl: formatDuration(limits.ttlMs),
    maxTtl: formatDuration(limits.maxTtlMs),
    keepAcked: formatDuration(limits.keepAckedMs),
    keepTombstones: formatDuration(limits.keepTombstonesMs),
    purgeEvery: formatDuration(limits.purgeEveryMs),
    draftTimeout: formatDuration(limits.draftTimeoutMs),
    stuckAfter: formatDuration(limits.stuckAfterMs),
  };
}
