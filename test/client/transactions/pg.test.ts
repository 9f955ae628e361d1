import { randomUUID } from "node:crypto";
import { Client, type ClientBase, Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EnqueueOptions } from "#src/index.js";
import { sendReceipt, transactionContract, useShop, type Work } from "./contract.ts";

async function runOn<T>(client: ClientBase, work: Work<T>, isolation = "read committed"): Promise<T> {
  await client.query(`begin isolation level ${isolation}`);
  try {
    const result = await work(client, (id) => client.query("insert into orders (id) values ($1)", [id]));
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

const shop = useShop();
let pool: Pool;
beforeAll(() => {
  pool = new Pool({ connectionString: shop.url, max: 4 });
});
afterAll(() => pool.end());

async function inTransaction<T>(work: Work<T>, isolation?: string): Promise<T> {
  const client = await pool.connect();
  try {
    return await runOn(client, work, isolation);
  } finally {
    client.release();
  }
}

transactionContract("a client of a pg pool", shop, { transaction: inTransaction });

describe("a client of its own", () => {
  const other = useShop();
  transactionContract("a pg client", other, {
    async transaction(work) {
      const client = new Client({ connectionString: other.url });
      await client.connect();
      try {
        return await runOn(client, work);
      } finally {
        await client.end();
      }
    },
  });
});

test("the example of the documentation", async () => {
  const { hf } = shop;
  const orderId = randomUUID();

  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("insert into orders (id) values ($1)", [orderId]);
    await hf.enqueue(sendReceipt, { orderId }, { tx: client });
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
  hf.wake();

  const { rows } = await shop.query("select 1 from holdfast.jobs where payload ->> 'orderId' = $1", [orderId]);
  expect(rows).toHaveLength(1);
});

test("the example of the documentation with a key and with many rows", async () => {
  const { hf } = shop;
  const orderId = randomUUID();
  const orderIds = [randomUUID(), randomUUID()];

  await inTransaction(async (tx) => {
    const { created } = await hf.enqueue(sendReceipt, { orderId }, { key: orderId, tx });
    expect(created).toBe(true);

    const rows = orderIds.map((id) => ({ payload: { orderId: id }, key: id }));
    await hf.enqueueMany(sendReceipt, rows, { tx });
  });

  for (const id of [orderId, ...orderIds]) {
    expect(await hf.enqueue(sendReceipt, { orderId: id }, { key: id })).toMatchObject({ created: false });
  }
});

test("after the commit, wake() starts the job at once, with a worker that polls once an hour", async () => {
  const { hf } = shop;
  const worker = await hf.work([sendReceipt], { poll: "1h" });
  try {
    const { id } = await inTransaction((tx) => hf.enqueue(sendReceipt, { orderId: "woken" }, { tx }));
    hf.wake();
    expect(await hf.jobs.wait(id, { timeout: "10s" })).toMatchObject({ state: "done", result: "woken" });
  } finally {
    await worker.stop();
  }
});

test.each<[string, EnqueueOptions]>([
  ["key", { key: "held" }],
  ["group", { group: "held" }],
  ["coalesce", { coalesce: "held" }],
])("two connections: an enqueue without tx waits for an open transaction with its %s", async (_, options) => {
  const { hf } = shop;
  let ended = false;
  let waiting: Promise<{ id: string }> | undefined;
  const first = await inTransaction(async (tx) => {
    const result = await hf.enqueue(sendReceipt, { orderId: "held" }, { ...options, tx });
    waiting = hf.enqueue(sendReceipt, { orderId: "held" }, options).finally(() => {
      ended = true;
    });
    // It comes back for the lock again and again: longer than its first, shared wait by far.
    await shop.query("select pg_sleep(1)");
    expect(ended).toBe(false);
    return result;
  });
  const second = await waiting;
  if (options.group === undefined) expect(second?.id).toBe(first.id);
  else expect(second?.id).not.toBe(first.id);
});

test("repeatable read: a key that was committed meanwhile is the transaction's own conflict, 40001", async () => {
  const key = "snapshot";
  const late = inTransaction(async (tx, addOrder) => {
    await addOrder(randomUUID());
    await shop.hf.enqueue(sendReceipt, { orderId: key }, { key });
    return await shop.hf.enqueue(sendReceipt, { orderId: key }, { key, tx });
  }, "repeatable read");
  await expect(late).rejects.toMatchObject({ code: "40001" });
});
