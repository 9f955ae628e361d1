// The scripts of docs/moving-from-bullmq.md, as they stand there, against BullMQ 6.7.0 on a Redis.
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis } from "../../bench/redis-server.mjs";
import { defineJob } from "#src/job/define-job.js";
import { runDue } from "#src/testing/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { blockOf } from "./page.ts";
import { peerMissing, runNode, runPeer } from "./peers.ts";

const missing =
  peerMissing("bullmq") ??
  (spawnSync("redis-server", ["--version"]).status === 0 ? undefined : "there is no redis-server");
const root = join(import.meta.dirname, "../..");

describe.skipIf(missing)(`BullMQ${missing ? ` (${missing})` : ""}`, () => {
  const bench = useHoldfast("server");
  let redis: NonNullable<Awaited<ReturnType<typeof startRedis>>>;
  let folder: string;
  const ran: string[] = [];
  const mail = defineJob<{ n: string }>("mail.send", { run: (job) => void ran.push(job.payload.n) });
  const run = (file: string, ...args: string[]) =>
    runNode(process.execPath, [join(folder, file), ...args], folder, { DATABASE_URL: bench.url, REDIS_URL: redis.url });
  const look = async () =>
    (await runPeer("bullmq.mjs", redis.url, "look")) as {
      jobs: { name: string; data: { n: string } }[];
      isPaused: boolean;
    };
  const jobs = async () => (await bench.hf.jobs.list({ kind: "mail.send", limit: 100 })).jobs;
  const jobOf = async (n: string) => (await jobs()).find(({ payload }) => (payload as { n: string }).n === n);

  beforeAll(async () => {
    redis = (await startRedis())!;
    folder = await mkdtemp(join(tmpdir(), "holdfast-moving-"));
    await mkdir(join(folder, "node_modules"));
    await symlink(join(root, "bench/node_modules/bullmq"), join(folder, "node_modules/bullmq"));
    await symlink(root, join(folder, "node_modules/holdfast"));
    await writeFile(join(folder, "move.mjs"), blockOf("moving-from-bullmq.md", "Move what is open", "js"));
    await writeFile(join(folder, "back.mjs"), blockOf("moving-from-bullmq.md", "Going back", "js"));
    await runPeer("bullmq.mjs", redis.url, "seed");
  });
  afterAll(async () => {
    await redis?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  test("what is open is moved, and what cannot be stays, with its reason", async () => {
    const said = (await run("move.mjs", "mail")) as { moved: number; left: [string, string][] };
    expect(said).toMatchObject({ moved: 6, left: [[expect.any(String), "enqueue() kind is 'has a space'."]] });
    expect(await look()).toMatchObject({ jobs: [{ name: "has a space" }], isPaused: true });
    expect(await jobOf("plain")).toMatchObject({ status: "ready", attempt: 0, maxAttempts: 1 });
    expect(await jobOf("less urgent")).toMatchObject({ priority: -7 });
    expect(await jobOf("later")).toMatchObject({ status: "scheduled" });
    const failed = (await jobOf("failed"))!;
    expect(failed).toMatchObject({
      status: "retrying",
      attempt: 1,
      maxAttempts: 5,
      lastError: { message: "mailbox full" },
    });
    expect(failed.runAt.getTime() - Date.now()).toBeGreaterThan(500_000);
    expect(await bench.hf.enqueue(mail, { n: "own id" }, { key: "order-42" })).toMatchObject({ created: false });
  });

  test("again: nothing comes twice, also when it stopped between the two servers", async () => {
    expect(await run("move.mjs", "mail")).toMatchObject({ moved: 0 });
    expect(await jobs()).toHaveLength(6);
  });

  test("and back, and there once more: all of it runs, once", async () => {
    expect(await run("back.mjs", "mail", "mail.send")).toMatchObject({ back: 6 });
    expect(await look()).toMatchObject({ isPaused: false });
    expect((await look()).jobs).toHaveLength(7);
    expect(await run("move.mjs", "mail")).toMatchObject({ moved: 6 });
    await bench.hf.sql.query("update :schema.jobs set run_at = :schema.clock() where state = 'pending'");
    await runDue(bench.hf, [mail]);
    expect(ran.toSorted()).toEqual(["failed", "later", "less urgent", "own id", "plain", "second"]);
  });
});
