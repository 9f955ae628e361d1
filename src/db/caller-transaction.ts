// A caller's own transaction, whatever library opened it, as the one thing Holdfast needs: run this text with these
// values. Told apart by shape, so that none of those libraries is a dependency.
//
// The statements that run here take one text parameter, used once: that is what all of them hand on unchanged.
// What is no transaction (a pool, a database handle) is refused: the job would be committed on its own.
import type {
  DrizzleSql,
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  PostgresJsTransaction,
  PrismaTransaction,
  QueryTransaction,
  Transaction,
} from "../job/caller-transaction.ts";
import type { QueryResult, Queryable } from "./db.ts";
import { codeOf } from "./retryable.ts";
import { OptionInvalid } from "../errors.ts";

export function fromTransaction(tx: Transaction): Queryable {
  const run = runnerOf(tx);
  refuseWithoutTransaction(tx);
  return {
    async query<Row>(text: string, values: readonly unknown[] = []) {
      let answer: unknown;
      try {
        answer = await run(text, [...values]);
      } catch (error) {
        throw isWithoutSchema(error) ? otherDatabase(error) : error;
      }
      return toResult<Row>(answer);
    },
  };
}

/**
 * A Drizzle transaction as one that `tx` takes: `hf.enqueue(kind, payload, { tx: fromDrizzle(tx, sql) })`. The `sql` tag is
 * that of your own "drizzle-orm": what it makes are classes of that copy of the library.
 */
export function fromDrizzle(tx: DrizzleTransaction, sql: DrizzleSql): QueryTransaction {
  if (!has(tx, "execute") || !has(sql, "raw")) {
    throw new OptionInvalid("fromDrizzle() did not get a Drizzle transaction and the sql tag.", DRIZZLE_HINT);
  }
  if (!has(tx, "rollback")) throw withoutTransaction("a Drizzle database", DRIZZLE_HINT);
  return {
    async query(text, values = []) {
      const { first, rest } = takeApart(text, values);
      let query = sql`${sql.raw(first)}`;
      for (const { value, after } of rest) query = sql`${query}${sql.param(value)}${sql.raw(after)}`;
      return rowsOf(await tx.execute(query));
    },
  };
}

const DRIZZLE_HINT = 'Write fromDrizzle(tx, sql), with the tx of db.transaction() and the sql of "drizzle-orm".';

/** Comments, texts and names, which may hold what looks like a parameter (a schema may have any name); or one. */
const PARAMETER = /--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\d+)/g;

/** For libraries with placeholders of their own: the text around its parameters, and the value at each. */
function takeApart(text: string, values: unknown[]): { first: string; rest: { value: unknown; after: string }[] } {
  const found = [...text.matchAll(PARAMETER)].filter((match) => match[1] !== undefined);
  const rest = found.map((match, index) => ({
    value: values[Number(match[1]) - 1],
    after: text.slice(match.index + match[0].length, found[index + 1]?.index),
  }));
  return { first: text.slice(0, found[0]?.index), rest };
}

/** The call of a routine without an answer: its column is of type void, which Prisma cannot read. */
const ANSWERS_NOTHING = /^\s*select "(?:[^"]|"")+"\.\w+\(\$1\)\s*$/;

type Run = (text: string, values: unknown[]) => PromiseLike<unknown>;

function runnerOf(tx: Transaction): Run {
  if (has<KyselyTransaction>(tx, "executeQuery")) return (text, values) => tx.executeQuery(compiled(text, values));
  if (has<PrismaTransaction>(tx, "$queryRawUnsafe")) {
    return async (text, values) => {
      if (!ANSWERS_NOTHING.test(text)) return await tx.$queryRawUnsafe(text, ...values);
      await tx.$executeRawUnsafe(text, ...values);
      return [];
    };
  }
  if (has<PostgresJsTransaction>(tx, "unsafe")) return (text, values) => tx.unsafe(text, values);
  if (has<KnexTransaction>(tx, "raw")) {
    return (text, values) => {
      const { first, rest } = takeApart(text, values);
      // A question mark that is not a parameter would be taken for one.
      const parts = [first, ...rest.map(({ after }) => after)].map((part) => part.replaceAll("?", String.raw`\?`));
      return tx.raw(
        parts.join("?"),
        rest.map(({ value }) => value),
      );
    };
  }
  if (has<QueryTransaction>(tx, "query")) return (text, values) => tx.query(text, values);
  if (has<DrizzleTransaction>(tx, "execute")) {
    throw new OptionInvalid("tx is a transaction of Drizzle that was not wrapped.", DRIZZLE_HINT);
  }
  throw new OptionInvalid(
    `tx is ${nameOf(tx)}, which is no transaction that Holdfast knows.`,
    "Give the transaction of pg, PGlite, Kysely, Knex, Prisma, postgres.js or TypeORM, fromDrizzle(tx, sql), or an object with query(text, values).",
  );
}

/** What Kysely's own CompiledQuery.raw(text, values) makes. */
const compiled = (text: string, values: unknown[]): object => ({
  sql: text,
  parameters: values,
  query: { kind: "RawNode", sqlFragments: [text], parameters: [] },
  queryId: { queryId: "holdfast" },
});

/** Things with the shape of their library's transaction that are none. */
const LOOKALIKES: readonly { what: string; hint: string; isIt: (tx: object) => boolean }[] = [
  {
    what: "a pg Pool",
    hint: "Give the client: const client = await pool.connect(), then begin, enqueue and commit on it.",
    isIt: (tx) => has(tx, "connect") && typeof get(tx, "totalCount") === "number",
  },
  {
    what: "a pg client without an open transaction",
    hint: 'Await client.query("begin") first.',
    isIt: (tx) =>
      has<{ getTransactionStatus(): unknown }>(tx, "getTransactionStatus") && tx.getTransactionStatus() === "I",
  },
  {
    what: "a PGlite database",
    hint: "Give the tx of db.transaction(async (tx) => …).",
    isIt: (tx) => has(tx, "transaction") && get(tx, "waitReady") !== undefined,
  },
  {
    what: "a Kysely database",
    hint: "Give the trx of db.transaction().execute(async (trx) => …).",
    isIt: (tx) => has(tx, "executeQuery") && get(tx, "isTransaction") === false,
  },
  {
    what: "a Knex database",
    hint: "Give the trx of knex.transaction(async (trx) => …).",
    isIt: (tx) => has(tx, "raw") && has(tx, "transaction") && get(tx, "isTransaction") !== true,
  },
  {
    what: "a Prisma client",
    hint: "Give the tx of prisma.$transaction(async (tx) => …).",
    isIt: (tx) => has(tx, "$queryRawUnsafe") && has(tx, "$connect"),
  },
  {
    what: "the sql of postgres.js outside a transaction",
    hint: "Give the inner one: sql.begin(async (sql) => …).",
    isIt: (tx) => has(tx, "unsafe") && has(tx, "begin"),
  },
  {
    what: "TypeORM without an open transaction",
    hint: "Give the manager of dataSource.transaction(async (manager) => …).",
    isIt: (tx) =>
      get(tx, "isTransactionActive") === false ||
      (has(tx, "getRepository") && get(get(tx, "queryRunner"), "isTransactionActive") !== true),
  },
];

function refuseWithoutTransaction(tx: object): void {
  const found = LOOKALIKES.find(({ isIt }) => isIt(tx));
  if (found) throw withoutTransaction(found.what, found.hint);
}

const withoutTransaction = (what: string, hint: string): OptionInvalid =>
  new OptionInvalid(`tx is ${what}: the job would not commit or roll back with your rows.`, hint);

function get(from: unknown, name: string): unknown {
  return from !== null && (typeof from === "object" || typeof from === "function")
    ? Reflect.get(from, name)
    : undefined;
}

function has<Shape>(tx: unknown, name: keyof Shape & string): tx is Shape;
function has(tx: unknown, name: string): boolean;
function has(tx: unknown, name: string): boolean {
  return typeof get(tx, name) === "function";
}

function nameOf(value: unknown): string {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return String(value);
  const name: unknown = get(get(value, "constructor"), "name");
  return typeof name === "string" && name !== "" && name !== "Object" ? `a ${name}` : "an object";
}

/** Row lists come as `{ rows }` or as an array, by library. */
function rowsOf(answer: unknown): object[] {
  const rows = Array.isArray(answer) ? answer : get(answer, "rows");
  if (Array.isArray(rows)) return [...rows];
  throw new OptionInvalid(
    "tx ran the statement and did not answer with rows.",
    "Let query(text, values) return a promise of { rows } or of the rows.",
  );
}

function toResult<Row>(answer: unknown): QueryResult<Row> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as in every Queryable: the statement knows its rows
  const rows = rowsOf(answer).map(withOurNames) as Row[];
  return { rows, rowCount: rows.length };
}

/** Libraries can be told to change the case of column names; ours are one lower-case word each. */
function withOurNames(row: object): object {
  if ("id" in row) return row;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));
}

/** No such schema, table, function. */
const NOT_THERE = ["3F000", "42P01", "42883"];

/** Drizzle has the server's error as its cause. */
function isWithoutSchema(error: unknown): boolean {
  return NOT_THERE.includes(codeOf(get(error, "cause")) ?? codeOf(error) ?? "");
}

const otherDatabase = (cause: unknown): OptionInvalid =>
  new OptionInvalid(
    "The database of tx has no Holdfast schema of that name and version: it is not the one that open() was given.",
    "Open Holdfast on the database in which the transaction is.",
    { cause },
  );
