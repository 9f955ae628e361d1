import { randomUUID } from "node:crypto";
import { sql } from "drizzle-orm";
import { drizzle as onNodePostgres, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import { drizzle as onPostgresJs, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { Pool } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromDrizzle } from "#src/index.js";
import { ODD_SCHEMA, sendReceipt, transactionContract, useShop } from "./contract.ts";

const orders = pgTable("orders", { id: text().primaryKey() });

const shop = useShop();
let pool: Pool;
let db: NodePgDatabase;
beforeAll(() => {
  pool = new Pool({ connectionString: shop.url, max: 4 });
  db = onNodePostgres({ client: pool });
});
afterAll(() => pool.end());

transactionContract("a Drizzle transaction on node-postgres", shop, {
  transaction: (work) => db.transaction((tx) => work(fromDrizzle(tx, sql), (id) => tx.insert(orders).values({ id }))),
});

describe("postgres-js, and a schema whose name looks like placeholders", () => {
  const odd = useShop(ODD_SCHEMA);
  let client: postgres.Sql;
  let other: PostgresJsDatabase;
  beforeAll(() => {
    client = postgres(odd.url, { max: 4 });
    other = onPostgresJs({ client });
  });
  afterAll(() => client.end());
  transactionContract("a Drizzle transaction on postgres-js", odd, {
    transaction: (work) =>
      other.transaction((tx) => work(fromDrizzle(tx, sql), (id) => tx.insert(orders).values({ id }))),
  });
});

test("the example of the documentation", async () => {
  const { hf } = shop;
  const orderId = randomUUID();

  await db.transaction(async (tx) => {
    await tx.insert(orders).values({ id: orderId });
    await hf.enqueue(sendReceipt, { orderId }, { tx: fromDrizzle(tx, sql) });
  });
  hf.wake();

  const { rows } = await shop.query("select 1 from holdfast.jobs where payload ->> 'orderId' = $1", [orderId]);
  expect(rows).toHaveLength(1);
});
