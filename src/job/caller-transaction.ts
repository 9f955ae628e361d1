// The shapes of the transactions that callers may hand over, one per library. Types only: db/caller-transaction.ts tells
// them apart and runs statements on them.

/** `pg` client or pool client, PGlite's transaction, TypeORM's manager, anything with `query(text, values)`. */
export interface QueryTransaction {
  query(text: string, values?: unknown[]): PromiseLike<{ rows: unknown[] } | unknown[]>;
  /** A `pg` Pool has this, and is no transaction: each of its queries may run on another connection. */
  readonly totalCount?: never;
}
/** postgres.js: the `sql` of `sql.begin(async (sql) => …)`. */
export interface PostgresJsTransaction {
  unsafe(text: string, values?: unknown[]): PromiseLike<unknown>;
}
/** Knex: the `trx` of `knex.transaction(async (trx) => …)`. */
export interface KnexTransaction {
  raw(text: string, bindings?: unknown[]): PromiseLike<unknown>;
}
/** Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`. */
export interface KyselyTransaction {
  executeQuery(compiled: unknown): PromiseLike<{ rows: unknown[] }>;
}
/** Prisma: the `tx` of `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
  $executeRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}
/** Drizzle: the `tx` of `db.transaction(async (tx) => …)`, wrapped by `fromDrizzle(tx, sql)`. */
export interface DrizzleTransaction {
  execute(query: unknown): PromiseLike<unknown>;
}
/** The `sql` tag of drizzle-orm. */
export interface DrizzleSql {
  (strings: TemplateStringsArray, ...values: unknown[]): unknown;
  raw(text: string): unknown;
  param(value: unknown): unknown;
}

/**
 * A transaction of the caller's: a `pg` client, a Kysely, Knex or Prisma transaction, or anything with `query(text,
 * values)`.
 */
export type Transaction =
  QueryTransaction | PostgresJsTransaction | KnexTransaction | KyselyTransaction | PrismaTransaction;
