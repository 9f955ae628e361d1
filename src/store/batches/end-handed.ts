// The owner's word on what was handed over: what the item came to. The first one counts; whoever comes later is told
// what it was.
import type { ErrorRecord } from "../../job/outcome.ts";
import { routine, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH, NEWEST } from "./advance.ts";

export interface EndHanded {
  batchId: string;
  seq: number;
  outcome: string;
  /** JSON text. */
  result?: string | undefined;
  error?: ErrorRecord | undefined;
  fingerprint?: string | undefined;
  by: string | null;
}

export interface EndedHanded {
  /** What the item came to, by this call or an earlier one; null: it is not handed over. */
  outcome: string | null;
  /** By this call. */
  changed: boolean;
  parcelId: string | null;
  owner: string | null;
  advanced: Advanced | undefined;
}

/** One more error of its kind. */
export const COUNT_ERROR = (seqs: string, fingerprint: string, error: string): string => `
insert into :schema.batch_errors as e (batch_id, fingerprint, count, first_at, last_at, last_seq, sample)
select $1, ${fingerprint}, cardinality(${seqs}), :schema.clock(), :schema.clock(), (select max(s) from unnest(${seqs}) as u (s)), ${error}
where cardinality(${seqs}) > 0
on conflict (batch_id, fingerprint) do update set count = e.count + excluded.count, last_at = excluded.last_at,
  last_seq = excluded.last_seq, sample = excluded.sample;`;

const END_HANDED = routine({
  name: "end_handed",
  takes: ["uuid", "bigint", "text", "jsonb", "jsonb", "text", "text"],
  gives: `ended text, changed boolean, parcel_id uuid, ${ADVANCED}`,
  settings: ["lock_timeout = '2s'"],
  declares: ["v_b record", "v_o record"],
  first: `
${LOCK_BATCH("$1")}
select b.*, l.n as newest into v_b from :schema.batches b cross join lateral ${NEWEST("b.id")} l
where b.id = $1 and b.deleted_at is null;
if not found then return; end if;
select o.* into v_o from :schema.batch_outcomes o where o.batch_id = $1 and o.seq = $2;
if not found or v_o.outcome is not null then
  return query select v_o.outcome::text, false, v_o.parcel_id, null::bigint, 0, false, v_b.state::text, v_b.kind::text,
    v_b.rank::smallint, v_b.owner::text, null::text;
  return;
end if;
update :schema.batch_outcomes o set outcome = $3, at = :schema.clock(), n = v_b.newest + 1, result = coalesce($4, o.result),
  error = $5, fingerprint = $6
where o.batch_id = $1 and o.seq = $2;
if $3 = 'error' and $6 is not null then ${COUNT_ERROR("array[$2]", "$6", "$5")} end if;`,
  body: `select $3, true, v_o.parcel_id, a.* from ${advance({
    what: "acked",
    by: "$7",
    seqs: "array[$2]",
    handed: "-1",
    ended: "jsonb_build_object($3, 1)",
  })} a`,
});

/** Undefined: there is no such batch. */
export async function endHanded(store: Store, end: EndHanded): Promise<EndedHanded | undefined> {
  const { batchId, seq, outcome, result, error, fingerprint, by } = end;
  type Row = Advanced & { ended: string | null; changed: boolean; parcel_id: string | null };
  const { rows } = await store.query<Row>(END_HANDED, [
    batchId,
    seq,
    outcome,
    result ?? null,
    error === undefined ? null : JSON.stringify(error),
    fingerprint ?? null,
    by,
  ]);
  if (!rows[0]) return undefined;
  const { ended, changed, parcel_id: parcelId, ...advanced } = rows[0];
  const { owner } = advanced;
  return { outcome: ended, changed, parcelId, owner, advanced: advanced.n === null ? undefined : advanced };
}
