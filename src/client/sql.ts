// hf.sql: the database for an app's own tables, beside Holdfast's. `:schema` in a text is Holdfast's schema, quoted.
import type { Db, Queryable, QueryResult } from "../db/db.ts";
import { type AppMigration, assertApp, migrateApp } from "../migrate/app-migrations.ts";
import { quoteSchema } from "../shared/quote-schema.ts";

/** Statements inside one transaction of `hf.sql`. */
export interface SqlTransaction {
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
}

/** `hf.sql`: the database, for tables of your own beside Holdfast's. `:schema` in a text is Holdfast's schema. */
export interface Sql extends SqlTransaction {
  /** Commits when `work` returns, rolls back when it throws. Hand `tx` to `hf.enqueue(…, { tx })` for one commit. */
  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T>;
  /** The same texts, with `:schema`, inside another transaction: that of `job.transaction`, of a chunk or a step. */
  on(tx: SqlTransaction): SqlTransaction;
  /**
   * Applies what is new in an app's list of migrations; returns the names of those. With `open({ migrate: false })` it
   * throws instead if there is something new.
   */
  migrate(app: string, migrations: readonly AppMigration[]): Promise<string[]>;
}

export function makeSql(db: Db, schema: string, mayMigrate: boolean): Sql {
  const quoted = quoteSchema(schema);
  const on = (connection: Pick<Queryable, "query">): SqlTransaction => ({
    query: (text, values) =>
      connection.query(
        text.replaceAll(":schema", () => quoted),
        values,
      ),
  });
  return {
    ...on(db),
    transaction: (work) => db.transaction((tx) => work(on(tx))),
    on,
    async migrate(app, migrations) {
      if (mayMigrate) return await migrateApp(db, schema, app, migrations);
      await assertApp(db, schema, app, migrations);
      return [];
    },
  };
}
