// The examples of docs/long-jobs.md, run. documentation.test.ts sees to it that the page says the same, line by line.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { Pool } from "pg";
import { defineJob, Gone, type JobAborted } from "#src/index.js";
import { runDue } from "#src/testing/index.js";
import type { Worker } from "#src/worker/worker.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, makeGate, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/long-jobs.md"), "utf8");
const tables = [...page.matchAll(/^```sql\n(.*?)^```$/gms)]
  .map((found) => found[1]!)
  .filter((text) => text.startsWith("create table"));

const bench = useHoldfast("server");
const workers: Worker[] = [];
beforeAll(async () => {
  expect(tables).toHaveLength(2);
  for (const text of tables) await bench.db.script(text);
  await bench.db.script(`
    create table operations (spec text, hash text, text text);
    create table specs (id text primary key, embedded_at timestamptz);
    create table vectors (spec text, hash text, vector text, primary key (spec, hash));
    create table charges (id serial primary key, order_id text);
    create table pages (cursor text, content text);`);
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

const rowsOf = async (text: string): Promise<unknown[]> => (await bench.db.query(text)).rows;

interface Operation {
  hash: string;
  text: string;
}

async function readOperations(spec: string): Promise<Operation[]> {
  return (await bench.db.query<Operation>("select hash, text from operations where spec = $1 order by hash", [spec]))
    .rows;
}

/** Stands for a model on a slow CPU. */
const embedder = {
  slowAbove: Infinity,
  async embed(items: readonly Operation[], { signal }: { signal: AbortSignal }) {
    if (items.length > this.slowAbove) {
      await aborted(signal);
      throw signal.reason;
    }
    return items.map(({ hash, text }) => ({ hash, vector: text.toUpperCase() }));
  },
};

describe("chunks", () => {
  const embed = defineJob<{ spec: string }>("catalog.embed", {
    lease: "30s", // how long the process may be silent
    timeout: "2h", // how long the handler may take
    callTimeout: "5s", // how long one call of the handler may take
    async run(job) {
      const { spec } = job.payload;
      const operations = await readOperations(spec);
      for await (const chunk of job.chunks("embed", operations, { size: 32, key: (operation) => operation.hash })) {
        const vectors = await chunk.call((items, signal) => embedder.embed(items, { signal }));
        if (vectors === undefined) continue; // too slow: the same place again, with half as many items
        await chunk.save(async (tx) => {
          await tx.query(
            `insert into vectors (spec, hash, vector)
             select $1, hash, vector from jsonb_to_recordset($2) as v (hash text, vector text)
             on conflict (spec, hash) do update set vector = excluded.vector`,
            [spec, JSON.stringify(vectors)],
          );
        });
      }
      await job.transaction(async (tx) => {
        await tx.query("update specs set embedded_at = now() where id = $1", [spec]);
        await job.complete(tx, { operations: operations.length });
      });
    },
  });

  test("a 148-operation spec is embedded once", async () => {
    await bench.db.query(
      "insert into operations select 'petstore', 'hash ' || n, 'text ' || n from generate_series(1, 148) as n",
    );
    await bench.db.query("insert into specs values ('petstore')");
    const { id } = await bench.hf.enqueue(embed, { spec: "petstore" });
    expect(await runDue(bench.hf, [embed])).toMatchObject({ runs: 1, done: 1 });
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      state: "done",
      result: { operations: 148 },
      progress: { done: 148, total: 148 },
    });
    expect(await rowsOf("select count(*)::integer as count from vectors")).toEqual([{ count: 148 }]);
    expect(await rowsOf("select embedded_at is null as open from specs where id = 'petstore'")).toEqual([
      { open: false },
    ]);
  });
});

describe("the signal", () => {
  test("tells why", async () => {
    const begun = makeGate();
    const heard: string[] = [];
    const kind = makeKind<null>({
      async run(job) {
        begun.open();
        await aborted(job.signal);
        if (job.signal.aborted) {
          const { why } = job.signal.reason as JobAborted; // "lease-lost", "cancelled", "timeout" or "shutdown"
          job.log.warn("stopping", { why });
          heard.push(why);
          throw job.signal.reason;
        }
      },
    });
    workers.push(await bench.hf.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    await begun.opened;
    const cancelled = nextOf(bench.hf, "job.cancelled", id);
    await bench.hf.jobs.cancel(id);
    await cancelled;
    expect(heard).toEqual(["cancelled"]);
  });
});

describe("fenced transactions", () => {
  test("of our own, of somebody else's, and with the completion", async () => {
    const { hf } = bench;
    const pool = new Pool({ connectionString: bench.url });
    const announce = makeKind<{ spec: string }>();
    await bench.db.query("insert into specs values ('fenced')");
    const kind = makeKind<{ spec: string }>({
      async run(job) {
        const { spec } = job.payload;
        await job.transaction(async (tx) => {
          await tx.query("update specs set embedded_at = now() where id = $1", [spec]);
          await hf.enqueue(announce, { spec }, { tx });
        });

        const client = await pool.connect();
        try {
          await client.query("begin");
          await job.fence(client); // first: everything after it is under the lease
          await client.query("delete from vectors where spec = $1", [spec]);
          await client.query("commit");
        } catch (error) {
          await client.query("rollback");
          throw error;
        } finally {
          client.release();
        }
      },
    });
    await hf.enqueue(kind, { spec: "fenced" });
    expect(await runDue(hf, [kind, announce])).toMatchObject({ runs: 2, done: 2 });
    expect(await rowsOf("select embedded_at is null as open from specs where id = 'fenced'")).toEqual([
      { open: false },
    ]);
    await pool.end();
  });
});

describe("steps", () => {
  test("happen once", async () => {
    const receipts: string[] = [];
    const kind = makeKind<{ orderId: string }>({
      backoff: ["0s"],
      async run(job) {
        const { orderId } = job.payload;
        const receipt = await job.step("charge", async (tx) => {
          const { rows } = await tx.query<{ id: number }>("insert into charges (order_id) values ($1) returning id", [
            orderId,
          ]);
          return `receipt ${rows[0]!.id}`;
        });
        receipts.push(receipt);
        if (job.attempt === 1) throw new Error("the mail server is away");
      },
    });
    await bench.hf.enqueue(kind, { orderId: "7" });
    await runDue(bench.hf, [kind]);
    expect(receipts).toEqual(["receipt 1", "receipt 1"]);
    expect(await rowsOf("select order_id from charges")).toEqual([{ order_id: "7" }]);
  });
});

describe("checkpoints", () => {
  const api = {
    async list(cursor: string | undefined): Promise<{ content: string; next: string | null }> {
      const at = Number(cursor ?? 0);
      return { content: `page ${at}`, next: at < 3 ? String(at + 1) : null };
    },
  };

  test("carry a cursor over attempts", async () => {
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        let cursor = await job.lastCheckpoint<string | null>();
        while (cursor !== null) {
          const { content, next } = await api.list(cursor);
          await job.transaction(async (tx) => {
            await tx.query("insert into pages (cursor, content) values ($1, $2)", [cursor, content]);
            await job.checkpoint(next, { tx }); // with the rows, or not at all
          });
          cursor = next;
          if (job.attempt === 1 && next === "2") throw new Error("the API is away");
        }
      },
    });
    await bench.hf.enqueue(kind, null);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 2, done: 1 });
    expect(await rowsOf("select content from pages order by content")).toEqual(
      [0, 1, 2, 3].map((at) => ({ content: `page ${at}` })),
    );
  });
});

describe("generations", () => {
  interface Rebuild {
    spec: string;
    model: string;
    operations: string[];
  }

  test("additive: visible at once, leftovers removed at the end", async () => {
    const rebuild = makeKind<Rebuild>({
      async run(job) {
        const { spec, operations, model } = job.payload;
        const generation = await job.generation(`vectors of ${spec}`);
        for await (const chunk of job.chunks("build", operations)) {
          await chunk.save(async (tx) => {
            await tx.query(
              `insert into catalog (spec, operation, model, generation) select $1, unnest($2::text[]), $3, $4
               on conflict (spec, operation) do update set model = excluded.model, generation = excluded.generation`,
              [spec, chunk.items, model, generation.number],
            );
          });
        }
        await job.transaction(async (tx) => {
          await tx.query("delete from catalog where spec = $1 and generation < $2", [spec, generation.number]);
          await generation.makeCurrent(tx);
          await job.complete(tx);
        });
      },
    });
    await bench.hf.enqueue(rebuild, { spec: "a", model: "old", operations: ["get", "put"] });
    await runDue(bench.hf, [rebuild]);
    await bench.hf.enqueue(rebuild, { spec: "a", model: "new", operations: ["put", "post"] });
    await runDue(bench.hf, [rebuild]);
    expect(await rowsOf("select operation, model from catalog where spec = 'a' order by operation")).toEqual([
      { operation: "post", model: "new" },
      { operation: "put", model: "new" },
    ]);
  });

  test("staged: readers see the old one until the flip", async () => {
    const seen: unknown[] = [];
    const read = (spec: string) =>
      bench.db.query(
        `select v.operation, v.model from staged_vectors v
join holdfast.generations g on g.unit = 'staged vectors of ' || v.spec and g.current = v.generation
where v.spec = $1
order by v.operation`,
        [spec],
      );
    const rebuild = makeKind<Rebuild>({
      async run(job) {
        const { spec, operations, model } = job.payload;
        const generation = await job.generation(`staged vectors of ${spec}`);
        for await (const chunk of job.chunks("build", operations, { size: 1 })) {
          await chunk.save(async (tx) => {
            await tx.query(
              "insert into staged_vectors (spec, generation, operation, model) select $1, $2, unnest($3::text[]), $4",
              [spec, generation.number, chunk.items, model],
            );
          });
          seen.push((await read(spec)).rows);
        }
        await job.transaction(async (tx) => {
          const isNewest = await generation.makeCurrent(tx);
          // Not the newest: another job began after this one and has finished. Its result stays, ours goes.
          const leftover = isNewest ? "generation < $2" : "generation = $2";
          await tx.query(`delete from staged_vectors where spec = $1 and ${leftover}`, [spec, generation.number]);
          await job.complete(tx, { isNewest });
        });
      },
    });
    await bench.hf.enqueue(rebuild, { spec: "a", model: "old", operations: ["get"] });
    await runDue(bench.hf, [rebuild]);
    await bench.hf.enqueue(rebuild, { spec: "a", model: "new", operations: ["put", "post"] });
    await runDue(bench.hf, [rebuild]);
    const old = [{ operation: "get", model: "old" }];
    expect(seen).toEqual([[], old, old]);
    expect((await read("a")).rows).toEqual([
      { operation: "post", model: "new" },
      { operation: "put", model: "new" },
    ]);
    expect(await rowsOf("select distinct generation from staged_vectors")).toEqual([{ generation: "2" }]);
    // The page's own query for readers is this one.
    const onPage = [...page.matchAll(/^```sql\n(select.*?)\n```$/gms)].map((found) => found[1]!);
    expect(onPage).toHaveLength(1);
    expect((await bench.db.query(onPage[0]!, ["a"])).rows).toEqual((await read("a")).rows);
  });
});

describe("gone", () => {
  test("is done, at once", async () => {
    const kind = makeKind<{ spec: string }>({
      async run(job) {
        const { spec } = job.payload;
        const { rows } = await bench.db.query("select 1 from specs where id = $1", [spec]);
        if (rows.length === 0) {
          await job.transaction((tx) => tx.query("delete from vectors where spec = $1", [spec]));
          throw new Gone(`The spec ${spec} was deleted.`);
        }
      },
    });
    const { id } = await bench.hf.enqueue(kind, { spec: "nobody" });
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, lastError: { name: "Gone" } });
  });
});

describe("progress", () => {
  test("is read while it runs", async () => {
    const done = makeGate();
    const kind = makeKind<null>({
      async run(job) {
        await job.progress(41, 148, "operations");
        await done.opened;
      },
    });
    workers.push(await bench.hf.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    const { hf } = bench;
    await expect
      .poll(async () => {
        const job = await hf.jobs.get(id);
        return job?.progress; // { done: 41, total: 148, note: "operations", at: "2026-…" }
      })
      .toMatchObject({ done: 41, total: 148, note: "operations" });
    done.open();
    await ended(hf, id);
  });
});

test("the hook of a hung process is handed over with work()", async () => {
  const { hf } = bench;
  const embed = makeKind<null>();
  const worker = await hf.work([embed], {
    hungHook: new URL("./children/hung-hook.mjs", import.meta.url),
  });
  await worker.stop();
});
