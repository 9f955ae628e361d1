// What a job has done outlives its runs: steps, checkpoints, progress; and goes when the job does.
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { Gone } from "#src/job/outcome.js";
import type { Worker } from "#src/worker/worker.js";
import { ended } from "../support/events.ts";
import { caught, makeHeldKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { takeAway, useKinds } from "./scene.ts";
import { forgetRemains } from "#src/store/janitor/forget.js";
import { forgetNotes } from "../support/purge.ts";

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

describe.each(TIERS)("notes, %s", (tier) => {
  const bench = useHoldfast(tier);
  const { makeKind, runDue } = useKinds(bench);
  beforeAll(() => bench.db.script("create table charged (job uuid, what text)"));

  const chargedFor = async (id: string): Promise<string[]> =>
    (await bench.db.query<{ what: string }>("select what from charged where job = $1 order by what", [id])).rows.map(
      ({ what }) => what,
    );

  describe("a step", () => {
    test("runs once in the job's life, and every attempt gets its result", async () => {
      const results: unknown[] = [];
      const kind = makeKind<null>({
        attempts: 3,
        backoff: ["0s"],
        async run(job) {
          const receipt = await job.step("charge", async (tx) => {
            await tx.query("insert into charged values ($1, $2)", [job.id, `attempt ${job.attempt}`]);
            return { receipt: 7, by: job.attempt };
          });
          results.push(receipt);
          if (job.attempt < 3) throw new Error("after the charge");
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 3, retrying: 2, done: 1 });
      expect(results).toEqual([1, 2, 3].map(() => ({ receipt: 7, by: 1 })));
      expect(await chargedFor(id)).toEqual(["attempt 1"]);
    });

    test("that fails is not recorded, and neither are its rows", async () => {
      const kind = makeKind<null>({
        backoff: ["0s"],
        async run(job) {
          await job.step("charge", async (tx) => {
            await tx.query("insert into charged values ($1, $2)", [job.id, `attempt ${job.attempt}`]);
            if (job.attempt === 1) throw new Error("declined");
          });
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 2, done: 1 });
      expect(await chargedFor(id)).toEqual(["attempt 2"]);
    });

    test("gives the same in the attempt that made it as in later ones: what JSON keeps of it", async () => {
      const results: unknown[][] = [];
      const at = new Date("2026-01-02T03:04:05.678Z");
      const kind = makeKind<null>({
        backoff: ["0s"],
        async run(job) {
          results.push([
            await job.step("date", async () => ({ at })),
            await job.step("nothing", async () => undefined),
            await job.step("null", async () => null),
            await job.step("false", async () => false),
            await job.step("text", async () => 'with "quotes" and \u2028'),
          ]);
          if (job.attempt === 1) throw new Error("again");
        },
      });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(results[0]).toEqual([{ at: at.toISOString() }, null, null, false, 'with "quotes" and \u2028']);
      expect(results[1]).toEqual(results[0]);
    });

    test("whose result cannot be kept is an error, and did not happen", async () => {
      const kind = makeKind<null>({
        attempts: 1,
        async run(job) {
          await job.step("charge", async (tx) => {
            await tx.query("insert into charged values ($1, 'x')", [job.id]);
            return { big: 1n };
          });
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect((await bench.hf.jobs.get(id))?.lastError).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID" });
      expect(await chargedFor(id)).toEqual([]);
    });

    test("is known by its name, within its job", async () => {
      const kind = makeKind<string>({
        async run(job) {
          for (const name of ["one", "two", "one", "x".repeat(200)]) {
            await job.step(name, (tx) =>
              tx.query("insert into charged values ($1, $2)", [job.id, `${job.payload} ${name.slice(0, 5)}`]),
            );
          }
          for (const name of ["", "x".repeat(201), "nul\0", 7 as unknown as string]) {
            expect(await caught(job.step(name, () => Promise.resolve()))).toMatchObject({
              code: "HOLDFAST_OPTION_INVALID",
            });
          }
        },
      });
      const [a, b] = await bench.hf.enqueueMany(kind, [{ payload: "a" }, { payload: "b" }]);
      expect(await runDue([kind])).toMatchObject({ done: 2 });
      expect(await chargedFor(a!.id)).toEqual(["a one", "a two", "a xxxxx"]);
      expect(await chargedFor(b!.id)).toEqual(["b one", "b two", "b xxxxx"]);
    });

    test("runs again for another payload: an edit that arrived during the run is not swallowed", async () => {
      const kind = makeKind<{ text: string }>({
        async run(job) {
          await job.step("publish", (tx) =>
            tx.query("insert into charged values ($1, $2)", [job.id, job.payload.text]),
          );
          if (job.payload.text === "first") {
            await bench.hf.enqueue(kind, { text: "edited" }, { coalesce: "page" });
          }
        },
      });
      const { id } = await bench.hf.enqueue(kind, { text: "first" }, { coalesce: "page" });
      await runDue([kind]);
      expect(await chargedFor(id)).toEqual(["edited", "first"]);
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", payload: { text: "edited" } });
    });
  });

  describe("a checkpoint", () => {
    test("is what the next attempt finds, by name; nothing before the first", async () => {
      const found: unknown[] = [];
      const kind = makeKind<null>({
        attempts: 3,
        backoff: ["0s"],
        async run(job) {
          found.push([await job.lastCheckpoint(), await job.lastCheckpoint("pages")]);
          await job.checkpoint({ cursor: job.attempt });
          await job.checkpoint(`page ${job.attempt}`, { name: "pages" });
          if (job.attempt < 3) throw new Error("again");
        },
      });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(found).toEqual([
        [undefined, undefined],
        [{ cursor: 1 }, "page 1"],
        [{ cursor: 2 }, "page 2"],
      ]);
    });

    test("goes with the rows written through its tx: both or neither", async () => {
      const found: unknown[] = [];
      const kind = makeKind<null>({
        attempts: 3,
        backoff: ["0s"],
        async run(job) {
          found.push(await job.lastCheckpoint());
          await job.transaction(async (tx) => {
            await tx.query("insert into charged values ($1, $2)", [job.id, `page ${job.attempt}`]);
            await job.checkpoint(job.attempt, { tx });
            if (job.attempt === 2) throw new Error("rolled back");
          });
          if (job.attempt === 1) throw new Error("again");
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(found).toEqual([undefined, 1, 1]);
      expect(await chargedFor(id)).toEqual(["page 1", "page 3"]);
    });

    test("of another payload does not count", async () => {
      const found: unknown[] = [];
      const kind = makeKind<number>({
        backoff: ["0s"],
        async run(job) {
          found.push([job.payload, await job.lastCheckpoint()]);
          await job.checkpoint(`of ${job.payload}`);
          if (job.payload === 2) return;
          if (found.length === 1) throw new Error("again, with the same payload");
          await bench.hf.enqueue(kind, 2, { coalesce: "spec" });
        },
      });
      await bench.hf.enqueue(kind, 1, { coalesce: "spec" });
      await runDue([kind]);
      expect(found).toEqual([
        [1, undefined],
        [1, "of 1"],
        [2, undefined],
      ]);
    });

    test("that cannot be kept is refused", async () => {
      let error: unknown;
      const kind = makeKind<null>({
        async run(job) {
          error = await caught(job.checkpoint(() => 1));
        },
      });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(error).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID" });
    });
  });

  describe("progress", () => {
    test("is readable while the job runs, and the newest of many is what stays", async () => {
      const held = makeHeldKind<null>();
      workers.push(await bench.hf.work([held.kind]));
      const { id } = await bench.hf.enqueue(held.kind, null);
      const job = await held.started();
      expect((await bench.hf.jobs.get(id))?.progress).toBeNull();
      await Promise.all(Array.from({ length: 200 }, (_, done) => job.progress(done + 1, 200, "operations")));
      expect(await bench.hf.jobs.get(id)).toMatchObject({
        state: "running",
        progress: { done: 200, total: 200, note: "operations" },
      });
      await job.progress(5);
      expect((await bench.hf.jobs.get(id))?.progress).toMatchObject({ done: 5, total: null, note: null });
      await job.progress(Number.NaN, Infinity, "nul\0 and \ud800");
      expect((await bench.hf.jobs.get(id))?.progress).toMatchObject({
        done: 0,
        total: null,
        note: "nul\ufffd and \ufffd",
      });
      held.release();
      await ended(bench.hf, id);
    });

    test("of a run that lost its lease is not taken, and is no error", async () => {
      const held = makeHeldKind<null>();
      workers.push(await bench.hf.work([held.kind], { concurrency: 2 }));
      const { id } = await bench.hf.enqueue(held.kind, null);
      const first = await held.started();
      await first.progress(1, 3, "first");
      await takeAway(bench, id);
      await first.progress(2, 3, "zombie");
      expect((await bench.hf.jobs.get(id))?.progress).toMatchObject({ done: 1, note: "first" });
      held.release();
      await ended(bench.hf, id);
    });
  });

  describe("after the job", () => {
    const notesOf = async (ids: readonly string[]): Promise<string[]> => {
      const { rows } = await bench.db.query<{ note: string }>(
        `select sort || ' ' || name as note from holdfast.job_notes where job_id = any($1)
         union all select 'saved ' || key from holdfast.job_saved_items where job_id = any($1) order by note`,
        [ids],
      );
      return rows.map(({ note }) => note);
    };
    const forgetAll = async (): Promise<void> => {
      while ((await forgetNotes(bench.store, 1_000)) > 0);
    };

    test("its notes are forgotten; those of jobs that live, wait or are dead stay", async () => {
      const kind = makeKind<string>({
        attempts: 1,
        async run(job) {
          await job.step("pay", () => Promise.resolve(1));
          await job.checkpoint(1);
          await job.generation(`unit of ${job.id}`);
          for await (const chunk of job.chunks("embed", ["a"], { key: (item) => item })) await chunk.save();
          if (job.payload === "dead") throw new Error("no");
        },
      });
      const [done, dead] = await bench.hf.enqueueMany(kind, [{ payload: "done" }, { payload: "dead" }]);
      const all = ["checkpoint default", "chunks embed", "saved a", "step pay"];
      await runDue([kind]);
      await forgetAll();
      expect(await notesOf([done!.id])).toEqual([]);
      expect(await notesOf([dead!.id])).toEqual([...all, `generation unit of ${dead!.id}`].toSorted());
      // A person gives it another life: it goes on where it was.
      await bench.hf.jobs.discard(dead!.id);
      await forgetAll();
      expect(await notesOf([dead!.id])).toEqual([]);
    });

    test("forgetting is bounded, and goes on until nothing is left", async () => {
      const kind = makeKind<null>({
        async run(job) {
          const items = Array.from({ length: 25 }, (_, index) => `${index}`);
          for await (const chunk of job.chunks("embed", items, { key: (item) => item })) await chunk.save();
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      await bench.db.query(
        "insert into holdfast.job_notes select $1, 'step', n::text, 'null', now() from generate_series(1, 9) n",
        [id],
      );
      const page = await forgetRemains(bench.store, "saved items", 10, undefined);
      expect(page.rows).toBeLessThanOrEqual(10);
      expect(page.next).toBeDefined();
      await forgetNotes(bench.store, 10);
      expect(await notesOf([id])).toEqual([]);
    });

    test("a dead job that is retried resumes with what it had saved", async () => {
      const given: string[] = [];
      let isWell = false;
      const kind = makeKind<null>({
        attempts: 1,
        async run(job) {
          for await (const chunk of job.chunks("embed", ["a", "b"], { size: 1 })) {
            given.push(chunk.items[0]!);
            if (chunk.start === 1 && !isWell) throw new Error("ill");
            await chunk.save();
          }
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ dead: 1 });
      await forgetAll();
      isWell = true;
      await bench.hf.jobs.retry(id);
      expect(await runDue([kind])).toMatchObject({ done: 1 });
      expect(given).toEqual(["a", "b", "b"]);
    });
  });

  describe("Gone", () => {
    test("ends the job as done at once, with the reason, without a retry; what it cleared stays cleared", async () => {
      await bench.db.query("create table specs (id text primary key)");
      await bench.db.query("create table embeddings (spec text references specs on delete cascade, item text)");
      await bench.db.query("insert into specs values ('kept'), ('deleted')");
      const kind = makeKind<string>({
        async run(job) {
          for await (const chunk of job.chunks("embed", ["a", "b"], { size: 1 })) {
            try {
              await chunk.save((tx) =>
                tx.query("insert into embeddings values ($1, $2)", [job.payload, chunk.items[0]]).then(() => undefined),
              );
            } catch (error) {
              // foreign_key_violation: the spec is not there any more.
              if ((error as { code?: string }).code !== "23503") throw error;
              await job.transaction((tx) => tx.query("delete from embeddings where spec = $1", [job.payload]));
              throw new Gone("the spec was deleted", { cause: error });
            }
            if (job.payload === "deleted") await bench.db.query("delete from specs where id = 'deleted'");
          }
          return "embedded";
        },
      });
      const [kept, deleted] = await bench.hf.enqueueMany(kind, [{ payload: "kept" }, { payload: "deleted" }]);
      expect(await runDue([kind])).toMatchObject({ runs: 2, done: 2, retrying: 0, dead: 0 });
      expect(await bench.hf.jobs.get(kept!.id)).toMatchObject({ state: "done", result: "embedded", lastError: null });
      expect(await bench.hf.jobs.get(deleted!.id)).toMatchObject({
        state: "done",
        attempt: 1,
        result: null,
        lastError: { name: "Gone", message: "the spec was deleted" },
      });
      expect(await bench.hf.jobs.attempts(deleted!.id)).toEqual([]);
      const { rows } = await bench.db.query("select spec, item from embeddings order by item");
      expect(rows).toEqual([
        { spec: "kept", item: "a" },
        { spec: "kept", item: "b" },
      ]);
    });
  });
});
