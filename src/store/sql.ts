// How SQL meets the schema and the connection. A statement is written once with `:schema`, its text for a schema is
// made once, and a Store is "this schema on this connection": the Db's own, or a caller's transaction.
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

export interface Store {
  readonly schema: string;
  readonly tier: Db["tier"];
  query<Row>(statement: Statement, values?: readonly unknown[], options?: QueryOptions): Promise<QueryResult<Row>>;
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>;
  /** The same schema on somebody else's connection. */
  on(connection: Queryable): Store;
}

export function makeStore(db: Db, schema: string): Store {
  const quoted = quoteSchema(schema);
  const onConnection = (connection: Queryable): Store => ({
    schema,
    tier: db.tier,
    query: (statement, values) => connection.query(statement.textIn(quoted), values),
    transaction: (work) => work(onConnection(connection)),
    on: onConnection,
  });
  return {
    schema,
    tier: db.tier,
    query: (statement, values, options) => db.query(statement.textIn(quoted), values, options),
    transaction: (work) => db.transaction((tx) => work(onConnection(tx))),
    on: onConnection,
  };
}

/**
 * Microseconds since 1970: exact where a Date would round. Through double precision, because numeric costs more than
 * the rest of a row; its 53 bits keep microseconds exact until the year 2106.
 */
export const asMicros = (expression: string): string => `round(date_part('epoch', ${expression}) * 1e6)::bigint`;
export const fromMicros = (expression: string): string =>
  `(timestamptz 'epoch' + ${expression} * interval '1 microsecond')`;
/** Milliseconds of an interval, as a number. */
export const asMillis = (expression: string): string => `(date_part('epoch', ${expression}) * 1e3)`;
/** A UUIDv7 made by the database, for rows that no client could have named. */
export const sqlUuidv7 = `encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid`;
