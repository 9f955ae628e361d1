// The leases of a process in memory that two threads share: what the main thread writes down is what the heartbeat thread
// reads, also when there are more leases than places.
import { afterAll, expect, test } from "vitest";
import type { BeatResult } from "#src/store/jobs/beat.js";
import { startBeats } from "#src/worker/beater.js";
import { BOARD_BYTES, readBoard, writeBoard } from "#src/worker/lease-board.js";
import { makePulses } from "#src/shared/pulse.js";
import { makeThreadBeater } from "#src/worker/thread-beater.js";
import { makeHeldKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

const PLACES = 8_192;

function makeBoard() {
  const memory = new SharedArrayBuffer(BOARD_BYTES);
  return { main: writeBoard(memory), thread: readBoard(memory) };
}

const lease = (n: number, leaseMs = 30_000) => ({ token: `${9_000_000_000_000_000_000n + BigInt(n)}`, leaseMs });

test("what is held is read as it was written, with tokens of 63 bits; what is dropped is gone", () => {
  const { main, thread } = makeBoard();
  expect(main.hold(lease(1), 5)).toBe(true);
  expect(main.hold(lease(2, 250), 7.5)).toBe(true);
  expect(thread.held()).toEqual([
    { ...lease(1), heldAt: 5, isExpected: false },
    { ...lease(2, 250), heldAt: 7.5, isExpected: false },
  ]);
  main.drop(lease(1), false);
  expect(thread.held()).toEqual([{ ...lease(2, 250), heldAt: 7.5, isExpected: false }]);
  expect(thread.finished()).toEqual([]);
  main.drop(lease(1), true);
  main.drop(lease(3), true);
  expect(thread.finished()).toEqual([]);
});

test("what is asked for is there before the answer, and is held or forgotten afterwards", () => {
  const { main, thread } = makeBoard();
  expect(main.expect(lease(1), 5)).toBe(true);
  expect(main.expect(lease(2), 5)).toBe(true);
  expect(thread.held()).toMatchObject([
    { ...lease(1), heldAt: 5, isExpected: true },
    { ...lease(2), heldAt: 5, isExpected: true },
  ]);
  expect(main.hold(lease(1), 9)).toBe(true);
  main.drop(lease(2), false);
  expect(thread.held()).toEqual([{ ...lease(1), heldAt: 9, isExpected: false }]);
  main.drop(lease(1), false);
  expect(thread.held()).toEqual([]);
});

test("one claim can have leases of several lengths", () => {
  const { main, thread } = makeBoard();
  const { token } = lease(1);
  main.hold({ token, leaseMs: 1_000 }, 0);
  main.hold({ token, leaseMs: 2_000 }, 0);
  main.drop({ token, leaseMs: 1_000 }, false);
  expect(thread.held()).toMatchObject([{ token, leaseMs: 2_000 }]);
});

test("a row that should go is asked for until it is gone, and its place is not given away before", () => {
  const { main, thread } = makeBoard();
  for (let n = 0; n < PLACES; n += 1) expect(main.hold(lease(n), 0)).toBe(true);
  expect(main.hold(lease(PLACES), 0)).toBe(false);
  main.drop(lease(3), true);
  expect(thread.held()).toHaveLength(PLACES - 1);
  expect(thread.finished()).toMatchObject([{ lease: lease(3) }]);
  // Its beat failed: nothing changed.
  expect(main.hold(lease(PLACES), 0)).toBe(false);
  for (const { forget } of thread.finished()) forget();
  expect(thread.finished()).toEqual([]);
  expect(main.hold(lease(PLACES), 0)).toBe(true);
  expect(main.hold(lease(PLACES + 1), 0)).toBe(false);
  expect(thread.held()).toHaveLength(PLACES);
});

test("the thread is woken for what it would not look at in time by itself", () => {
  const { main, thread } = makeBoard();
  expect(main.needsWaking(60_000)).toBe(true);
  thread.expect(1_000);
  expect([main.needsWaking(999), main.needsWaking(1_000), main.needsWaking(60_000)]).toEqual([true, false, false]);
  thread.expect(0);
  expect(main.needsWaking(60_000)).toBe(true);
});

test("signs of life are read as they were given", () => {
  const { main, thread } = makeBoard();
  main.showLife(123_456_789.25);
  expect(thread.lifeMs()).toBe(123_456_789.25);
});

const bench = useHoldfast("server");
let stop: (() => Promise<void>) | undefined;
afterAll(() => stop?.());

test("what a claim that took nothing would have had is not told as lost", async () => {
  let hear = (_results: BeatResult[]): void => undefined;
  const heard = new Promise<BeatResult[]>((resolve) => (hear = resolve));
  const loop = startBeats(
    { store: bench.store, onBeat: (results) => hear(results), onMissed: (error) => expect.unreachable(String(error)) },
    {
      held: () => [
        { ...lease(1, 300), isExpected: true },
        { ...lease(2, 300), isExpected: false },
      ],
      finished: () => [],
      expect: () => undefined,
    },
  );
  expect((await heard).map(({ token, state }) => [token, state])).toEqual([[lease(2).token, "lost"]]);
  await loop.stop();
});

test("more leases than places: the ones that found none are renewed as well", async () => {
  const held = makeHeldKind<null>({ lease: "1500ms" });
  const worker = await bench.hf.work([held.kind], { grace: "1s" });
  await bench.hf.enqueue(held.kind, null);
  const real = { token: (await held.started()).token, leaseMs: 1_500 };
  let renewed = (): void => undefined;
  const gate = new Promise<void>((resolve) => (renewed = resolve));
  const beater = makeThreadBeater({
    store: bench.store,
    onBeat(results) {
      if (results.some(({ token, state }) => token === real.token && state === "renewed")) renewed();
    },
    onMissed: () => undefined,
    onTrouble: () => undefined,
    pulses: makePulses(),
    name: "test",
    // It never beats: whatever is renewed, is renewed from here.
    file: new URL("./children/thread-that-beats-nothing.mjs", import.meta.url),
    thread: {
      connection: { url: bench.url },
      schema: "holdfast",
      kinds: [],
      keepEnded: { ms: null, queues: {} },
      hungHook: null,
    },
  });
  stop = () => beater.stop();
  // Only after its first sign are beats left to the thread.
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (let n = 0; n < PLACES; n += 1) beater.hold(lease(n));
  beater.hold(real);
  await gate;
  beater.drop(real, false);
  held.release();
  await worker.stop();
});
