// Removes what the inbox need not keep: content whose time is over, drafts that nobody writes to any more, tombstones past
// their retention, recipients that nothing was heard of. Each call is one statement, bounded in rows and in bytes, and
// makes progress: a file larger than one call goes in several.
import { routine, sql, type Store } from "../sql.ts";

export interface PurgedContent {
  /** Parcels that have no content any more. */
  acked: number;
  expired: number;
  chunks: number;
  bytes: number;
}

const PURGE_CONTENT = routine({
  name: "purge_content",
  takes: ["integer", "integer"],
  gives: "acked bigint, expired bigint, chunks bigint, bytes bigint",
  body: `with due as materialized (
  select p.id, p.gone_at, p.expired_at from :schema.parcels p
  where p.removed_at is null and (p.acked_at is not null or p.expired_at is not null)
    and p.gone_at <= :schema.clock() and (p.held_until is null or p.held_until <= :schema.clock())
  order by p.gone_at limit $1 for update of p skip locked
),
victims as materialized (
  select c.ctid, c.parcel_id, octet_length(c.bytes) as size
  from (select id from due order by gone_at) d join :schema.parcel_chunks c on c.parcel_id = d.id limit $2
),
deleted as (
  delete from :schema.parcel_chunks c where c.ctid = any(array(select ctid from victims))
),
emptied as (
  update :schema.parcels p set removed_at = :schema.clock()
  where p.id = any(array(select id from due))
    and (select count(*) from :schema.parcel_chunks c where c.parcel_id = p.id)
      = (select count(*) from victims v where v.parcel_id = p.id)
  returning p.expired_at
)
select (select count(*) from emptied where expired_at is null), (select count(*) from emptied where expired_at is not null),
  count(*), coalesce(sum(size), 0)::bigint from victims`,
});

export interface PurgeLimits {
  parcels: number;
  chunks: number;
}

export async function purgeContent(store: Store, { parcels, chunks }: PurgeLimits): Promise<PurgedContent> {
  const { rows } = await store.query<Record<keyof PurgedContent, string>>(PURGE_CONTENT, [parcels, chunks]);
  const { acked, expired, chunks: gone, bytes } = rows[0]!;
  return { acked: Number(acked), expired: Number(expired), chunks: Number(gone), bytes: Number(bytes) };
}

const PURGE_DRAFTS = routine({
  name: "purge_drafts",
  takes: ["bigint", "integer", "integer"],
  gives: "drafts bigint, chunks bigint, bytes bigint",
  body: `with due as materialized (
  select d.id from :schema.parcel_drafts d
  where d.touched_at < :schema.clock() - $1 * interval '1 millisecond'
  order by d.touched_at limit $2 for update of d skip locked
),
victims as materialized (
  select c.ctid, c.parcel_id, octet_length(c.bytes) as size
  from due d join :schema.parcel_chunks c on c.parcel_id = d.id limit $3
),
deleted as (
  delete from :schema.parcel_chunks c where c.ctid = any(array(select ctid from victims))
),
emptied as (
  delete from :schema.parcel_drafts p
  where p.id = any(array(select id from due))
    and (select count(*) from :schema.parcel_chunks c where c.parcel_id = p.id)
      = (select count(*) from victims v where v.parcel_id = p.id)
  returning p.id
)
select (select count(*) from emptied), count(*), coalesce(sum(size), 0)::bigint from victims`,
});

export interface PurgedDrafts {
  drafts: number;
  chunks: number;
  bytes: number;
}

/** Drafts that nobody wrote to for so long, and those that their own writer gave up. */
export async function purgeDrafts(
  store: Store,
  silentMs: number,
  { parcels, chunks }: PurgeLimits,
): Promise<PurgedDrafts> {
  const { rows } = await store.query<Record<keyof PurgedDrafts, string>>(PURGE_DRAFTS, [silentMs, parcels, chunks]);
  const { drafts, chunks: gone, bytes } = rows[0]!;
  return { drafts: Number(drafts), chunks: Number(gone), bytes: Number(bytes) };
}

const PURGE_TOMBSTONES = routine({
  name: "purge_tombstones",
  takes: ["bigint", "integer"],
  gives: "count",
  body: `with due as materialized (
  select p.ctid from :schema.parcels p
  where p.removed_at is not null and p.removed_at < :schema.clock() - $1 * interval '1 millisecond'
  order by p.removed_at limit $2 for update of p skip locked
)
delete from :schema.parcels p where p.ctid = any(array(select ctid from due))`,
});

export async function purgeTombstones(store: Store, keepMs: number, limit: number): Promise<number> {
  const { rows } = await store.query<{ count: string }>(PURGE_TOMBSTONES, [keepMs, limit]);
  return Number(rows[0]?.count ?? 0);
}

const FORGET_INBOXES = routine({
  name: "forget_inboxes",
  takes: ["bigint", "integer"],
  gives: "count",
  body: `with due as materialized (
  select i.ctid from :schema.inboxes i
  where i.touched_at < :schema.clock() - $1 * interval '1 millisecond'
    and not exists (select 1 from :schema.parcels p where p.recipient = i.recipient)
  order by i.touched_at limit $2 for update of i skip locked
)
delete from :schema.inboxes i where i.ctid = any(array(select ctid from due))`,
});

/** Recipients without parcels that nothing was heard of for so long. */
export async function forgetInboxes(store: Store, keepMs: number, limit: number): Promise<number> {
  const { rows } = await store.query<{ count: string }>(FORGET_INBOXES, [keepMs, limit]);
  return Number(rows[0]?.count ?? 0);
}

const PREVIEW = sql`
select
  (select count(*) from (select 1 from :schema.parcels p where p.acked_at is null and p.expired_at is null
    and p.gone_at <= :schema.clock() and p.fetched_at is null limit $2) x)::integer as never_fetched,
  (select count(*) from (select 1 from :schema.parcels p where p.acked_at is null and p.expired_at is null
    and p.gone_at <= :schema.clock() and p.fetched_at is not null limit $2) x)::integer as never_acked,
  (select count(*) from (select 1 from :schema.parcels p where p.removed_at is null and p.acked_at is not null
    and p.gone_at <= :schema.clock() limit $2) x)::integer as acked,
  (select count(*) from (select 1 from :schema.parcel_drafts d
    where d.touched_at < :schema.clock() - $1::bigint * interval '1 millisecond' limit $2) x)::integer as drafts`;

export interface PurgePreview {
  never_fetched: number;
  never_acked: number;
  acked: number;
  drafts: number;
}

/** What would go now, each counted up to `limit`. */
export async function previewPurge(store: Store, silentMs: number, limit: number): Promise<PurgePreview> {
  return (await store.query<PurgePreview>(PREVIEW, [silentMs, limit])).rows[0]!;
}
