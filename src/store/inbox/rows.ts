// A parcel as the tables have it, and as the rest of the house sees it.
import { asMillis } from "../sql.ts";

export const PARCEL_STATES = ["waiting", "fetched", "acked", "expired"] as const;
/** Where a parcel stands. */
export type ParcelState = (typeof PARCEL_STATES)[number];

/** Why a parcel expired: nobody came for it, or somebody did and never said that it arrived. */
export type ExpiryReason = "never fetched" | "fetched, never acked";

/** Everything about a parcel but its bytes. */
export interface Parcel {
  id: string;
  recipient: string;
  state: ParcelState;
  /** Set for expired ones. */
  reason: ExpiryReason | null;
  /** Safe as a file name, and never used as a path. */
  name: string;
  /** As declared; "" if nothing was. */
  type: string;
  size: number;
  /** In hexadecimal. */
  sha256: string;
  key: string | null;
  meta: unknown;
  createdAt: Date;
  expiresAt: Date;
  /** The last time somebody got all of it. */
  fetchedAt: Date | null;
  fetchCount: number;
  ackedAt: Date | null;
  expiredAt: Date | null;
  /** Until when the content can be opened. */
  readableUntil: Date;
  /** The content is gone; what is left is a tombstone. */
  removedAt: Date | null;
}

export interface ParcelRow {
  id: string;
  recipient: string;
  state: ParcelState;
  reason: ExpiryReason | null;
  name: string;
  type: string;
  size: string;
  sha256: string;
  key: string | null;
  meta: unknown;
  created_at: Date;
  expires_at: Date;
  fetched_at: Date | null;
  fetch_count: number;
  acked_at: Date | null;
  expired_at: Date | null;
  gone_at: Date;
  removed_at: Date | null;
}

/** Past its expiry it is expired for everybody, also before the janitor came by. */
const isExpired = (p: string): string =>
  `(${p}.expired_at is not null or (${p}.acked_at is null and ${p}.expires_at <= :schema.clock()))`;

export const stateOf = (p: string): string => `case when ${isExpired(p)} then 'expired'
  when ${p}.acked_at is not null then 'acked' when ${p}.fetched_at is not null then 'fetched' else 'waiting' end`;

export const reasonOf = (p: string): string => `case when not ${isExpired(p)} then null
  when ${p}.fetched_at is null then 'never fetched' else 'fetched, never acked' end`;

export const PARCEL_COLUMNS = `p.id, p.recipient, ${stateOf("p")} as state, ${reasonOf("p")} as reason, p.name, p.type,
  p.size, encode(p.sha256, 'hex') as sha256, p.key, p.meta, p.created_at, p.expires_at, p.fetched_at, p.fetch_count,
  p.acked_at, p.expired_at, p.gone_at, p.removed_at`;

/** For routines, which must say what a row looks like. */
export const PARCEL_SHAPE = `id uuid, recipient text, state text, reason text, name text, type text, size bigint,
  sha256 text, key text, meta jsonb, created_at timestamptz, expires_at timestamptz, fetched_at timestamptz,
  fetch_count integer, acked_at timestamptz, expired_at timestamptz, gone_at timestamptz, removed_at timestamptz`;

export function toParcel(row: ParcelRow): Parcel {
  return {
    id: row.id,
    recipient: row.recipient,
    state: row.state,
    reason: row.reason,
    name: row.name,
    type: row.type,
    size: Number(row.size),
    sha256: row.sha256,
    key: row.key,
    meta: row.meta,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    fetchedAt: row.fetched_at,
    fetchCount: row.fetch_count,
    ackedAt: row.acked_at,
    expiredAt: row.expired_at,
    readableUntil: row.gone_at,
    removedAt: row.removed_at,
  };
}

export const ageMillis = (since: string): string => asMillis(`:schema.clock() - ${since}`);
