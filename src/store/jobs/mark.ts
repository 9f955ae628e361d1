// Light leases and how they end. A light lease is a claim that is written in its lease row only: the rows of its jobs
// still say `pending`. It exists between a claim of many short jobs and their settling, which deletes the rows anyway.
//
// The rule: whoever takes, changes or ends a pending row first keeps light claims out of its lane (a shared lock that
// light claims take exclusively, or not at all). Then it leaves out what light leases name, or marks their rows: from then
// on they are claims like any others. Whoever only looks leaves them out as well.
import { routine, type Store } from "../sql.ts";

/** The advisory lock of a lane. */
export const LANE_LOCK = (kind: string, rank: string): string =>
  `hashtextextended('holdfast lane ' || ${kind}, ${rank})`;

export const LIGHT_IDS = `(select unnest(light.job_ids) from :schema.leases light where light.light)`;

/** `leases`: a condition on leases `l`. */
export const MARK = (leases: string, lock = "for update of l"): string => `with due as materialized (
  select l.token, l.lease_ms, l.job_ids, l.claimed_at from :schema.leases l
  where l.light and ${leases} order by l.token ${lock}
),
marked as (
  update :schema.jobs j set state = 'running', token = d.token, attempt = j.attempt + 1,
    claim_count = j.claim_count + 1, started_at = d.claimed_at
  from due d cross join lateral unnest(d.job_ids) as u (id) where j.id = u.id and j.state = 'pending'
)
update :schema.leases l set light = false from due d where l.token = d.token and l.lease_ms = d.lease_ms`;

/** For routines that take pending rows; `lanes` is a select of lane locks. */
export const KEEP_OUT_LIGHT = (lanes: string): string => `
perform pg_advisory_xact_lock_shared(lane) from (${lanes}) as lanes (lane);`;

const MARK_TOKENS = routine({
  name: "mark_tokens",
  takes: ["bigint[]"],
  gives: "void",
  // It also runs inside transactions of other people.
  settings: ["lock_timeout = '100ms'"],
  body: MARK("l.token = any($1)"),
});

const MARK_JOBS = routine({
  name: "mark_jobs",
  takes: ["uuid[]"],
  gives: "void",
  first: KEEP_OUT_LIGHT(`select distinct ${LANE_LOCK("j.kind", "j.rank")} from :schema.jobs j where j.id = any($1)`),
  body: MARK("l.job_ids && $1"),
});

/** What these claims took is marked from now on; those that were not light, or are gone, stay as they are. */
export async function markTokens(store: Store, tokens: readonly string[]): Promise<void> {
  await store.query(MARK_TOKENS, [tokens]);
}

/** As part of a transaction: until its end nobody takes these jobs lightly either. */
export async function markJobs(store: Store, ids: readonly string[]): Promise<void> {
  await store.query(MARK_JOBS, [ids]);
}
