import { randomUUID } from "node:crypto";
import { CamelCasePlugin, Kysely, PostgresDialect, type Transaction as KyselyTransaction } from "kysely";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sendReceipt, transactionContract, useShop, type Work } from "./contract.ts";

interface Tables {
  orders: { id: string };
}

const shop = useShop();
let db: Kysely<Tables>;
beforeAll(() => {
  db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: shop.url, max: 4 }) }) });
});
afterAll(() => db.destroy());

const runOn =
  <T>(work: Work<T>) =>
  (trx: KyselyTransaction<Tables>): Promise<T> =>
    work(trx, (id) => trx.insertInto("orders").values({ id }).execute());

transactionContract("a Kysely transaction", shop, {
  transaction: (work) => db.transaction().execute(runOn(work)),
});

describe("a plugin that renames columns", () => {
  const other = useShop();
  let camel: Kysely<Tables>;
  beforeAll(() => {
    const dialect = new PostgresDialect({ pool: new Pool({ connectionString: other.url, max: 4 }) });
    camel = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin({ upperCase: true })] });
  });
  afterAll(() => camel.destroy());
  transactionContract("a Kysely transaction", other, {
    transaction: (work) =>
      camel
        .transaction()
        .execute((trx) => work(trx, (id) => trx.withoutPlugins().insertInto("orders").values({ id }).execute())),
  });
});

test("a controlled transaction works as well", async () => {
  const trx = await db.startTransaction().execute();
  const { id } = await shop.hf.enqueue(sendReceipt, { orderId: "controlled" }, { tx: trx });
  await trx.rollback().execute();
  expect(await shop.hf.jobs.get(id)).toBeUndefined();
});

test("the example of the documentation", async () => {
  const { hf } = shop;
  const orderId = randomUUID();

  await db.transaction().execute(async (trx) => {
    await trx.insertInto("orders").values({ id: orderId }).execute();
    await hf.enqueue(sendReceipt, { orderId }, { tx: trx });
  });
  hf.wake();

  const { rows } = await shop.query("select 1 from holdfast.jobs where payload ->> 'orderId' = $1", [orderId]);
  expect(rows).toHaveLength(1);
});
