// What is no transaction is refused before anything is stored: a job that is committed on its own, when its caller
// believes otherwise, is the fault that { tx } is there to prevent.
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import knexOf from "knex";
import { Kysely, PostgresDialect } from "kysely";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { fromDrizzle, OptionInvalid, type Transaction } from "#src/index.js";
import { createDatabase } from "../../support/database.ts";
import { sendReceipt, useShop } from "./contract.ts";

const shop = useShop();
let pool: Pool;
beforeAll(() => {
  pool = new Pool({ connectionString: shop.url, max: 4 });
});
afterAll(() => pool.end());
afterEach(async () => {
  expect((await shop.query("select 1 from holdfast.jobs")).rows, "something was stored").toEqual([]);
});

async function refusedBy(call: Promise<unknown>): Promise<OptionInvalid> {
  const error: unknown = await call.catch((caught: unknown) => caught);
  if (error instanceof OptionInvalid) return error;
  throw new Error("It was not refused", { cause: error });
}

async function refusal(tx: Transaction): Promise<OptionInvalid> {
  const error = await refusedBy(shop.hf.enqueue(sendReceipt, { orderId: "x" }, { tx }));
  const many = shop.hf.enqueueMany(sendReceipt, [{ payload: { orderId: "x" } }], { tx });
  expect(await refusedBy(many)).toEqual(error);
  return error;
}

const NO_ROWS = { query: () => Promise.resolve([]) };

test("a pg pool is refused, by its type as well", async () => {
  // @ts-expect-error -- each query of a pool may run on another connection
  const error = await refusal(pool);
  expect(error.message).toBe("tx is a pg Pool: the job would not commit or roll back with your rows.");
  expect(error.hint).toContain("pool.connect()");
});

test("a pg client is refused before its begin and after its commit", async () => {
  const client = new Client({ connectionString: shop.url });
  await client.connect();
  try {
    expect((await refusal(client)).message).toContain("a pg client without an open transaction");
    await client.query("begin");
    await shop.hf.enqueue(sendReceipt, { orderId: "x" }, { tx: client });
    await client.query("rollback");
    expect((await refusal(client)).hint).toContain('client.query("begin")');
  } finally {
    await client.end();
  }
});

test("a Kysely database is refused", async () => {
  const db = new Kysely<{ orders: { id: string } }>({ dialect: new PostgresDialect({ pool }) });
  expect((await refusal(db)).message).toContain("a Kysely database");
});

test("a Knex database is refused", async () => {
  const knex = knexOf({ client: "pg", connection: shop.url });
  expect((await refusal(knex)).message).toContain("a Knex database");
  await knex.destroy();
});

test("the outer sql of postgres.js is refused", async () => {
  const outer = postgres(shop.url);
  expect((await refusal(outer)).message).toContain("the sql of postgres.js outside a transaction");
  await outer.end();
});

test("a Drizzle database is refused, and a Drizzle transaction that was not wrapped", async () => {
  const db = drizzle({ client: pool });
  expect(() => fromDrizzle(db, sql)).toThrow("a Drizzle database");
  await db.transaction(async (tx) => {
    // @ts-expect-error -- it has no query(text, values)
    expect((await refusal(tx)).hint).toContain("fromDrizzle(tx, sql)");
    // @ts-expect-error -- the tag is missing
    expect(() => fromDrizzle(tx)).toThrow(OptionInvalid);
  });
});

test("a Prisma client is refused, and TypeORM outside a transaction", async () => {
  const { query: run } = NO_ROWS;
  const prisma = { $queryRawUnsafe: run, $executeRawUnsafe: run, $connect: run };
  expect((await refusal(prisma)).message).toContain("a Prisma client");

  const idle = { isTransactionActive: false };
  const managers = [{ getRepository: () => {} }, { getRepository: () => {}, queryRunner: idle }, idle];
  for (const manager of managers) {
    expect((await refusal({ ...NO_ROWS, ...manager })).message).toContain("TypeORM without an open transaction");
  }
});

test.each<[unknown, string]>([
  [{}, "tx is an object, which"],
  [42, "tx is 42, which"],
  ["begin", "tx is begin, which"],
  [new Map(), "tx is a Map, which"],
  [Promise.resolve(), "tx is a Promise, which"],
])("%o is no transaction", async (thing, message) => {
  // @ts-expect-error -- a program without types
  const error = await refusal(thing);
  expect(error.message).toContain(message);
  expect(error.hint).toContain("an object with query(text, values)");
});

test("a query() that does not answer with rows is refused", async () => {
  // @ts-expect-error -- the type wants rows as well
  const error = await refusal({ query: () => Promise.resolve() });
  expect(error.message).toContain("did not answer with rows");
});

test.each(["plain", "keyed"])("%s: a transaction in a database without the schema is named as that", async (sort) => {
  const elsewhere = await createDatabase();
  const client = new Client({ connectionString: elsewhere.url });
  const other = postgres(elsewhere.url);
  await client.connect();
  const options = sort === "plain" ? {} : { key: "elsewhere" };
  const enqueue = (tx: Transaction) => shop.hf.enqueue(sendReceipt, { orderId: "x" }, { ...options, tx });
  try {
    await client.query("begin");
    const error = await refusedBy(enqueue(client));
    expect(error.message).toContain("has no Holdfast schema");
    expect(error.cause).toMatchObject({ code: "3F000" });
    await client.query("rollback");

    const throughDrizzle = drizzle({ client }).transaction((tx) => enqueue(fromDrizzle(tx, sql)));
    expect((await refusedBy(throughDrizzle)).message).toBe(error.message);
    const throughPostgresJs = other.begin((tx) => enqueue(tx));
    expect((await refusedBy(throughPostgresJs)).message).toBe(error.message);
  } finally {
    await other.end();
    await client.end();
    await elsewhere.drop();
  }
});
