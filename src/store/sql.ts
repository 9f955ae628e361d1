// How SQL meets the schema and the connection. A statement is written once with `:schema`, its text for a schema is
// made once, and a Store is "this schema on this connection": the Db's own, or a caller's transaction.
//
// Hot statements are routines: the same text, kept in the database as a function, so that it is planned once per
// session and not once per call (a plan costs a millisecond). The plan is pinned to index scans and nested loops: made on
// an empty table it is the same as on a huge one. The function's name carries the hash of its text, so that processes
// of two versions can work side by side, and a pooler does not matter.
import { createHash } from "node:crypto";
import type { Db, QueryOptions, QueryResult, Queryable } from "../db/db.ts";
import { quoteSchema } from "../shared/quote-schema.ts";

export interface Statement {
  textIn(quotedSchema: string): string;
}

export function sql(strings: TemplateStringsArray, ...parts: (string | number)[]): Statement {
  const text = String.raw({ raw: strings.raw }, ...parts);
  const texts = new Map<string, string>();
  return {
    textIn(quotedSchema) {
      let made = texts.get(quotedSchema);
      if (made === undefined) texts.set(quotedSchema, (made = text.replaceAll(":schema", () => quotedSchema)));
      return made;
    },
  };
}

export interface Routine extends Statement {
  /** Without the schema. */
  readonly name: string;
  createIn(quotedSchema: string): string;
}

export interface RoutineInput {
  name: string;
  /** The types of $1, $2, … */
  takes: string[];
  /** What a row of the answer looks like, or "void", or "count" for the number of rows it changed. */
  gives: string;
  /** Settings while it runs, like `lock_timeout = '1s'`: afterwards its transaction has its own again. */
  settings?: string[];
  /** Variables of its own, with their types. */
  declares?: string[];
  /** Runs before the statement: settings of its transaction, and locks that its snapshot must be younger than. */
  first?: string;
  body: string;
  /** Of a routine that gives a count: runs after the statement, and knows how many rows that `changed`. */
  after?: string;
  /** With the rights of whoever made the schema: for what every role may ask for and only the owner may do. */
  asOwner?: boolean;
  /** Another way to the same answer, taken while a condition holds. */
  instead?: { when: string; first: string; body: string };
}

const PINNED = [
  "plan_cache_mode = force_generic_plan",
  "enable_seqscan = off",
  "enable_bitmapscan = off",
  "enable_hashjoin = off",
  "enable_mergejoin = off",
  "search_path = pg_catalog",
];

export function routine({
  name,
  takes,
  gives,
  declares = [],
  first = "",
  body,
  after = "",
  asOwner,
  settings = [],
  instead,
}: RoutineInput): Routine {
  const returns = gives === "void" ? "void" : gives === "count" ? "bigint" : `table (${gives})`;
  const work =
    gives === "void"
      ? `${body};`
      : gives === "count"
        ? `${chosen(body, instead)} get diagnostics changed = row_count; ${after} return changed;`
        : chosen(`return query ${body}`, instead && { ...instead, body: `return query ${instead.body}` });
  const variables = [...(gives === "count" ? ["changed bigint"] : []), ...declares];
  const declared = variables.length > 0 ? `declare ${variables.join("; ")};` : "";
  const text = `(${takes.join(", ")}) returns ${returns} language plpgsql${asOwner ? " security definer" : ""}
${[...PINNED, ...settings].map((setting) => `set ${setting}`).join(" ")}
as :quote
#variable_conflict use_column
${declared}
begin
${first}
${work}
end
:quote`;
  const fullName = `${name}_${createHash("sha256").update(text).digest("hex").slice(0, 10)}`;
  const places = takes.map((_, index) => `$${index + 1}`).join(", ");
  const call = gives.includes(" ") ? `select * from` : `select`;
  const made: Routine = {
    name: fullName,
    textIn: sql`${call} :schema.${fullName}(${places})${gives === "count" ? " as count" : ""}`.textIn,
    createIn(quotedSchema) {
      // A schema may have any name: the quote around the body must not be part of it.
      let tag = "routine";
      while (quotedSchema.includes(tag)) tag += "_";
      return `create or replace function :schema.${fullName}${text}`
        .replaceAll(":quote", `$${tag}$`.replaceAll("$", "$$$$"))
        .replaceAll(":schema", () => quotedSchema);
    },
  };
  ROUTINES.push(made);
  return made;
}

function chosen(body: string, instead: RoutineInput["instead"]): string {
  return instead ? `if ${instead.when} then ${instead.first} ${instead.body}; else ${body}; end if;` : `${body};`;
}

/** Every routine of this version; filled as the verbs' files are loaded. */
export const ROUTINES: Routine[] = [];

export interface Store {
  readonly schema: string;
  readonly tier: Db["tier"];
  query<Row>(statement: Statement, values?: readonly unknown[], options?: QueryOptions): Promise<QueryResult<Row>>;
  /** See Db.copyIn. Not on somebody else's connection. */
  readonly copyIn: ((statement: Statement, parts: Iterable<string>) => Promise<void>) | undefined;
  /** See Db.assertOutside. */
  assertOutside(): void;
  /** `tx` is the connection under the store that `work` is given. */
  transaction<T>(work: (store: Store, tx: Queryable) => Promise<T>): Promise<T>;
  /** The same schema on somebody else's connection. */
  on(connection: Queryable): Store;
}

export function makeStore(db: Db, schema: string): Store {
  const quoted = quoteSchema(schema);
  const onConnection = (connection: Queryable): Store => ({
    schema,
    tier: db.tier,
    query: (statement, values) => connection.query(statement.textIn(quoted), values),
    copyIn: undefined,
    assertOutside: () => {},
    transaction: (work) => work(onConnection(connection), connection),
    on: onConnection,
  });
  return {
    schema,
    tier: db.tier,
    query: (statement, values, options) => db.query(statement.textIn(quoted), values, options),
    copyIn: db.copyIn && ((statement, parts) => db.copyIn!(statement.textIn(quoted), parts)),
    assertOutside: () => db.assertOutside(),
    transaction: (work) => db.transaction((tx) => work(onConnection(tx), tx)),
    on: onConnection,
  };
}

/** A time as it is read: no stored one, not even an infinite one, may stop those who look at it beside others. */
export const bounded = (expression: string): string =>
  `least(greatest(${expression}, timestamptz '0001-01-02 00:00:00+00'), timestamptz '9999-12-31 00:00:00+00')`;
/**
 * Microseconds since 1970: exact where a Date would round. Through double precision, because numeric costs more than
 * the rest of a row; its 53 bits keep microseconds exact until the year 2106.
 */
export const asMicros = (expression: string): string =>
  `round(date_part('epoch', ${bounded(expression)}) * 1e6)::bigint`;
export const fromMicros = (expression: string): string =>
  `(timestamptz 'epoch' + ${expression} * interval '1 microsecond')`;
/** Milliseconds of an interval, as a number. */
export const asMillis = (expression: string): string => `(date_part('epoch', ${expression}) * 1e3)`;
/** A UUIDv7 made by the database, for rows that no client could have named. */
export const sqlUuidv7 = `encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid`;

/** A value in a line of COPY. */
export const copyText = (value: string): string => value.replaceAll(COPY_SPECIALS, (found) => COPY_ESCAPES[found]!);

const COPY_SPECIALS = /[\\\n\r\t]/g;
const COPY_ESCAPES: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
