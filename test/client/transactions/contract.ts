// What a job enqueued with { tx } promises, as one suite for every library that can open a transaction. Each test file
// hands its own library's transaction to `Transaction` without a cast: that it compiles is part of what is tested.
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { defineJob, type EnqueueOptions, type Holdfast, type JobContext, open, type Transaction } from "#src/index.js";
import { createDatabase, type TestDatabase } from "../../support/database.ts";

export interface Order {
  orderId: string;
}

export const sendReceipt = defineJob("mail.receipt", {
  run: async ({ payload }: JobContext<Order>) => payload.orderId,
});
const anything = defineJob("test.anything", { run: () => {} });

/** What a test does inside the caller's transaction. */
export type Work<T> = (
  /** For `{ tx }`. */
  tx: Transaction,
  /** Inserts a row of the caller's own, on the same transaction. */
  addOrder: (orderId: string) => PromiseLike<unknown>,
) => Promise<T>;

export interface Library {
  /** Commits when `work` resolves; rolls back and throws its error when it rejects. */
  transaction<T>(work: Work<T>): Promise<T>;
}

/** A database with Holdfast's schema and the caller's table, and a look at what was committed in it. */
export interface Shop {
  readonly url: string;
  readonly hf: Holdfast;
  readonly schema: string;
  /** False where a second connection cannot look, let alone wait. */
  readonly hasConnections: boolean;
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export const CREATE_ORDERS = "create table orders (id text primary key)";

/** Opened before all tests that follow, gone after them. */
export function useShop(schema = "holdfast"): Shop {
  let database: TestDatabase;
  let hf: Holdfast;
  let client: Client;
  beforeAll(async () => {
    database = await createDatabase();
    hf = await open({ database: database.url, schema });
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(CREATE_ORDERS);
  });
  afterAll(async () => {
    await client.end();
    await hf.close();
    await database.drop();
  });
  return {
    get url() {
      return database.url;
    },
    get hf() {
      return hf;
    },
    schema,
    hasConnections: true,
    query: (text, values) => client.query(text, values),
  };
}

/** The job's row as committed, live or not at all. */
export async function findJob(shop: Shop, id: string): Promise<Record<string, unknown> | undefined> {
  const { rows } = await shop.query(`select state, payload from ${jobsOf(shop)} where id = $1`, [id]);
  return rows[0];
}

const jobsOf = (shop: Shop): string => `"${shop.schema.replaceAll('"', '""')}".jobs`;

/** Any name is allowed; this one is full of what libraries take for placeholders. */
export const ODD_SCHEMA = 'we?ird $1 "x" :y ??';

class Undo extends Error {}

const NASTY = {
  question: "? ?? \\? ?::text :name ::jsonb",
  dollars: "$1 $2 $$ $1::text::jsonb $tag$",
  quotes: `' '' " "" \` '; drop table orders; --`,
  backslashes: "\\ \\\\ \\' \\u0041 \n \t \r",
  unicode: "Grüße 日本語 🦦 \u2028 \u0001 \ufeff",
  braces: "{} {0} ${x} {{y}} [] %s %L",
  "odd ? $1 'key\"": [null, true, 0.1, -1e21, "", {}],
};

export function transactionContract(name: string, shop: Shop, library: Library): void {
  describe(`enqueue with ${name}`, () => {
    const orders = async (ids: readonly string[]): Promise<number> =>
      (await shop.query("select 1 from orders where id = any($1)", [ids])).rows.length;

    const waiting = async (): Promise<number> => {
      const { rows } = await shop.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length;
    };

    test("files put into an inbox commit with the caller's row, and roll back with it", async () => {
      const inbox = shop.hf.inbox("shop");
      const bytes = Buffer.alloc(300_000, "any ? bytes $1 \\x00");
      const put = (tx: Transaction, key: string) =>
        inbox.putMany([{ content: bytes, name: "a.bin", key, meta: { sent_at: NASTY.quotes } }, { content: "b" }], {
          tx,
        });
      const table = (of: string): string => `${jobsOf(shop).replace(/\.jobs$/, "")}.${of}`;
      const stored = async (key: string): Promise<object[]> => {
        const { rows } = await shop.query(
          `select p.size::text, encode(sha256(string_agg(c.bytes, ''::bytea order by c.n)), 'hex') as hash
           from ${table("parcels")} p join ${table("parcel_chunks")} c on c.parcel_id = p.id where p.key = $1 group by p.id`,
          [key],
        );
        return rows;
      };
      const undone = randomUUID();
      const rolledBack = library.transaction(async (tx, addOrder) => {
        await addOrder(undone);
        await put(tx, undone);
        throw new Undo();
      });
      await expect(rolledBack).rejects.toThrow(Undo);
      expect(await orders([undone])).toBe(0);
      expect(await stored(undone)).toEqual([]);

      const kept = randomUUID();
      const parcels = await library.transaction(async (tx, addOrder) => {
        await addOrder(kept);
        expect((await put(tx, kept)).map(({ created }) => created)).toEqual([true, true]);
        return await put(tx, kept);
      });
      expect(await orders([kept])).toBe(1);
      expect(parcels[0]).toMatchObject({ created: false, conflict: false, key: kept, name: "a.bin", size: 300_000 });
      expect(parcels[0]!.expiresAt.getTime()).toBeGreaterThan(Date.now());
      expect(parcels[0]!.meta).toEqual({ sent_at: NASTY.quotes });
      expect(await stored(kept)).toEqual([{ size: "300000", hash: parcels[0]!.sha256 }]);
    });

    test.each<[string, EnqueueOptions]>([
      ["a plain job", {}],
      ["a job with a key", { key: "commit" }],
      ["a job of a group", { group: "commit" }],
      ["a job that coalesces", { coalesce: "commit" }],
      ["a job with every other option", { delay: "1h", priority: 7, queue: "slow", attempts: 2, headers: { a: "?" } }],
    ])("%s commits with the caller's row, and rolls back with it", async (_, options) => {
      const undone = randomUUID();
      let undoneId = "";
      const rolledBack = library.transaction(async (tx, addOrder) => {
        await addOrder(undone);
        const first = await shop.hf.enqueue(sendReceipt, { orderId: undone }, { ...options, tx });
        expect(first).toMatchObject({ created: true, conflict: false });
        undoneId = first.id;
        throw new Undo();
      });
      await expect(rolledBack).rejects.toThrow(Undo);
      expect(await findJob(shop, undoneId)).toBeUndefined();
      expect(await orders([undone])).toBe(0);

      const kept = randomUUID();
      const enqueued = await library.transaction(async (tx, addOrder) => {
        const result = await shop.hf.enqueue(sendReceipt, { orderId: kept }, { ...options, tx });
        await addOrder(kept);
        if (shop.hasConnections) expect(await findJob(shop, result.id)).toBeUndefined();
        return result;
      });
      expect(enqueued).toMatchObject({ created: true, conflict: false });
      expect(await findJob(shop, enqueued.id)).toMatchObject({ state: "pending", payload: { orderId: kept } });
      expect(await orders([kept])).toBe(1);
    });

    test("a key is answered with its first job, in the same transaction and in the next", async () => {
      const enqueue = (tx: Transaction, orderId: string) =>
        shop.hf.enqueue(sendReceipt, { orderId }, { key: "twice", tx });
      const [first, second] = await library.transaction(async (tx) => [await enqueue(tx, "a"), await enqueue(tx, "a")]);
      expect(first).toMatchObject({ created: true, conflict: false });
      expect(second).toMatchObject({ id: first.id, created: false, conflict: false });
      const [third, other] = await library.transaction(async (tx) => [await enqueue(tx, "a"), await enqueue(tx, "b")]);
      expect(third).toMatchObject({ id: first.id, created: false, conflict: false });
      expect(other).toMatchObject({ id: first.id, created: false, conflict: true });
      expect(await findJob(shop, first.id)).toMatchObject({ payload: { orderId: "a" } });
    });

    test("jobs of a group are in the order in which the transaction enqueued them", async () => {
      const jobs = await library.transaction(async (tx) => [
        await shop.hf.enqueue(sendReceipt, { orderId: "1" }, { group: "order", tx }),
        await shop.hf.enqueue(sendReceipt, { orderId: "2" }, { group: "order", tx }),
      ]);
      const { rows } = await shop.query(`select id from ${jobsOf(shop)} where group_key = 'order' order by group_seq`);
      expect(rows).toEqual(jobs.map(({ id }) => ({ id })));
    });

    test("a job that coalesces takes the newest payload, and keeps the old one if that rolls back", async () => {
      const options = { coalesce: "newest" };
      const first = await library.transaction((tx) =>
        shop.hf.enqueue(sendReceipt, { orderId: "old" }, { ...options, tx }),
      );
      const again = (orderId: string, tx: Transaction) => shop.hf.enqueue(sendReceipt, { orderId }, { ...options, tx });
      const undone = library.transaction(async (tx) => {
        expect(await again("undone", tx)).toMatchObject({ id: first.id, created: false, conflict: false });
        throw new Undo();
      });
      await expect(undone).rejects.toThrow(Undo);
      expect(await findJob(shop, first.id)).toMatchObject({ payload: { orderId: "old" } });
      await library.transaction((tx) => again("new", tx));
      expect(await findJob(shop, first.id)).toMatchObject({ payload: { orderId: "new" } });
    });

    test.each(["plain", "keyed"])("a %s job keeps what placeholders and quotes could spoil", async (sort) => {
      const options = sort === "plain" ? {} : { key: NASTY.dollars, headers: { nasty: NASTY.question } };
      const { id } = await library.transaction((tx) => shop.hf.enqueue(anything, NASTY, { ...options, tx }));
      expect((await findJob(shop, id))?.payload).toEqual(NASTY);
    });

    test("enqueueMany commits all its rows, in order, or none", async () => {
      const known = { n: "known" };
      const keyed = await library.transaction((tx) => shop.hf.enqueue(anything, known, { key: "many", tx }));
      const enqueue = (tx: Transaction) =>
        shop.hf.enqueueMany(
          anything,
          [
            { payload: { n: 0 } },
            { payload: known, key: "many" },
            { payload: NASTY, key: "many" },
            { payload: { n: 3 }, group: "many" },
            { payload: { n: 4 }, coalesce: "many" },
            { payload: { n: 5 }, coalesce: "many" },
          ],
          { tx },
        );
      let undoneIds: string[] = [];
      const undone = library.transaction(async (tx) => {
        undoneIds = (await enqueue(tx)).filter(({ created }) => created).map(({ id }) => id);
        throw new Undo();
      });
      await expect(undone).rejects.toThrow(Undo);
      expect(undoneIds).toHaveLength(3);
      for (const id of undoneIds) expect(await findJob(shop, id)).toBeUndefined();

      const results = await library.transaction(enqueue);
      expect(results.map(({ created, conflict }) => [created, conflict])).toEqual([
        [true, false],
        [false, false],
        [false, true],
        [true, false],
        [true, false],
        [false, false],
      ]);
      expect([results[1]?.id, results[2]?.id, results[5]?.id]).toEqual([keyed.id, keyed.id, results[4]?.id]);
      expect(await findJob(shop, results[5]!.id)).toMatchObject({ payload: { n: 5 } });
    });

    test("enqueueMany of many plain rows is one statement of the transaction", async () => {
      const rows = Array.from({ length: 2_000 }, (_, n) => ({ payload: { n, text: "?$1" } }));
      const results = await library.transaction((tx) => shop.hf.enqueueMany(anything, rows, { tx }));
      expect(new Set(results.map(({ id }) => id)).size).toBe(2_000);
      expect((await findJob(shop, results[1_999]!.id))?.payload).toEqual({ n: 1_999, text: "?$1" });
    });

    test.runIf(shop.hasConnections).each(["commits", "rolls back"])(
      "two connections: the second transaction with a key waits until the first %s",
      async (how) => {
        const key = `race ${how}`;
        const enqueue = (tx: Transaction) => shop.hf.enqueue(sendReceipt, { orderId: key }, { key, tx });
        let second: Promise<Awaited<ReturnType<typeof enqueue>>> | undefined;
        const first = library.transaction(async (tx) => {
          const result = await enqueue(tx);
          second = library.transaction(enqueue);
          await vi.waitFor(async () => expect(await waiting()).toBe(1), { timeout: 10_000 });
          if (how === "rolls back") throw new Undo();
          return result;
        });
        if (how === "rolls back") {
          await expect(first).rejects.toThrow(Undo);
          expect(await second).toMatchObject({ created: true, conflict: false });
        } else {
          const { id } = await first;
          expect(await second).toMatchObject({ id, created: false, conflict: false });
        }
      },
    );
  });
}
