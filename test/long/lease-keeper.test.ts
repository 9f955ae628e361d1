// Who ends a run: the database's word, or our own clock; and never the fact that we ourselves were late to listen.
import { afterEach, expect, test } from "vitest";
import { Worker as Thread } from "node:worker_threads";
import { defineJob } from "#src/job/define-job.js";
import type { BeatResult } from "#src/store/jobs/beat.js";
import { clockMs } from "#src/worker/beater.js";
import { type LeaseKeeper, makeLeaseKeeper } from "#src/worker/lease-keeper.js";
import { makeRun, type Run, signalOf } from "#src/worker/run.js";
import { makeGate } from "../support/make.ts";
import { sleep } from "./scene.ts";

const TOKEN = "77";

function runOf(lease: "500ms" | "3s"): Run {
  const kind = defineJob("embed", { lease, run: () => undefined });
  const job = {
    id: "0192a1b2-0000-7000-8000-000000000001",
    kind: "embed",
    queue: "default",
    payload: null,
    attempt: 1,
    max_attempts: 5,
    rank: 0,
    key: null,
    group_key: null,
    last_error: null,
    run_us: "0",
    lag_ms: 0,
  };
  return makeRun({ job, kind, token: TOKEN, alone: false, now: performance.now() });
}

const renewed = (leaseMs: number): BeatResult[] => [
  { token: TOKEN, lease_ms: leaseMs, state: "renewed", cancel_ids: [] },
];

let keeper: LeaseKeeper | undefined;
let thread: Thread | undefined;
afterEach(async () => {
  await keeper?.stop();
  await thread?.terminate();
});

function startKeeper(isOnlyProcess = false): { lost: Run[]; wasLost: Promise<void> } {
  const lost: Run[] = [];
  const gate = makeGate();
  keeper = makeLeaseKeeper({
    isOnlyProcess,
    onLost(run) {
      lost.push(run);
      gate.open();
    },
    makeBeater: () => ({
      expect: () => undefined,
      hold: () => undefined,
      drop: () => undefined,
      stop: () => Promise.resolve(),
    }),
  });
  keeper.start();
  return { lost, wasLost: gate.opened };
}

test("a process that is late to listen, again and again, hears the beats that came meanwhile before it judges", async () => {
  const { lost } = startKeeper();
  // The beats of a thread, as they arrive: the main thread reads of them when it comes to it.
  thread = new Thread(
    `const { parentPort } = require("node:worker_threads");
     setInterval(() => parentPort.postMessage(Number(process.hrtime.bigint()) / 1e6), 40);`,
    { eval: true },
  );
  const beating = makeGate();
  thread.on("message", (sentAt: number) => {
    keeper!.onBeat(renewed(500), sentAt);
    beating.open();
  });
  await beating.opened;
  const run = runOf("500ms");
  keeper!.hold([run], clockMs(), false);
  for (let round = 0; round < 8; round += 1) {
    const end = performance.now() + 470;
    while (performance.now() < end);
    await sleep(1 + round * 9);
  }
  expect(lost).toEqual([]);
  expect(signalOf(run).aborted).toBe(false);
});

test("a process that was blocked, and sends its beats itself, is heard before anything is lost", async () => {
  const { lost } = startKeeper();
  const run = runOf("500ms");
  keeper!.hold([run], clockMs(), false);
  const end = performance.now() + 1_000;
  while (performance.now() < end);
  const sentAt = clockMs();
  await sleep(30);
  keeper!.onBeat(renewed(500), sentAt);
  await sleep(300);
  expect(lost).toEqual([]);
});

test("without a beat the run ends before the lease could be given away, counted from when the claim was sent", async () => {
  const { lost, wasLost } = startKeeper();
  const run = runOf("3s");
  const sentAt = clockMs() - 1_500;
  keeper!.hold([run], sentAt, false);
  await wasLost;
  expect(lost).toEqual([run]);
  expect(signalOf(run).reason).toMatchObject({ why: "lease-lost" });
  expect(clockMs()).toBeGreaterThan(sentAt + 2_600);
});

test("a beat counts from when it was sent, not from when its answer came", async () => {
  const { wasLost } = startKeeper();
  const run = runOf("3s");
  const began = clockMs();
  keeper!.hold([run], began, false);
  keeper!.onBeat(renewed(3_000), began - 1_000);
  keeper!.onBeat([{ token: TOKEN, lease_ms: 3_000, state: "unknown", cancel_ids: [] }], began + 60_000);
  await wasLost;
  expect(clockMs() - began).toBeLessThan(4_500);
});

test("where nobody else could take over, our own clock ends nothing", async () => {
  const { lost } = startKeeper(true);
  const run = runOf("500ms");
  keeper!.hold([run], clockMs() - 60_000, false);
  await sleep(700);
  expect(lost).toEqual([]);
  keeper!.onBeat([{ token: TOKEN, lease_ms: 500, state: "lost", cancel_ids: [] }], clockMs());
  expect(lost).toEqual([run]);
});

test.each([
  ["its row went with the settle", ["row-gone", "row-gone"], false],
  ["its row is still there", ["row-gone", "settled"], true],
  ["a run was left behind: the row must run out", ["left-behind", "settled"], false],
] as const)("a lease has no more beats once its last run is over; %s", (_, [first, last], removeRow) => {
  const told: unknown[] = [];
  keeper = makeLeaseKeeper({
    isOnlyProcess: false,
    onLost: () => expect.unreachable(),
    makeBeater: () => ({
      expect: ({ token, leaseMs }) => void told.push({ expect: token, leaseMs }),
      hold: ({ token, leaseMs }) => void told.push({ hold: token, leaseMs }),
      drop: ({ token }, isRemoved) => void told.push({ drop: token, isRemoved }),
      stop: () => Promise.resolve(),
    }),
  });
  keeper.start();
  const runs = [runOf("3s"), runOf("3s")] as const;
  keeper.hold(runs, clockMs(), false);
  keeper.drop(runs[0], first);
  expect(told).toEqual([{ hold: TOKEN, leaseMs: 3_000 }]);
  keeper.drop(runs[1], last);
  keeper.drop(runs[1], last);
  expect(told.slice(1)).toEqual([{ drop: TOKEN, isRemoved: removeRow }]);
});

test("a claim is kept from before it is sent: beats that came before its answer count, unless they came before the claim", async () => {
  const { lost } = startKeeper();
  const sentAt = clockMs() - 10_000;
  keeper!.expect(TOKEN, [500, 3_000], sentAt);
  expect([...keeper!.held()]).toEqual([]);
  const early: BeatResult[] = [{ token: TOKEN, lease_ms: 500, state: "lost", cancel_ids: [] }];
  keeper!.onBeat(early, clockMs());
  keeper!.onBeat(renewed(500), clockMs() + 60_000);
  const run = runOf("500ms");
  const beforeAnswer = clockMs();
  keeper!.hold([run], sentAt, false);
  keeper!.expectNoMore(TOKEN, [500, 3_000]);
  expect([...keeper!.held()]).toMatchObject([{ token: TOKEN, leaseMs: 500 }]);
  // Heard late, and sent before the claim was there.
  keeper!.onBeat(early, beforeAnswer);
  await sleep(700);
  expect(lost).toEqual([]);
  keeper!.onBeat(early, clockMs());
  expect(lost).toEqual([run]);
});
