import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sendReceipt, transactionContract, useShop, type Work } from "./contract.ts";

const shop = useShop();
let sql: postgres.Sql;
beforeAll(() => {
  sql = postgres(shop.url, { max: 4 });
});
afterAll(() => sql.end());

/** What begin() resolves with is unwrapped when it is an array of promises; ours never is. */
async function inTransaction<T>(on: postgres.Sql, work: Work<T>): Promise<T> {
  const results: T[] = [];
  await on.begin(async (tx) => {
    results.push(await work(tx, (id) => tx`insert into orders (id) values (${id})`));
  });
  return results[0]!;
}

transactionContract("a transaction of postgres.js", shop, { transaction: (work) => inTransaction(sql, work) });

describe("column names that are changed on the way", () => {
  const other = useShop();
  let pascal: postgres.Sql;
  beforeAll(() => {
    pascal = postgres(other.url, { max: 4, transform: postgres.toPascal, prepare: false });
  });
  afterAll(() => pascal.end());
  transactionContract("a transaction of postgres.js", other, { transaction: (work) => inTransaction(pascal, work) });
});

test("a savepoint that rolls back takes its job with it, and only that", async () => {
  const { hf } = shop;
  let inner = "";
  let outer = "";
  await sql.begin(async (tx) => {
    outer = (await hf.enqueue(sendReceipt, { orderId: "outer" }, { tx })).id;
    const undone = tx.savepoint(async (nested) => {
      inner = (await hf.enqueue(sendReceipt, { orderId: "inner" }, { tx: nested })).id;
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
  });
  expect(await hf.jobs.get(outer)).toBeDefined();
  expect(await hf.jobs.get(inner)).toBeUndefined();
});

test("the example of the documentation", async () => {
  const { hf } = shop;
  const orderId = randomUUID();

  await sql.begin(async (tx) => {
    await tx`insert into orders (id) values (${orderId})`;
    await hf.enqueue(sendReceipt, { orderId }, { tx });
  });
  hf.wake();

  const { rows } = await shop.query("select 1 from holdfast.jobs where payload ->> 'orderId' = $1", [orderId]);
  expect(rows).toHaveLength(1);
});
