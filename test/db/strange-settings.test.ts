// Settings that somebody gave the database or the role for another program's sake. Everything works under them all the same: jobs
// with keys and groups, failures, chunks, batches, parcels, chores.
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { expect, test } from "vitest";
import { defineBatch, defineJob, type Holdfast, open } from "#src/index.js";
import { assertSound } from "../support/assert-sound.ts";
import { createDatabase } from "../support/database.ts";

const SETTINGS: Record<string, Record<string, string>> = {
  serializable: { default_transaction_isolation: "serializable" },
  "repeatable read": { default_transaction_isolation: "repeatable read" },
  "another zone, other ways to write values": {
    timezone: "Asia/Kathmandu",
    datestyle: "SQL, DMY",
    intervalstyle: "sql_standard",
    bytea_output: "escape",
    extra_float_digits: "-15",
    lc_numeric: "C",
  },
  "strict about code": {
    "plpgsql.extra_errors": "all",
    "plpgsql.variable_conflict": "use_column",
    standard_conforming_strings: "off",
    search_path: "pg_catalog",
    transform_null_equals: "on",
    array_nulls: "off",
  },
  impatient: {
    statement_timeout: "5s",
    lock_timeout: "20ms",
    idle_in_transaction_session_timeout: "2s",
    idle_session_timeout: "1s",
  },
  "bad plans": { enable_indexscan: "off", enable_bitmapscan: "off", jit_above_cost: "0", random_page_cost: "1000" },
};

const GROUPS = 4;
const JOBS = 120;

test.each(Object.entries(SETTINGS))(
  "%s",
  async (_, settings) => {
    const database = await createDatabase();
    const admin = new Client({ connectionString: database.url });
    await admin.connect();
    for (const [name, value] of Object.entries(settings)) {
      await admin.query(`alter database "${database.name}" set ${name} = ${admin.escapeLiteral(value)}`);
    }
    await admin.end();
    const hfs: Holdfast[] = [];
    try {
      for (let count = 0; count < 2; count += 1) hfs.push(await open({ database: database.url }));
      const [hf, other] = hfs as [Holdfast, Holdfast];
      const runs = new Map<number, number>();
      const order: number[][] = Array.from({ length: GROUPS }, () => []);
      const saved: number[] = [];
      const work = defineJob<{ n: number; group?: number }>("work", {
        attempts: 3,
        backoff: ["10ms"],
        async run(job) {
          const { n, group } = job.payload;
          runs.set(n, (runs.get(n) ?? 0) + 1);
          await job.progress(1, 2);
          if (n % 10 === 0 && job.attempt === 1) throw new Error("once");
          if (group !== undefined) order[group]!.push(n);
          if (n % 7 === 0) {
            for await (const chunk of job.chunks("part", [1, 2, 3], { size: 2 })) {
              await chunk.save(async () => void saved.push(...chunk.items));
            }
          }
          return { n };
        },
      });
      const items = defineBatch<{ n: number }>("items", { run: () => undefined });
      const workers = await Promise.all(hfs.map((one) => one.work([work, items], { concurrency: 8 })));
      const rowOf = (n: number): { payload: { n: number; group?: number }; key?: string; group?: string } =>
        n % 3 === 0
          ? { payload: { n } }
          : n % 3 === 1
            ? { payload: { n }, key: `key ${n}` }
            : { payload: { n, group: n % GROUPS }, group: `group ${n % GROUPS}` };
      const enqueued = await Promise.all(
        Array.from({ length: JOBS }, async (__, n) => {
          const { payload, ...options } = rowOf(n);
          const first = await hf.enqueue(work, payload, options);
          if (options.key === undefined) return first;
          expect(await other.enqueue(work, payload, options)).toMatchObject({ id: first.id, created: false });
          expect(await hf.enqueue(work, { n: -1 }, options)).toMatchObject({ id: first.id, conflict: true });
          return first;
        }),
      );
      const batch = await hf.batches.create(
        items,
        Array.from({ length: 40 }, (__, n) => ({ n })),
      );
      const bytes = randomBytes(20_000);
      const { id: parcel } = await hf.inbox("somebody").put(bytes, { name: "a.bin" });

      const ended = await Promise.all(enqueued.map(({ id }) => other.jobs.wait(id, { timeout: "30s" })));
      expect(ended.filter(({ state }) => state !== "done")).toEqual([]);
      expect(ended.map(({ attempt }) => attempt)).toEqual(ended.map((__, n) => (n % 10 === 0 ? 2 : 1)));
      expect(ended.map(({ finishedAt }) => Math.abs(finishedAt!.getTime() - Date.now()) < 120_000)).not.toContain(
        false,
      );
      expect([...runs.values()].reduce((sum, count) => sum + count, 0)).toBe(JOBS + JOBS / 10);
      for (const ns of order) expect(ns).toEqual(ns.toSorted((a, b) => a - b));
      expect(await hf.batches.wait(batch.id, { timeout: "30s" })).toMatchObject({ state: "done", ended: 40 });
      const pieces: Uint8Array[] = [];
      const opened = await other.inbox("somebody").open(parcel);
      for await (const piece of opened.stream()) pieces.push(piece);
      expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
      await other.inbox("somebody").ack(parcel);
      expect((await hf.janitor.run()).filter((chore) => chore.ran && chore.error !== null)).toEqual([]);
      expect((await hf.jobs.list({ state: "done" })).jobs.length).toBeGreaterThan(0);
      expect((await hf.stats.kinds()).length).toBeGreaterThan(0);
      await Promise.all(workers.map((worker) => worker.stop()));
      await assertSound(database.url, "holdfast");
    } finally {
      await Promise.all(hfs.map((one) => one.close()));
      await database.drop();
    }
  },
  60_000,
);
