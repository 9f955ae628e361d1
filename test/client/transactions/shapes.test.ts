// Prisma and TypeORM are too large to install for this (300 MB, 30 MB). Stand-ins on a pg client have the shape of
// their transactions here, as their types declare it. The real ones passed the same contract by hand, and compiled
// without a cast: prisma 7.9.1 with @prisma/adapter-pg, and typeorm 1.1.1.
import { randomUUID } from "node:crypto";
import { type ClientBase, Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Shop, sendReceipt, transactionContract, useShop } from "./contract.ts";

type OnClient = <T>(work: (client: ClientBase) => Promise<T>) => Promise<T>;

function useClients(shop: Shop): OnClient {
  let pool: Pool;
  beforeAll(() => {
    pool = new Pool({ connectionString: shop.url, max: 4 });
  });
  afterAll(() => pool.end());
  return async (work) => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  };
}

async function countJobs(shop: Shop, orderId: string): Promise<number> {
  const jobs = "select 1 from orders join holdfast.jobs on payload ->> 'orderId' = orders.id where orders.id = $1";
  return (await shop.query(jobs, [orderId])).rows.length;
}

const VOID = 2278;

describe("Prisma", () => {
  interface PrismaTransaction {
    $queryRawUnsafe(query: string, ...values: unknown[]): Promise<unknown>;
    $executeRawUnsafe(query: string, ...values: unknown[]): Promise<number>;
    $transaction(): unknown;
    order: { create(input: { data: { id: string } }): Promise<unknown> };
  }

  const shop = useShop();
  const onClient = useClients(shop);
  const prisma = {
    $transaction: <T>(work: (tx: PrismaTransaction) => Promise<T>): Promise<T> =>
      onClient((client) =>
        work({
          async $queryRawUnsafe(query, ...values) {
            const { rows, fields } = await client.query(query, values);
            if (fields.some(({ dataTypeID }) => dataTypeID === VOID)) throw new Error("Prisma cannot read void");
            return rows;
          },
          $executeRawUnsafe: async (query, ...values) => (await client.query(query, values)).rowCount ?? 0,
          $transaction: () => undefined,
          order: { create: ({ data }) => client.query("insert into orders (id) values ($1)", [data.id]) },
        }),
      ),
  };

  transactionContract("what looks like a Prisma transaction", shop, {
    transaction: (work) => prisma.$transaction((tx) => work(tx, (id) => tx.order.create({ data: { id } }))),
  });

  test("the example of the documentation", async () => {
    const { hf } = shop;
    const orderId = randomUUID();

    await prisma.$transaction(async (tx) => {
      await tx.order.create({ data: { id: orderId } });
      await hf.enqueue(sendReceipt, { orderId }, { tx });
    });
    hf.wake();

    expect(await countJobs(shop, orderId)).toBe(1);
  });
});

describe("TypeORM", () => {
  interface Manager {
    query(query: string, parameters?: unknown[]): Promise<unknown[]>;
    getRepository(): unknown;
    insert(table: string, row: { id: string }): Promise<unknown>;
    readonly queryRunner?: { isTransactionActive: boolean };
  }

  const shop = useShop();
  const onClient = useClients(shop);
  const dataSource = {
    transaction: <T>(work: (manager: Manager) => Promise<T>): Promise<T> =>
      onClient((client) =>
        work({
          query: async (query, parameters) => (await client.query(query, parameters)).rows,
          getRepository: () => undefined,
          insert: (table, { id }) => client.query(`insert into ${table} (id) values ($1)`, [id]),
          queryRunner: { isTransactionActive: true },
        }),
      ),
  };

  transactionContract("what looks like a manager of TypeORM", shop, {
    transaction: (work) => dataSource.transaction((manager) => work(manager, (id) => manager.insert("orders", { id }))),
  });

  test("the example of the documentation", async () => {
    const { hf } = shop;
    const orderId = randomUUID();

    await dataSource.transaction(async (manager) => {
      await manager.insert("orders", { id: orderId });
      await hf.enqueue(sendReceipt, { orderId }, { tx: manager });
    });
    hf.wake();

    expect(await countJobs(shop, orderId)).toBe(1);
  });
});

describe("a library that Holdfast has never heard of", () => {
  const shop = useShop();
  const onClient = useClients(shop);

  test("the example of the documentation", async () => {
    const { hf } = shop;
    const orderId = randomUUID();

    await onClient(async (client) => {
      const connection = { run: (sql: string, bind: unknown[]) => client.query(sql, bind) };
      await connection.run("insert into orders (id) values ($1)", [orderId]);
      const tx = {
        query: async (text: string, values: unknown[] = []) => {
          const { rows } = await connection.run(text, values);
          return { rows };
        },
      };
      await hf.enqueue(sendReceipt, { orderId }, { tx });
    });

    expect(await countJobs(shop, orderId)).toBe(1);
  });
});
