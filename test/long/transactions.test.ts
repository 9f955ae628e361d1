// Fenced transactions: they commit with the lease or not at all, nest only into a coded error, and can carry the job's
// own completion.
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { Client } from "pg";
import type { JobContext, JobTransaction } from "#src/job/handler.js";
import { runDue as runOwn, openTest } from "#src/testing/index.js";
import type { Worker } from "#src/worker/worker.js";
import { collect, ended } from "../support/events.ts";
import { caught, makeGate, makeHeldKind, makeKind as makeOwnKind } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";
import { sleep, takeAway, useKinds } from "./scene.ts";

const NESTED = { code: "HOLDFAST_TRANSACTION_NESTED" };

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

const write = (tx: JobTransaction, id: string, what: string): Promise<unknown> =>
  tx.query("insert into written (job, what) values ($1, $2)", [id, what]);

async function rowsOf(bench: Bench, id: string): Promise<string[]> {
  const { rows } = await bench.db.query<{ what: string }>("select what from written where job = $1 order by what", [
    id,
  ]);
  return rows.map(({ what }) => what);
}

describe.each(TIERS)("job.transaction, %s", (tier) => {
  const bench = useHoldfast(tier);
  const { makeKind, runDue } = useKinds(bench);
  beforeAll(() => bench.db.script("create table written (job uuid, what text)"));

  /** Runs `work` as the handler of one job, once. */
  async function inJob<T>(work: (job: JobContext) => Promise<T>): Promise<{ id: string; value: T }> {
    let value: T | undefined;
    const kind = makeKind<null>({
      attempts: 1,
      async run(job) {
        value = await work(job);
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    await runDue([kind]);
    const job = await bench.hf.jobs.get(id);
    if (job?.state !== "done") throw new Error(`The job failed: ${JSON.stringify(job?.lastError)}`);
    return { id, value: value as T };
  }

  test("commits what its callback wrote and returns what it returned; a throw rolls back", async () => {
    const { id, value } = await inJob(async (job) => {
      const answer = await job.transaction(async (tx) => {
        await write(tx, job.id, "kept");
        return 41 + 1;
      });
      const error = await caught(
        job.transaction(async (tx) => {
          await write(tx, job.id, "not kept");
          throw new Error("on second thoughts");
        }),
      );
      return { answer, error };
    });
    expect(value).toMatchObject({ answer: 42, error: { message: "on second thoughts" } });
    expect(await rowsOf(bench, id)).toEqual(["kept"]);
  });

  test("inside another one is an error at once, and so is everything that would open one; the outer one goes on", async () => {
    const { id, value } = await inJob(async (job) => {
      const errors: Record<string, unknown> = {};
      await job.transaction(async (tx) => {
        await write(tx, job.id, "outer");
        errors["transaction"] = await caught(job.transaction((inner) => write(inner, job.id, "inner")));
        errors["step"] = await caught(job.step("pay", (inner) => write(inner, job.id, "inner")));
        errors["checkpoint"] = await caught(job.checkpoint(1));
        errors["generation"] = await caught(job.generation("unit"));
        await job.checkpoint("with it", { tx });
      });
      for await (const chunk of job.chunks("embed", ["a"])) {
        await chunk.save(async (tx) => {
          errors["in save"] = await caught(job.transaction((inner) => write(inner, job.id, "inner")));
          await write(tx, job.id, "save");
        });
      }
      await job.step("outer step", async () => {
        errors["in step"] = await caught(job.step("inner step", () => Promise.resolve()));
      });
      return { errors, kept: await job.lastCheckpoint() };
    });
    expect(Object.values(value.errors)).toHaveLength(6);
    for (const error of Object.values(value.errors)) expect(error).toMatchObject(NESTED);
    expect(value.kept).toBe("with it");
    expect(await rowsOf(bench, id)).toEqual(["outer", "save"]);
  });

  test("code that was started inside one may open its own after it is over", async () => {
    const { id } = await inJob(async (job) => {
      const over = makeGate();
      let later: Promise<unknown> | undefined;
      await job.transaction(async (tx) => {
        await write(tx, job.id, "first");
        later = over.opened.then(() => job.transaction((next) => write(next, job.id, "second")));
      });
      over.open();
      await later;
    });
    expect(await rowsOf(bench, id)).toEqual(["first", "second"]);
  });

  test("two at once, not one inside the other, take turns", async () => {
    const { id } = await inJob(async (job) => {
      await Promise.all(
        ["a", "b", "c"].map((what) =>
          job.transaction(async (tx) => {
            const { rows } = await tx.query<{ count: number }>(
              "select count(*)::integer as count from written where job = $1",
              [job.id],
            );
            await write(tx, job.id, `${rows[0]!.count} ${what}`);
          }),
        ),
      );
    });
    expect((await rowsOf(bench, id)).map((what) => what[0])).toEqual(["0", "1", "2"]);
  });

  test("two jobs have theirs at the same time", async () => {
    const gates = [makeGate(), makeGate()];
    const order: string[] = [];
    const kind = makeOwnKind<number>({
      async run(job) {
        await job.transaction(async (tx) => {
          order.push(`in ${job.payload}`);
          if (tier === "server") {
            gates[job.payload]!.open();
            await gates[1 - job.payload]!.opened;
          }
          await write(tx, job.id, "x");
        });
        order.push(`out ${job.payload}`);
      },
    });
    await bench.hf.enqueueMany(kind, [{ payload: 0 }, { payload: 1 }]);
    expect(await runOwn(bench.hf, [kind], { concurrency: 2 })).toMatchObject({ done: 2 });
    // One session: they take turns there. On a server both are open before either commits.
    if (tier === "server") expect(order.slice(0, 2).toSorted()).toEqual(["in 0", "in 1"]);
    else expect(order.toSorted()).toEqual(["in 0", "in 1", "out 0", "out 1"]);
  });

  test("an enqueue with its tx commits with it; one without is its own, or on the embedded tier an error and not a hang", async () => {
    const other = makeKind<string>();
    const { value } = await inJob(async (job) => {
      const rolledBack = await caught(
        job.transaction(async (tx) => {
          await bench.hf.enqueue(other, "rolled back", { tx });
          throw new Error("no");
        }),
      );
      return await job.transaction(async (tx) => {
        await bench.hf.enqueue(other, "with tx", { tx });
        const without = await bench.hf.enqueue(other, "without").then(
          () => "enqueued",
          (error: unknown) => error,
        );
        const keyed = await bench.hf.enqueue(other, "keyed", { key: "k" }).then(
          () => "enqueued",
          (error: unknown) => error,
        );
        return { rolledBack, without, keyed };
      });
    });
    const { jobs } = await bench.hf.jobs.list({ kind: other.kind });
    if (tier === "server") {
      expect(value).toMatchObject({ without: "enqueued", keyed: "enqueued" });
      expect(jobs.map(({ payload }) => String(payload)).toSorted()).toEqual(["keyed", "with tx", "without"]);
    } else {
      expect(value).toMatchObject({ without: NESTED, keyed: NESTED });
      expect(jobs.map(({ payload }) => payload)).toEqual(["with tx"]);
    }
    await runDue([other]);
  });

  test("progress inside one does not wait for it", async () => {
    const { id } = await inJob(async (job) => {
      await job.transaction(async (tx) => {
        await write(tx, job.id, "x");
        const began = performance.now();
        await job.progress(1, 2, "inside");
        expect(performance.now() - began).toBeLessThan(1_000);
      });
      await job.progress(2, 2, "after");
    });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", progress: { done: 2, note: "after" } });
  });

  test("longer than the lease it is not taken over, and commits once", async () => {
    const rival = tier === "server" ? await bench.another() : undefined;
    const kind = makeOwnKind<null>({
      lease: "600ms",
      async run(job) {
        await job.transaction(async (tx) => {
          await write(tx, job.id, `by ${job.token}`);
          await sleep(1_800);
          await write(tx, job.id, "end");
        });
        return job.token;
      },
    });
    workers.push(await bench.hf.work([kind]));
    if (rival) workers.push(await rival.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    const job = await ended(bench.hf, id);
    expect(job).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    expect(await rowsOf(bench, id)).toEqual([`by ${String(job.result)}`, "end"]);
  });

  describe("busy", () => {
    test.runIf(tier === "embedded")(
      "an enqueue without tx inside job.transaction is refused at once, also while others wait; those are not refused",
      async () => {
        const other = makeKind<string>();
        const inside = makeGate();
        const waiting: Promise<unknown>[] = [];
        let refused: unknown;
        let tookMs = Infinity;
        const kind = makeKind<null>({
          async run(job) {
            await job.transaction(async (tx) => {
              await write(tx, job.id, "x");
              inside.open();
              // Until these are on their way, and wait for the transaction.
              while (waiting.length < 4) await sleep(5);
              await sleep(20);
              const began = performance.now();
              refused = await caught(bench.hf.enqueue(other, "inside"));
              tookMs = performance.now() - began;
            });
          },
        });
        const { id } = await bench.hf.enqueue(kind, null);
        await inside.opened;
        for (const payload of ["1", "2", "3", "4"]) {
          waiting.push(bench.hf.enqueue(other, payload));
          await sleep(2);
        }
        await Promise.all(waiting);
        await ended(bench.hf, id);
        expect(refused).toMatchObject(NESTED);
        expect(tookMs).toBeLessThan(2_000);
        expect((await bench.hf.jobs.list({ kind: other.kind })).jobs).toHaveLength(4);
        await runDue([other]);
      },
    );

    test.runIf(tier === "embedded")(
      "an enqueue from outside in the same moment as a refused one is not refused with it",
      async () => {
        const other = makeKind<string>();
        const gate = makeGate();
        let outside: Promise<unknown> = Promise.resolve();
        // Begins outside, and goes on in the same turn as the code inside.
        const enqueueOutside = gate.opened.then(() => {
          outside = bench.hf.enqueue(other, "outside");
        });
        let refused: unknown;
        const kind = makeKind<null>({
          async run(job) {
            await job.transaction(async (tx) => {
              await write(tx, job.id, "x");
              gate.open();
              refused = await caught(bench.hf.enqueue(other, "inside"));
            });
          },
        });
        const { id } = await bench.hf.enqueue(kind, null);
        await runDue([kind]);
        await enqueueOutside;
        await outside;
        expect(refused).toMatchObject(NESTED);
        expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
        expect((await bench.hf.jobs.list({ kind: other.kind })).jobs).toMatchObject([{ payload: "outside" }]);
        await runDue([other]);
      },
    );
  });

  describe("job.complete", () => {
    test("makes the effects and the completion one commit, with its result; what the handler returns later changes nothing", async () => {
      const done = collect(bench.hf, "job.done");
      const kind = makeKind<null>({
        async run(job) {
          await job.transaction(async (tx) => {
            await write(tx, job.id, "effect");
            await job.complete(tx, { vectors: 148 });
          });
          expect(await bench.hf.jobs.get(job.id)).toMatchObject({ state: "done", result: { vectors: 148 } });
          return "something else";
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1 });
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, result: { vectors: 148 } });
      expect(await rowsOf(bench, id)).toEqual(["effect"]);
      expect(done.events.filter(({ jobId }) => jobId === id)).toHaveLength(1);
      done.stop();
    });

    test("an edit that came during the run: it runs again at once, and is done after that, not before", async () => {
      const told: string[] = [];
      const stops = (["job.again", "job.done", "lease.lost"] as const).map((name) =>
        bench.hf.on(name, ({ kind: of }) => void (of === kind.kind && told.push(name))),
      );
      const kind = makeKind<string>({
        async run(job) {
          if (job.payload === "first") await bench.hf.enqueue(kind, "edited", { coalesce: "page" });
          await job.transaction((tx) => job.complete(tx, job.payload));
        },
      });
      const { id } = await bench.hf.enqueue(kind, "first", { coalesce: "page" });
      expect(await runDue([kind])).toMatchObject({ runs: 2, done: 1 });
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", result: "edited", claimCount: 2 });
      expect(told).toEqual(["job.again", "job.done"]);
      for (const stop of stops) stop();
    });

    test("a handler that throws after it has completed the job: it is done, and nothing is charged", async () => {
      const kind = makeKind<null>({
        async run(job) {
          await job.transaction((tx) => job.complete(tx, "first"));
          throw new Error("too late");
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1, retrying: 0 });
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", result: "first", lastError: null });
      expect(await bench.hf.jobs.attempts(id)).toEqual([]);
    });

    test("a transaction that rolls back takes the completion with it, and the run goes on", async () => {
      const kind = makeKind<null>({
        async run(job) {
          await caught(
            job.transaction(async (tx) => {
              await write(tx, job.id, "not kept");
              await job.complete(tx, "not kept");
              throw new Error("on second thoughts");
            }),
          );
          expect(await bench.hf.jobs.get(job.id)).toMatchObject({ state: "running" });
          await job.transaction((tx) => write(tx, job.id, "kept"));
          return "returned";
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1 });
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", result: "returned" });
      expect(await rowsOf(bench, id)).toEqual(["kept"]);
    });

    test("after it the run can write nothing more", async () => {
      let error: unknown;
      const kind = makeKind<null>({
        async run(job) {
          await job.transaction((tx) => job.complete(tx));
          error = await caught(job.transaction((tx) => write(tx, job.id, "after")));
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1 });
      expect(error).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
      expect(await rowsOf(bench, id)).toEqual([]);
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
    });

    test("the next of its group is admitted in that commit", async () => {
      const order: number[] = [];
      const kind = makeKind<number>({
        async run(job) {
          order.push(job.payload);
          await job.transaction((tx) => job.complete(tx));
        },
      });
      await bench.hf.enqueueMany(
        kind,
        [1, 2, 3].map((payload) => ({ payload, group: "spec" })),
      );
      expect(await runDue([kind])).toMatchObject({ runs: 3, done: 3 });
      expect(order).toEqual([1, 2, 3]);
    });

    test("a result that cannot be kept is refused, and nothing is written", async () => {
      const { id, value } = await inJob((job) =>
        caught(
          job.transaction(async (tx) => {
            await write(tx, job.id, "x");
            await job.complete(tx, new Map());
          }),
        ),
      );
      expect(value).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID" });
      expect(await rowsOf(bench, id)).toEqual([]);
    });
  });
});

describe("job.fence, for a transaction that somebody else opened (server)", () => {
  const bench = useHoldfast("server");
  beforeAll(() => bench.db.script("create table written (job uuid, what text)"));
  const clients: Client[] = [];
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()));
  });

  async function connect(): Promise<Client> {
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    clients.push(client);
    return client;
  }

  async function startHeld() {
    const held = makeHeldKind<null>();
    workers.push(await bench.hf.work([held.kind], { concurrency: 2 }));
    const { id } = await bench.hf.enqueue(held.kind, null);
    return { id, job: await held.started(), held };
  }

  test("commit: the rows are there, and no takeover came between the fence and the commit", async () => {
    const { id, job, held } = await startHeld();
    const client = await connect();
    await client.query("begin");
    await job.fence(client);
    await client.query("insert into written values ($1, 'fenced')", [id]);
    expect(await caught(takeAway(bench, id))).toMatchObject({ message: expect.stringContaining("taken away") });
    await client.query("commit");
    expect(await rowsOf(bench, id)).toEqual(["fenced"]);
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
  });

  test("rollback: nothing is there, and the run goes on", async () => {
    const { id, job, held } = await startHeld();
    const client = await connect();
    await client.query("begin");
    await job.fence(client);
    await client.query("insert into written values ($1, 'fenced')", [id]);
    await client.query("rollback");
    expect(await rowsOf(bench, id)).toEqual([]);
    await job.transaction((tx) => write(tx, id, "later"));
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
  });

  test("lost lease: refused, and the signal says why", async () => {
    const { id, job, held } = await startHeld();
    const client = await connect();
    await takeAway(bench, id);
    await client.query("begin");
    expect(await caught(job.fence(client))).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
    expect(job.signal.reason).toMatchObject({ why: "lease-lost" });
    await client.query("rollback");
    held.release();
    await ended(bench.hf, id);
  });

  test("a run that its own process gave up is refused, though the row would still be free", async () => {
    const overdue = makeGate();
    let error: unknown;
    const client = await connect();
    const kind = makeOwnKind<null>({
      attempts: 1,
      timeout: "100ms",
      lease: "100ms",
      async run(job) {
        await overdue.opened;
        await client.query("begin");
        error = await caught(job.fence(client));
        await client.query("rollback");
      },
    });
    workers.push(await bench.hf.work([kind]));
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "dead", lastError: { reason: "timeout" } });
    overdue.open();
    await workers[0]!.stop();
    expect(error).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
  });

  test("completion in it is one commit with its rows", async () => {
    const { id, job, held } = await startHeld();
    const client = await connect();
    await client.query("begin");
    await job.fence(client);
    await client.query("insert into written values ($1, 'fenced')", [id]);
    await job.complete(client, "by the ORM");
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "running" });
    await client.query("commit");
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", result: "by the ORM" });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1, result: "by the ORM" });
  });

  test("completion in one that rolls back counts for nothing: what the run commits later does not end the job without a trace", async () => {
    const { id, job, held } = await startHeld();
    const client = await connect();
    await client.query("begin");
    await job.complete(client, "by the ORM");
    await client.query("rollback");
    await job.transaction((tx) => write(tx, id, "later"));
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1, result: null });
    expect(await rowsOf(bench, id)).toEqual(["later"]);
  });

  test("inside job.transaction it would wait for itself: an error at once", async () => {
    const { id, job, held } = await startHeld();
    const client = await connect();
    const error = await job.transaction(async (tx) => {
      await write(tx, id, "outer");
      await client.query("begin");
      const refused = await caught(job.fence(client));
      await client.query("rollback");
      return refused;
    });
    expect(error).toMatchObject(NESTED);
    expect(await rowsOf(bench, id)).toEqual(["outer"]);
    held.release();
    await ended(bench.hf, id);
  });

  test("inside job.transaction it is refused for a checkpoint and a generation too: a run that loses its job later writes neither", async () => {
    const { id, job, held } = await startHeld();
    const generation = await job.generation("zombie's");
    const client = await connect();
    await client.query("begin");
    const tx: JobTransaction = {
      async query<Row>(text: string, values: readonly unknown[] = []) {
        const { rows, rowCount } = await client.query(text, [...values]);
        return { rows: rows as Row[], rowCount: rowCount ?? 0 };
      },
    };
    const refused: unknown[] = [];
    const rolledBack = await caught(
      job.transaction(async (own) => {
        refused.push(await caught(job.checkpoint("zombie", { tx })), await caught(generation.makeCurrent(tx)));
        // With its own they are what they always were.
        await job.checkpoint("kept if it commits", { tx: own });
        expect(await generation.makeCurrent(own)).toBe(true);
        throw new Error("on second thoughts");
      }),
    );
    expect(rolledBack).toMatchObject({ message: "on second thoughts" });
    await takeAway(bench, id);
    await client.query("commit");
    const notes = await bench.db.query("select 1 from holdfast.job_notes where job_id = $1 and sort = 'checkpoint'", [
      id,
    ]);
    expect(notes.rows).toEqual([]);
    const { rows } = await bench.db.query("select current from holdfast.generations where unit = 'zombie''s'");
    expect(rows).toEqual([{ current: "0" }]);
    expect(refused).toMatchObject([NESTED, NESTED]);
    held.release();
    await ended(bench.hf, id);
  });

  test("a generation is never made current, and a checkpoint never kept, by a transaction without the lease", async () => {
    const { id, job, held } = await startHeld();
    const generation = await job.generation("unit");
    await takeAway(bench, id);
    const client = await connect();
    await client.query("begin");
    const tx: JobTransaction = {
      async query<Row>(text: string, values: readonly unknown[] = []) {
        const { rows, rowCount } = await client.query(text, [...values]);
        return { rows: rows as Row[], rowCount: rowCount ?? 0 };
      },
    };
    expect(await caught(generation.makeCurrent(tx))).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
    expect(await caught(job.checkpoint("zombie", { tx }))).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
    await client.query("commit");
    const { rows } = await bench.db.query("select current from holdfast.generations where unit = 'unit'");
    expect(rows).toEqual([{ current: "0" }]);
    held.release();
    await ended(bench.hf, id);
  });
});

describe("a pool that is too small (server)", () => {
  const bench = useHoldfast("server");

  test("an enqueue inside a transaction that finds no connection is an error that says so, not a hang", async () => {
    const hf = await openTest({ database: bench.url, poolSize: 2, callTimeout: "400ms" });
    const gates = [makeGate(), makeGate()];
    const other = makeOwnKind<null>();
    const errors: unknown[] = [];
    const kind = makeOwnKind<number>({
      async run(job) {
        await job.transaction(async () => {
          gates[job.payload]!.open();
          await gates[1 - job.payload]!.opened;
          errors.push(await caught(hf.enqueue(other, null)));
        });
      },
    });
    try {
      const jobs = await hf.enqueueMany(kind, [{ payload: 0 }, { payload: 1 }]);
      await hf.work([kind], { concurrency: 2 });
      for (const { id } of jobs) await ended(bench.hf, id);
      expect(errors).toHaveLength(2);
      for (const error of errors) {
        expect(error).toMatchObject({
          code: "HOLDFAST_DATABASE_UNAVAILABLE",
          cause: { hint: expect.stringContaining("poolSize") },
        });
      }
    } finally {
      await hf.close();
    }
  });
});
