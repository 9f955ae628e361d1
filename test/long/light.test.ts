// Runs of light claims (their jobs' rows do not say yet that they run) are fenced and found out like any others.
import { afterEach, describe, expect, test } from "vitest";
import { Client } from "pg";
import { defineJob } from "#src/job/define-job.js";
import type { JobContext } from "#src/job/handler.js";
import type { Worker } from "#src/worker/worker.js";
import { ended } from "../support/events.ts";
import { caught, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";
import { killChildren } from "../support/processes.ts";
import { longChild, sleep, takeAway, until } from "./scene.ts";

const bench = useHoldfast("server");
const workers: Worker[] = [];
afterEach(async () => {
  await killChildren();
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

const COUNT = 2_000;

/** Calls `work` in a run whose claim is still a light one. On a machine that is busy they may all be marked too soon. */
async function inLightRun(work: (job: JobContext<number>) => Promise<void>): Promise<void> {
  for (let tries = 1; !(await triedInLightRun(work)); tries += 1) {
    if (tries === 10) throw new Error("There was no light claim.");
  }
}

async function triedInLightRun(work: (job: JobContext<number>) => Promise<void>): Promise<boolean> {
  let wasLight = 0;
  const errors: unknown[] = [];
  const kind = makeKind<number>({
    async run(job) {
      if (job.payload < COUNT / 2 || wasLight > 0 || job.payload % 100 !== 0) return;
      const { rows } = await bench.db.query("select 1 from holdfast.leases where token = $1 and light", [job.token]);
      if (rows.length === 0 || wasLight > 0) return;
      wasLight += 1;
      await work(job).catch((error: unknown) => errors.push(error));
    },
  });
  await bench.hf.enqueueMany(
    kind,
    Array.from({ length: COUNT }, (_, payload) => ({ payload })),
  );
  workers.push(await bench.hf.work([kind], { concurrency: 200 }));
  await until("all of them are done", async () => {
    const { rows } = await bench.db.query("select 1 from holdfast.jobs where kind = $1 limit 1", [kind.kind]);
    return rows.length === 0;
  });
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  expect(errors).toEqual([]);
  return wasLight > 0;
}

async function inTransaction(work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: bench.url });
  await client.connect();
  try {
    await client.query("begin");
    await work(client);
    await client.query("commit");
  } finally {
    await client.end();
  }
}

describe("a run of a light claim", () => {
  test("fences somebody else's transaction, and changes none of its settings", async () => {
    await inLightRun((job) =>
      inTransaction(async (client) => {
        await client.query("set local lock_timeout = '7s'");
        // As light as it can be: nobody marks it while its row is locked here.
        await client.query("select 1 from holdfast.leases where token = $1 for update", [job.token]);
        await job.fence(client);
        const { rows } = await client.query("select current_setting('lock_timeout') as lock, state from holdfast.jobs");
        expect(rows).toContainEqual({ lock: "7s", state: "running" });
      }),
    );
  });

  test("does not fail because somebody is at its lease for a moment", async () => {
    await inLightRun(async (job) => {
      const client = new Client({ connectionString: bench.url });
      await client.connect();
      await client.query("begin");
      await client.query("select 1 from holdfast.leases where token = $1 for update", [job.token]);
      const writes = [job.transaction((tx) => tx.query("select 1")), job.progress(1, 2, "half"), job.checkpoint(1)];
      await sleep(400);
      await client.query("commit");
      await client.end();
      await Promise.all(writes);
    });
  });

  test("keeps its fence after such a transaction was rolled back", async () => {
    await inLightRun(async (job) => {
      await inTransaction(async (client) => {
        await job.fence(client);
        await client.query("rollback");
        await client.query("begin");
      });
      await job.transaction((tx) => tx.query("select 1"));
      await inTransaction((client) => job.fence(client));
    });
  });

  test("can write nothing after its lease ran out", async () => {
    await inLightRun(async (job) => {
      // Its row may be locked for a moment, while those that were claimed with it are settled.
      const isTaken = (): Promise<boolean> =>
        takeAway(bench, job.id).then(
          () => true,
          () => false,
        );
      await until("it is taken away", isTaken);
      expect(await caught(job.transaction((tx) => tx.query("select 1")))).toMatchObject({
        code: "HOLDFAST_LEASE_LOST",
      });
      await inTransaction(async (client) => {
        expect(await caught(job.fence(client))).toMatchObject({ code: "HOLDFAST_LEASE_LOST" });
      });
      // Those that were claimed with it need not wait for an empty process.
      await bench.db.query("update holdfast.jobs set hold = 0 where hold = 2");
    });
  });

  /** 1,500 jobs, one of which hangs its process. */
  async function hang(atOnce: boolean) {
    const crowd = defineJob<{ n: number; hang?: boolean }>("crowd", { lease: "2s", attempts: 1, run: () => "rival" });
    const jobs = await bench.hf.enqueueMany(
      crowd,
      Array.from({ length: 1_500 }, (_, n) => ({ payload: { n, ...(n === 1_000 ? { hang: true } : {}) } })),
    );
    const child = await longChild("crowd.mjs", { name: "crowd", url: bench.url, lease: "2s", timeout: "1s", atOnce });
    await child.until("hangs");
    const hanging = jobs[1_000]!.id;
    return { crowd, child, hanging, others: jobs.flatMap(({ id }) => (id === hanging ? [] : [id])) };
  }

  async function expectUncharged(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1 });
      expect(await bench.hf.jobs.attempts(id)).toEqual([]);
    }
  }

  test("that hangs its process when the others are settled is timed out; those that were claimed with it are done, uncharged", async () => {
    const { child, hanging, others } = await hang(false);
    await until("it is settled", async () => (await bench.hf.jobs.get(hanging))?.state === "dead");
    expect(await bench.hf.jobs.get(hanging)).toMatchObject({ attempt: 1, lastError: { reason: "timeout" } });
    child.kill();
    await expectUncharged(others);
  }, 90_000);

  test("that hangs its process before the others are settled: nobody can tell which it is, and nobody is charged", async () => {
    const { crowd, child, hanging, others } = await hang(true);
    workers.push(await bench.hf.work([crowd]));
    await expectUncharged([...others, hanging]);
    // It has been suspected, and was run alone.
    expect((await bench.hf.jobs.get(hanging))?.claimCount).toBe(2);
    child.kill();
  }, 90_000);
});
