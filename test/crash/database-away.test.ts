// PostgreSQL stops, freezes, or throws everybody out. Workers never exit, no acknowledged job is lost, nobody is charged,
// and a silence that was the database's own is held against no job.
import { spawnSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startPostgres } from "../support/postgres-server.mjs";
import { expectAllDone, makeFlag, openScene, type Scene, SCHEMA } from "./scene.ts";

let server: Awaited<ReturnType<typeof startPostgres>>;
let scene: Scene;
let databases = 0;
beforeAll(async () => {
  server = await startPostgres();
});
afterEach(() => scene.close());
afterAll(() => server.remove());

async function openHere(): Promise<Scene> {
  const name = `away_${(databases += 1)}`;
  const admin = await openScene(server.url());
  await admin.sql.query(`create database ${name}`);
  await admin.close();
  return await openScene(server.url(name));
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Enqueues one after the other until told to stop; which were acknowledged, and which may or may not be there. */
function keepEnqueuing(from: Scene, pauseMs: number): { stop(): Promise<{ acked: string[]; unknown: number[] }> } {
  const acked: string[] = [];
  const unknown: number[] = [];
  let isOver = false;
  const loops = [0, 1, 2].map(async (offset) => {
    for (let n = 10_000 + offset; !isOver; n += 3) {
      try {
        acked.push(await from.enqueue({ n, ms: 5 }, n % 2 === 0 ? { key: `away${n}` } : {}));
      } catch (error) {
        expect(error).toMatchObject({ code: "HOLDFAST_DATABASE_UNAVAILABLE" });
        unknown.push(n);
      }
      await sleep(pauseMs);
    }
  });
  return {
    async stop() {
      isOver = true;
      await Promise.all(loops);
      return { acked, unknown };
    },
  };
}

async function expectAcksKept(acked: readonly string[], unknown: readonly number[]): Promise<void> {
  const ended = (await scene.ended()).filter((job) => job.n >= 10_000);
  const ids = new Set(ended.map((job) => job.id));
  expect(acked.filter((id) => !ids.has(id))).toEqual([]);
  // One enqueue is one job, whether or not its answer arrived.
  expect(new Set(ended.map((job) => job.n)).size).toBe(ended.length);
  const extra = ended.filter((job) => !acked.includes(job.id) && !unknown.includes(job.n));
  expect(extra).toEqual([]);
  expect(acked.length).toBeGreaterThan(20);
}

test("PostgreSQL stops at once and is away for longer than a lease", async () => {
  scene = await openHere();
  const workers = await Promise.all(["a", "b"].map((name) => scene.worker({ name, concurrency: 5, lease: "1s" })));
  await scene.enqueueMany(Array.from({ length: 100 }, (_, n) => ({ n, ms: 400 })));
  const enqueuing = keepEnqueuing(scene, 20);
  await sleep(1_000);
  await server.stop("immediate");
  await sleep(3_000);
  await server.start();
  await sleep(1_500);
  const { acked, unknown } = await enqueuing.stop();
  await scene.drained();
  expect(workers.map((worker) => worker.isRunning)).toEqual([true, true]);
  expectAllDone(
    (await scene.ended()).filter((job) => job.n < 10_000),
    100,
  );
  await expectAcksKept(acked, unknown);
  expect(await scene.charged()).toEqual([]);
  for (const worker of workers) expect(worker.errors).toBe("");
}, 90_000);

test("a job that crashed before is not blamed for the database's absence, nor is anybody suspected", async () => {
  scene = await openHere();
  const flag = await makeFlag();
  const id = await scene.enqueue({ n: 0, whileFile: flag.path });
  // One more crash of its own would bury it.
  await scene.sql.query(`update ${SCHEMA}.jobs set hold = 2, crash_count = 2`);
  const alone = await scene.worker({ name: "alone", concurrency: 1, lease: "2s" });
  await alone.until("started", (said) => said["job"] === id);
  const beside = await scene.worker({ name: "beside", concurrency: 4, lease: "2s" });
  const others = await scene.enqueueMany([1, 2, 3].map((n) => ({ n, whileFile: flag.path })));
  for (const other of others) await beside.until("started", (said) => said["job"] === other);
  await server.stop("immediate");
  await sleep(1_000);
  // Nobody can give back what this one had, and nobody could have heard of it either.
  alone.kill("SIGKILL");
  await sleep(3_000);
  await server.start();
  await scene.worker({ name: "fresh", concurrency: 1, lease: "2s" });
  await flag.remove();
  const suspects: unknown[] = [];
  const end = Date.now() + 60_000;
  for (;;) {
    const { rows } = await scene.hf.jobs.list().then(
      ({ jobs }) => ({ rows: jobs }),
      () => ({ rows: [] }),
    );
    for (const job of rows) if (job.id !== id && job.lastError) suspects.push(job);
    if (rows.length === 4 && rows.every((job) => job.state === "done" || job.state === "dead")) break;
    if (Date.now() > end) throw new Error(`Still open: ${JSON.stringify(rows)}`);
    await sleep(20);
  }
  expect(suspects).toEqual([]);
  expectAllDone(await scene.ended(), 4);
  expect(await scene.charged()).toEqual([]);
}, 90_000);

test.each([
  ["longer than a call may take", "1s"],
  ["not as long as a call may take", "10s"],
])(
  "PostgreSQL is frozen for longer than a lease, %s: nobody is charged, no suspect is blamed for it",
  async (_, callTimeout) => {
    scene = await openHere();
    const flag = await makeFlag();
    const id = await scene.enqueue({ n: 0, whileFile: flag.path });
    await scene.sql.query(`update ${SCHEMA}.jobs set hold = 2, crash_count = 2`);
    const options = { lease: "2s", callTimeout };
    const alone = await scene.worker({ name: "alone", concurrency: 1, ...options });
    await alone.until("started", (said) => said["job"] === id);
    const beside = await scene.worker({ name: "beside", concurrency: 4, ...options });
    const others = await scene.enqueueMany([1, 2, 3].map((n) => ({ n, whileFile: flag.path })));
    for (const other of others) await beside.until("started", (said) => said["job"] === other);
    const frozen = serverProcesses();
    for (const pid of frozen) process.kill(pid, "SIGSTOP");
    try {
      for (const worker of [alone, beside]) await worker.until("aborted");
      await sleep(1_500);
    } finally {
      for (const pid of frozen) process.kill(pid, "SIGCONT");
    }
    await flag.remove();
    await scene.drained();
    expect([alone.isRunning, beside.isRunning]).toEqual([true, true]);
    expectAllDone(await scene.ended(), 4);
    expect(await scene.charged()).toEqual([]);
  },
  90_000,
);

/** The server and all of its processes. */
function serverProcesses(): number[] {
  const postmaster = server.pid()!;
  const listed = spawnSync("ps", ["-o", "pid=", "--ppid", String(postmaster)], { encoding: "utf8" }).stdout;
  return [postmaster, ...listed.split("\n").flatMap((line) => (line.trim() === "" ? [] : [Number(line)]))];
}

test("backends are terminated in a storm", async () => {
  scene = await openHere();
  const workers = await Promise.all(["a", "b"].map((name) => scene.worker({ name, concurrency: 5, lease: "2s" })));
  await scene.enqueueMany(Array.from({ length: 150 }, (_, n) => ({ n, ms: 150 })));
  const enqueuing = keepEnqueuing(scene, 10);
  for (let round = 0; round < 40; round += 1) {
    await scene.sql.query(
      `select pg_terminate_backend(pid) from (
         select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
         order by random() limit 4) as victims`,
    );
    await sleep(100);
  }
  const { acked, unknown } = await enqueuing.stop();
  await scene.drained();
  expect(workers.map((worker) => worker.isRunning)).toEqual([true, true]);
  expectAllDone(
    (await scene.ended()).filter((job) => job.n < 10_000),
    150,
  );
  await expectAcksKept(acked, unknown);
  expect(await scene.charged()).toEqual([]);
  // Otherwise nobody noticed.
  expect(workers.some((worker) => worker.said.some((said) => said.what === "trouble"))).toBe(true);
}, 90_000);
