// Which generation of a unit is current, and which is being built. A generation becomes current at most once, and never
// an older one after a newer.
import { sql, type Store } from "../sql.ts";

const BEGIN = sql`
insert into :schema.generations as g (unit, newest) values ($1, 1)
on conflict (unit) do update set newest = g.newest + 1
returning newest::text as number, current::text as current`;

const CURRENT = sql`select current::text as current from :schema.generations where unit = $1`;

const SWITCH = sql`
update :schema.generations set current = $2::bigint, switched_at = :schema.clock()
where unit = $1 and current < $2::bigint`;

export async function beginGeneration(store: Store, unit: string): Promise<{ number: string; current: string }> {
  return (await store.query<{ number: string; current: string }>(BEGIN, [unit])).rows[0]!;
}

/** "0": none yet. */
export async function currentGeneration(store: Store, unit: string): Promise<string> {
  return (await store.query<{ current: string }>(CURRENT, [unit])).rows[0]?.current ?? "0";
}

/** False if this or a newer generation is current already. */
export async function switchIfNewer(store: Store, unit: string, number: string): Promise<boolean> {
  return (await store.query(SWITCH, [unit, number])).rowCount === 1;
}
