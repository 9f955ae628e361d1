// Whose turn a chore is: one row per chore, held by a token for the time of a run. The token is kept alive while the
// run goes on, so that a chore whose process died is free again within seconds.
import { asMillis, sql, type Store } from "../sql.ts";

/** Without a word from the holder for so long, the chore is anybody's. */
export const TURN_MS = 6_000;

const TAKE = sql`
insert into :schema.chores as c (name, token, run_by, started_at, expires_at, next_at)
values ($1, $2::bigint, $3, :schema.clock(), :schema.clock() + ${TURN_MS} * interval '1 millisecond', :schema.clock())
on conflict (name) do update set token = excluded.token, run_by = excluded.run_by, started_at = excluded.started_at,
  expires_at = excluded.expires_at
where case when c.token is null then $4::boolean or c.next_at <= :schema.clock()
  -- Its process died in the middle: what it was at is not done, whenever the next one would be due.
  else c.expires_at < :schema.clock() end
returning failures`;

const ASK = sql`
select run_by, token is not null as held,
  ${asMillis("case when token is null then next_at else expires_at end - :schema.clock()")} as in_ms
from :schema.chores where name = $1`;

const KEEP = sql`
update :schema.chores set expires_at = :schema.clock() + ${TURN_MS} * interval '1 millisecond'
where name = $1 and token = $2::bigint`;

const END = sql`
with ended as (
  update :schema.chores set token = null, run_by = null, expires_at = null, finished_at = :schema.clock(),
    succeeded_at = case when $4::text is null then :schema.clock() else succeeded_at end,
    failures = case when $4::text is null then 0 else failures + 1 end,
    error = $4::text,
    next_at = :schema.clock() + $3::double precision * interval '1 millisecond'
  where name = $1 and token = $2::bigint
  returning 1
)
select count(*)::integer as mine from ended`;

const LET_GO = sql`
update :schema.chores set token = null, run_by = null, expires_at = null where token is not null`;

const OVERDUE = sql`
select name from :schema.chores where token is not null and expires_at < :schema.clock()`;

export type Turn =
  | { taken: true; failures: number }
  /** Worth asking again in `inMs`; `by`: who has it. */
  | { taken: false; inMs: number; by: string | null };

export interface TurnInput {
  chore: string;
  token: string;
  by: string;
  /** Now, even if it is not due. */
  atOnce: boolean;
}

export async function takeTurn(store: Store, { chore, token, by, atOnce }: TurnInput): Promise<Turn> {
  const taken = await store.query<{ failures: number }>(TAKE, [chore, token, by, atOnce]);
  if (taken.rows[0]) return { taken: true, failures: taken.rows[0].failures };
  const { rows } = await store.query<{ run_by: string | null; held: boolean; in_ms: number }>(ASK, [chore]);
  const found = rows[0];
  // Somebody ended it between the two questions.
  if (!found) return { taken: false, inMs: 0, by: null };
  return { taken: false, inMs: Math.max(0, found.in_ms), by: found.held ? found.run_by : null };
}

/** False: another process has it now. */
export async function keepTurn(store: Store, chore: string, token: string): Promise<boolean> {
  return (await store.query(KEEP, [chore, token])).rowCount > 0;
}

export interface TurnEnd {
  chore: string;
  token: string;
  nextInMs: number;
  error: string | null;
}

/** False: it was not ours any more, and what comes next is for the one who has it. */
export async function endTurn(store: Store, { chore, token, nextInMs, error }: TurnEnd): Promise<boolean> {
  const { rows } = await store.query<{ mine: number }>(END, [chore, token, nextInMs, error]);
  return rows[0]!.mine > 0;
}

/** Embedded tier, at the start: whoever held them is gone. */
export async function letGoOfTurns(store: Store): Promise<void> {
  await store.query(LET_GO);
}

/** Chores whose process fell silent in the middle of a run. */
export async function overdueTurns(store: Store): Promise<string[]> {
  return (await store.query<{ name: string }>(OVERDUE)).rows.map((row) => row.name);
}
