// The embedded tier: the database dies with its process, and both come back.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Holdfast, open } from "#src/index.js";
import { killChildren, startChild, supervise } from "../support/processes.ts";
import { SCHEMA, work, type WorkPayload } from "./scene.ts";

let home: string;
let url: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "holdfast-crash-"));
  url = `embedded:${join(home, "data")}`;
});
afterEach(async () => {
  await killChildren();
  await rm(home, { recursive: true, force: true });
});

async function inside<T>(use: (hf: Holdfast) => Promise<T>): Promise<T> {
  const hf = await open({ database: url, schema: SCHEMA });
  try {
    return await use(hf);
  } finally {
    await hf.close();
  }
}

const enqueue = (payloads: WorkPayload[]): Promise<string[]> =>
  inside(async (hf) =>
    (
      await hf.enqueueMany(
        work,
        payloads.map((payload) => ({ payload })),
      )
    ).map((job) => job.id),
  );

test("a process is killed in the middle of its jobs: opened again, it runs them at once, uncharged", async () => {
  const ids = await enqueue([0, 1, 2].map((n) => ({ n, ms: 60_000, thenMs: 0 })));
  // A lease much longer than the test: nobody waits for it, because nobody else can have the folder.
  const config = { url, schema: SCHEMA, lease: "10m", concurrency: 3 };
  const first = await startChild("worker.mjs", { name: "first", ...config });
  for (const id of ids) await first.until("started", (said) => said["job"] === id);
  first.kill("SIGKILL");
  await first.exited;
  const second = await startChild("worker.mjs", { name: "second", ...config });
  const ready = second.said.find((said) => said.what === "ready")!;
  for (const id of ids) {
    const done = await second.until("job.done", (said) => said["job"] === id);
    expect(done.at - ready.at).toBeLessThan(10_000);
  }
  second.kill("SIGTERM");
  expect(await second.exited).toEqual({ code: 0, signal: null });
  await inside(async (hf) => {
    for (const id of ids) {
      expect(await hf.jobs.get(id)).toMatchObject({
        state: "done",
        attempt: 1,
        claimCount: 2,
        result: { by: "second" },
      });
      expect(await hf.jobs.attempts(id)).toEqual([]);
    }
  });
}, 150_000);

test("a poison job ends dead after a few restarts; the others are done and not charged", async () => {
  const good = Array.from({ length: 20 }, (_, n) => ({ n, ms: 50 }));
  const ids = await enqueue([...good.slice(0, 5), { n: 20, die: "kill" as const }, ...good.slice(5)]);
  const poison = ids[5]!;
  const runner = supervise("worker.mjs", { name: "only", url, schema: SCHEMA, lease: "10m", concurrency: 4 });
  const end = Date.now() + 150_000;
  // Once beside others, three times alone; the fifth life has nothing to fear.
  while (runner.lives < 5 || !runner.child.said.some((said) => said.what === "ready")) {
    if (Date.now() > end) throw new Error(`Only ${runner.lives} lives. ${runner.child.errors}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Nothing is left for it to do when it has been quiet for a while.
  for (let count = -1; count !== runner.child.said.length; await new Promise((resolve) => setTimeout(resolve, 2_000))) {
    count = runner.child.said.length;
  }
  expect(runner.lives).toBe(5);
  await runner.stop();
  await inside(async (hf) => {
    expect(await hf.jobs.get(poison)).toMatchObject({ state: "dead", lastError: { reason: "crashed" }, claimCount: 4 });
    for (const id of ids) {
      if (id === poison) continue;
      expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1 });
      expect(await hf.jobs.attempts(id)).toEqual([]);
    }
  });
}, 200_000);
