// What PostgreSQL has done so far: WAL written by the whole server, transactions of this database.
import pg from "pg";

/** Undefined for a contender that is not on PostgreSQL. */
export async function databaseWork(url) {
  if (!url.startsWith("postgres")) return undefined;
  const client = new pg.Client(url);
  await client.connect();
  return {
    async read() {
      const { rows } = await client.query(
        `select (pg_current_wal_lsn() - '0/0')::float8 as "walBytes", (xact_commit + xact_rollback)::float8 as transactions
         from pg_stat_database where datname = current_database()`,
      );
      return rows[0];
    },
    close: () => client.end(),
  };
}
