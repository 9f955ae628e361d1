// The embedded tier has its database in a thread of its own, which a caller cannot share. What is tested here is a
// PGlite of the caller's, with Holdfast's schema in it, as the transaction; it has one session, so no races.
import { PGlite } from "@electric-sql/pglite";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OptionInvalid } from "#src/index.js";
import { migrationSql } from "#src/migrate/migrate.js";
import { routinesSql } from "#src/store/routines.js";
import { CREATE_ORDERS, sendReceipt, type Shop, transactionContract, useShop } from "./contract.ts";

const server = useShop();
let db: PGlite;
beforeAll(async () => {
  db = await PGlite.create();
  await db.exec(migrationSql("holdfast"));
  await db.exec(routinesSql("holdfast"));
  await db.exec(CREATE_ORDERS);
  // Starting takes a second, and half a minute when the machine is busy.
}, 120_000);
afterAll(() => db.close());

const shop: Shop = {
  get url() {
    return server.url;
  },
  get hf() {
    return server.hf;
  },
  schema: "holdfast",
  hasConnections: false,
  query: (text, values) => db.query(text, values),
};

transactionContract("a PGlite transaction", shop, {
  transaction: (work) =>
    db.transaction((tx) => work(tx, (id) => tx.query("insert into orders (id) values ($1)", [id]))),
});

test("nothing of it is in the database that Holdfast was opened on", async () => {
  const orderId = randomUUID();
  await db.transaction((tx) => server.hf.enqueue(sendReceipt, { orderId }, { tx }));
  expect((await server.query("select 1 from holdfast.jobs")).rows).toEqual([]);
});

test("the database itself is refused: no transaction is open on it", async () => {
  const enqueued = server.hf.enqueue(sendReceipt, { orderId: "x" }, { tx: db });
  await expect(enqueued).rejects.toThrow(OptionInvalid);
  await expect(enqueued).rejects.toThrow("tx is a PGlite database");
});
