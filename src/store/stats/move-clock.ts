// Moves the schema's clock, for tests: everything asks `clock()`, so "in 31 minutes" is a statement away.
//
// Whoever is alive is taken to have gone on beating meanwhile: leases and workers' beats move along, so that a jump
// does not make anybody look dead.
import { sql, type Statement, type Store } from "../sql.ts";

const AHEAD = sql`
select round(date_part('epoch', :schema.clock() - statement_timestamp()) * 1e3)::bigint as ahead_ms`;

const LEASES_ALONG = sql`
update :schema.leases set expires_at = expires_at + $1::bigint * interval '1 millisecond'`;

const WORKERS_ALONG = sql`
update :schema.workers set beat_at = beat_at + $1::bigint * interval '1 millisecond'`;

const CHORES_ALONG = sql`
update :schema.chores set expires_at = expires_at + $1::bigint * interval '1 millisecond' where token is not null`;

const clockAhead = (ms: bigint): Statement => ({
  textIn: (quotedSchema) =>
    `create or replace function ${quotedSchema}.clock() returns timestamptz language sql stable
     as 'select pg_catalog.statement_timestamp() + ${ms} * interval ''1 millisecond'''`,
});

/** By so many milliseconds, forward or back. It goes on ticking from there. */
export async function moveClock(store: Store, byMs: number): Promise<void> {
  await store.transaction(async (tx) => {
    const { rows } = await tx.query<{ ahead_ms: string }>(AHEAD);
    await tx.query(clockAhead(BigInt(rows[0]!.ahead_ms) + BigInt(Math.round(byMs))));
    await tx.query(LEASES_ALONG, [Math.round(byMs)]);
    await tx.query(WORKERS_ALONG, [Math.round(byMs)]);
    await tx.query(CHORES_ALONG, [Math.round(byMs)]);
  });
}
