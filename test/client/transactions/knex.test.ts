import { randomUUID } from "node:crypto";
import knexOf, { type Knex } from "knex";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ODD_SCHEMA, sendReceipt, transactionContract, useShop } from "./contract.ts";

const shop = useShop();
let knex: Knex;
beforeAll(() => {
  knex = knexOf({ client: "pg", connection: shop.url, pool: { min: 0, max: 4 } });
});
afterAll(() => knex.destroy());

transactionContract("a Knex transaction", shop, {
  transaction: (work) => knex.transaction((trx) => work(trx, (id) => trx("orders").insert({ id }))),
});

describe("a schema whose name looks like placeholders, and answers that are changed on the way", () => {
  const odd = useShop(ODD_SCHEMA);
  let other: Knex;
  beforeAll(() => {
    other = knexOf({
      client: "pg",
      connection: odd.url,
      pool: { min: 0, max: 4 },
      postProcessResponse: (result: { rows?: unknown }) => result.rows ?? result,
    });
  });
  afterAll(() => other.destroy());
  transactionContract("a Knex transaction", odd, {
    transaction: (work) => other.transaction((trx) => work(trx, (id) => trx("orders").insert({ id }))),
  });
});

test("a nested transaction that rolls back takes its job with it, and only that", async () => {
  const [outer, inner] = await knex.transaction(async (trx) => {
    const kept = await shop.hf.enqueue(sendReceipt, { orderId: "outer" }, { tx: trx });
    const savepoint = await trx.transaction();
    const undone = await shop.hf.enqueue(sendReceipt, { orderId: "inner" }, { tx: savepoint });
    await savepoint.rollback();
    return [kept, undone];
  });
  expect(await shop.hf.jobs.get(outer.id)).toBeDefined();
  expect(await shop.hf.jobs.get(inner.id)).toBeUndefined();
});

test("the example of the documentation", async () => {
  const { hf } = shop;
  const orderId = randomUUID();

  await knex.transaction(async (trx) => {
    await trx("orders").insert({ id: orderId });
    await hf.enqueue(sendReceipt, { orderId }, { tx: trx });
  });
  hf.wake();

  const { rows } = await shop.query("select 1 from holdfast.jobs where payload ->> 'orderId' = $1", [orderId]);
  expect(rows).toHaveLength(1);
});
