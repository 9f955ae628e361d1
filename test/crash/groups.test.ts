// Groups stay serial and in order across processes, through kills and retries.
import { afterEach, expect, test } from "vitest";
import { openScene, type Scene, type Trace } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.close());

const GROUPS = 4;
const MEMBERS = 10;

test("groups run one at a time and in order while their workers are killed and their jobs fail", async () => {
  scene = await openScene();
  for (let n = 0; n < GROUPS * MEMBERS; n += 1) {
    const member = Math.floor(n / GROUPS);
    // Some fail at first: the head that waits for its retry holds its group.
    const failUpTo = member % 4 === 1 ? 1 : 0;
    await scene.enqueue({ n, ms: 60 + (n % 5) * 30, failUpTo, trace: true }, { group: `g${n % GROUPS}` });
  }
  const workers = ["a", "b", "c"].map((name) => scene.supervised({ name, concurrency: 3, lease: "600ms" }));
  let isOver = false;
  const draining = scene.drained(100_000).then(() => (isOver = true));
  let kills = 0;
  while (!isOver && kills < 8) {
    await new Promise((resolve) => setTimeout(resolve, 400 + Math.random() * 400));
    await scene.forgiven();
    const { child } = workers[kills % 3]!;
    if (!child.said.some((said) => said.what === "started")) continue;
    child.kill("SIGKILL");
    kills += 1;
  }
  await draining;
  await Promise.all(workers.map((worker) => worker.stop()));
  expect(kills).toBeGreaterThan(3);
  expect((await scene.hf.jobs.list({ state: "dead" })).jobs).toEqual([]);

  const traces = await scene.traces();
  for (let group = 0; group < GROUPS; group += 1) {
    const ours = traces.filter((trace) => trace.grp === `g${group}`);
    expect(problemsOf(ours)).toEqual([]);
    const firstStarts = [...new Set(ours.filter((trace) => trace.what === "start").map((trace) => trace.n))];
    const expected = Array.from({ length: MEMBERS }, (_, member) => group + member * GROUPS);
    expect(firstStarts).toEqual(expected);
    const ends = [...new Set(ours.filter((trace) => trace.what === "end").map((trace) => trace.n))];
    expect(ends).toEqual(expected);
  }
  const ended = await scene.ended();
  expect(ended).toHaveLength(GROUPS * MEMBERS);
  // Failures are charged, kills are not.
  for (const job of ended) {
    const attempts = Math.floor(job.n / GROUPS) % 4 === 1 ? 2 : 1;
    expect([job.n, job.state, job.attempt]).toEqual([job.n, "done", attempts]);
  }
}, 150_000);

/** Runs that began before the one before had ended. One that was killed has no end: after it only the same job may run. */
function problemsOf(traces: readonly Trace[]): string[] {
  const problems: string[] = [];
  let open: Trace | undefined;
  let killed: number | undefined;
  for (const trace of traces) {
    if (trace.what !== "start") {
      if (open?.token === trace.token && open.n === trace.n) open = undefined;
      continue;
    }
    if (open) {
      killed = open.n;
      if (open.n !== trace.n) problems.push(`${trace.n} began while ${open.n} had not ended`);
    }
    if (killed !== undefined && trace.n < killed) problems.push(`${trace.n} began after ${killed}`);
    open = trace;
  }
  return problems;
}
