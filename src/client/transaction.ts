// A caller's own transaction, whatever library opened it, as the one thing Holdfast needs: run this text with these
// values. Told apart by shape, so that none of those libraries is a dependency.
//
// Every statement that runs here takes one text parameter, used once: that is what all of them hand on unchanged.
import type { QueryResult, Queryable } from "../db/db.ts";
import { OptionInvalid } from "../errors.ts";

/** `pg` client or pool client, PGlite or its transaction, anything with `query(text, values)`. */
export interface QueryTransaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
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
  executeQuery(compiled: never): Promise<{ rows: unknown[] }>;
}
/** Prisma: the `tx` of `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}
/** Drizzle: the `tx` of `db.transaction(async (tx) => …)`, wrapped by `fromDrizzle(tx, sql)`. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
}

export type Transaction =
  QueryTransaction | PostgresJsTransaction | KnexTransaction | KyselyTransaction | PrismaTransaction;

export function fromTransaction(tx: Transaction): Queryable {
  if (has(tx, "executeQuery")) return fromKysely(tx as KyselyTransaction);
  if (has(tx, "$queryRawUnsafe")) return fromPrisma(tx as PrismaTransaction);
  if (has(tx, "unsafe")) return fromPostgresJs(tx as PostgresJsTransaction);
  if (has(tx, "raw")) return fromKnex(tx as KnexTransaction);
  if (has(tx, "query")) return fromQuery(tx as QueryTransaction);
  throw new OptionInvalid(
    "tx is not a transaction Holdfast knows.",
    "Give something with query(text, values), or an adapter: a pg client, PGlite, Kysely, Knex, Prisma, postgres.js, fromDrizzle(tx, sql).",
  );
}

function has(tx: unknown, name: string): boolean {
  return (
    tx !== null && (typeof tx === "object" || typeof tx === "function") && typeof Reflect.get(tx, name) === "function"
  );
}

/** Row lists come as `{ rows }` or as an array, by library. */
function toResult<Row>(answer: unknown): QueryResult<Row> {
  const rows = (Array.isArray(answer) ? answer : ((answer as { rows?: unknown[] })?.rows ?? [])) as Row[];
  return { rows: [...rows], rowCount: rows.length };
}

const fromQuery = (tx: QueryTransaction): Queryable => ({
  query: async <Row>(text: string, values: readonly unknown[] = []) => toResult<Row>(await tx.query(text, [...values])),
});

const fromPostgresJs = (tx: PostgresJsTransaction): Queryable => ({
  query: async <Row>(text: string, values: readonly unknown[] = []) =>
    toResult<Row>(await tx.unsafe(text, [...values])),
});

const fromPrisma = (tx: PrismaTransaction): Queryable => ({
  query: async <Row>(text: string, values: readonly unknown[] = []) =>
    toResult<Row>(await tx.$queryRawUnsafe(text, ...values)),
});

const fromKnex = (tx: KnexTransaction): Queryable => ({
  // Knex has its own placeholder; a question mark of ours would be taken for one.
  query: async <Row>(text: string, values: readonly unknown[] = []) =>
    toResult<Row>(await tx.raw(text.replaceAll("?", "\\?").replaceAll("$1", "?"), [...values])),
});

const fromKysely = (tx: KyselyTransaction): Queryable => ({
  query: async <Row>(text: string, values: readonly unknown[] = []) => {
    const compiled = {
      sql: text,
      parameters: [...values],
      query: { kind: "RawNode", sqlFragments: [text], parameters: [] },
      queryId: { queryId: "holdfast" },
    };
    return toResult<Row>(await tx.executeQuery(compiled as never));
  },
});

/** Drizzle's `sql` tag must come from the caller: its chunks are classes of that copy of the library. */
export function fromDrizzle(
  tx: DrizzleTransaction,
  sql: { raw(text: string): unknown; (strings: TemplateStringsArray, ...values: unknown[]): unknown },
): QueryTransaction {
  return {
    async query(text, values = []) {
      const [before = "", after = ""] = text.split("$1");
      const strings = Object.assign(["", "", "", ""], { raw: ["", "", "", ""] }) as unknown as TemplateStringsArray;
      return toResult(await tx.execute(sql(strings, sql.raw(before), values[0], sql.raw(after)) as never));
    },
  };
}
