// Gives a dead job a new life: a full budget, the history of its failures kept. In a group it joins at the end.
import { codeOf } from "../../db/retryable.ts";
import { sql, type Store } from "../sql.ts";

const RETRY = sql`
with mine as materialized (
  select j.id, j.group_key, j.kind, j.coalesce_key from :schema.jobs j
  where j.id = $1::uuid and j.state = 'dead' for update of j
),
taken as (
  select 1 from mine m join :schema.jobs o
    on o.kind = m.kind and o.coalesce_key = m.coalesce_key and o.hold <> 3 where m.coalesce_key is not null
),
g as (
  insert into :schema.job_groups as l (name, head, tail)
  select group_key, id, 1 from mine where group_key is not null and not exists (select 1 from taken)
  on conflict (name) do update set tail = l.tail + 1, head = coalesce(l.head, excluded.head)
  returning name, head, tail
),
revived as (
  update :schema.jobs j set state = 'pending', attempt = 0, crash_count = 0, run_at = :schema.clock(),
    hold = case when m.group_key is null or g.head = m.id then 0 else 1 end, group_seq = g.tail
  from mine m left join g on g.name = m.group_key
  where j.id = m.id and not exists (select 1 from taken)
  returning j.id
)
select (select count(*) from mine)::integer as dead, (select count(*) from taken)::integer as taken,
  (select count(*) from revived)::integer as revived`;

interface Retried {
  dead: number;
  taken: number;
  revived: number;
}

const UNIQUE_VIOLATION = "23505";

export type RetryResult = "retried" | "not-dead" | "superseded";

export async function retryIfDead(store: Store, id: string): Promise<RetryResult> {
  let found: Retried;
  try {
    found = (await store.query<Retried>(RETRY, [id])).rows[0]!;
  } catch (error) {
    // An enqueue with the same coalesce key was committed meanwhile.
    if (codeOf(error) === UNIQUE_VIOLATION) return "superseded";
    throw error;
  }
  if (found.revived === 1) return "retried";
  return found.taken > 0 ? "superseded" : "not-dead";
}
