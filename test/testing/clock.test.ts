import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/index.js";
import { ended } from "../support/events.ts";
import { caught, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const MINUTE = 60_000;

describe.each(TIERS)("the clock of a test, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("goes forward, back, and on ticking", async () => {
    const before = await bench.hf.clock.now();
    const later = await bench.hf.clock.advance("31m");
    expect(later.getTime() - before.getTime()).toBeGreaterThanOrEqual(31 * MINUTE);
    expect(later.getTime() - before.getTime()).toBeLessThan(32 * MINUTE);
    const back = await bench.hf.clock.rewind("31m");
    expect(back.getTime() - before.getTime()).toBeGreaterThanOrEqual(0);
    expect(back.getTime() - before.getTime()).toBeLessThan(MINUTE);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await bench.hf.clock.now()).getTime()).toBeGreaterThan(back.getTime());
  });

  test("can be set", async () => {
    const set = await bench.hf.clock.set(new Date("2040-02-29T12:00:00Z"));
    expect(set.toISOString()).toMatch(/^2040-02-29T12:00:/);
    const again = await bench.hf.clock.set("2030-01-01");
    expect(again.toISOString()).toMatch(/^2030-01-01T00:00:/);
    expect(await caught(bench.hf.clock.set("soon"))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    // @ts-expect-error a bare number is no duration
    expect(await caught(bench.hf.clock.advance(31))).toMatchObject({ hint: expect.stringContaining('"31s"') });
  });

  test("adds up however it is moved at the same time", async () => {
    const before = await bench.hf.clock.now();
    await Promise.all(Array.from({ length: 10 }, () => bench.hf.clock.advance("1h")));
    const moved = (await bench.hf.clock.now()).getTime() - before.getTime();
    expect(moved).toBeGreaterThanOrEqual(600 * MINUTE);
    expect(moved).toBeLessThan(602 * MINUTE);
  });

  test("wakes workers: what is due after the move starts at once", async () => {
    const kind = makeKind();
    const worker = await bench.hf.work([kind], { poll: "1m" });
    const { id } = await bench.hf.enqueue(kind, 1, { delay: "31m" });
    await bench.hf.clock.advance("31m");
    const began = performance.now();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
    expect(performance.now() - began).toBeLessThan(5_000);
    await worker.stop();
  });

  test("does not make anybody look dead: a job that runs keeps its lease through a jump", async () => {
    const held = makeHeldKind({ lease: "5s" });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await held.started();
    await bench.hf.clock.advance("7d");
    await bench.hf.clock.advance("7d");
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "running", claimCount: 1 });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", claimCount: 1 });
    await worker.stop();
  });

  test("can be moved across days: finishing a job finds its partition", async () => {
    const kind = makeKind();
    for (const by of ["1d", "40d", "365d"] as const) {
      await bench.hf.clock.advance(by);
      await bench.hf.enqueue(kind, by);
      expect(await runDue(bench.hf, [kind])).toMatchObject({ done: 1 });
    }
    await bench.hf.clock.rewind("300d");
    await bench.hf.enqueue(kind, "back");
    expect(await runDue(bench.hf, [kind])).toMatchObject({ done: 1 });
  });
});
