// Adds items to an open batch, and closes it. A writer says how many of its items came before these: what was taken
// already, by a call whose answer was lost or by another process with the same list, is left out.
import { routine, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH, NEWEST } from "./advance.ts";

export interface Addition {
  batchId: string;
  writer: string;
  /** How many items of this writer come before these. */
  from: number;
  /** JSON texts. */
  items: readonly string[];
  /** These are the last, of all writers. */
  close: boolean;
}

/** gap: items of this writer before these are missing. total: more than were declared, or closed with fewer. */
export type AddProblem = "unknown" | "ended" | "closed" | "gap" | "total";

export interface Added {
  problem: AddProblem | null;
  /** Items in the batch now. */
  count: number;
  total: number | null;
  /** New ones of this call. */
  fresh: number;
  state: string | null;
  advanced: Advanced | undefined;
}

const ADD = routine({
  name: "add_items",
  takes: ["uuid", "text", "bigint", "text", "boolean"],
  gives: `problem text, count bigint, total bigint, fresh bigint, ${ADVANCED}`,
  declares: [
    "v_b record",
    "v_items jsonb := $4::jsonb",
    "v_size bigint := jsonb_array_length($4::jsonb)",
    "v_before bigint",
    "v_accepted bigint",
    "v_fresh bigint",
    "v_problem text",
    "v_closes boolean",
  ],
  first: `
${LOCK_BATCH("$1")}
select b.* into v_b from :schema.batches b where b.id = $1 and b.deleted_at is null;
if not found then return query select 'unknown', 0::bigint, null::bigint, 0::bigint, null::bigint, 0, false, null::text, null::text,
  null::smallint, null::text, null::text; return; end if;
select l.added into v_before from ${NEWEST("$1")} l;
select coalesce((select w.accepted from :schema.batch_writers w where w.batch_id = $1 and w.writer = $2), 0)
  into v_accepted;
v_fresh := greatest($3 + v_size - v_accepted, 0);
v_closes := v_b.closed_at is null and ($5 or v_before + v_fresh = v_b.total);
v_problem := case
  when v_fresh > 0 and v_b.state in ('done', 'cancelled') then 'ended'
  when v_fresh > 0 and v_b.closed_at is not null then 'closed'
  when v_fresh > 0 and $3 > v_accepted then 'gap'
  when v_before + v_fresh > v_b.total or (v_closes and v_before + v_fresh < v_b.total) then 'total'
end;
if v_problem is not null or (v_fresh = 0 and not v_closes) or v_b.finished_at is not null then
  return query select v_problem, v_before, v_b.total, 0::bigint, null::bigint, 0, false, v_b.state::text, v_b.kind::text,
    v_b.rank::smallint, v_b.owner::text, null::text;
  return;
end if;
if v_fresh > 0 then
  insert into :schema.batch_items (batch_id, seq, payload)
  select $1, v_before + e.place - (v_size - v_fresh), e.item
  from jsonb_array_elements(v_items) with ordinality as e (item, place) where e.place > v_size - v_fresh;
  insert into :schema.batch_writers as w (batch_id, writer, accepted) values ($1, $2, $3 + v_size)
  on conflict (batch_id, writer) do update set accepted = excluded.accepted;
end if;
update :schema.batches b set touched_at = :schema.clock(), closed_at = case when v_closes then :schema.clock() end
where b.id = $1 and (v_closes or b.touched_at < :schema.clock() - interval '10 seconds');`,
  body: `select null::text, v_before + v_fresh, v_b.total, v_fresh, a.* from ${advance({ what: "added", added: "v_fresh" })} a`,
});

export async function addItems(store: Store, { batchId, writer, from, items, close }: Addition): Promise<Added> {
  type Row = Advanced & { problem: AddProblem | null; count: string; total: string | null; fresh: string };
  const { rows } = await store.query<Row>(ADD, [batchId, writer, from, `[${items.join(",")}]`, close]);
  const { problem, count, total, fresh, ...advanced } = rows[0]!;
  return {
    problem,
    count: Number(count),
    total: total === null ? null : Number(total),
    fresh: Number(fresh),
    state: advanced.state,
    advanced: advanced.n === null ? undefined : advanced,
  };
}
