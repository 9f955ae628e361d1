// One at a time, the order is: priority, then due time, then the order of enqueueing.
import { setTimeout as after } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/index.js";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { ended } from "../support/events.ts";

describe.each(TIERS)("the order of runs, %s", (tier) => {
  const bench = useHoldfast(tier);

  function makeNoting(): { seen: string[]; kind: ReturnType<typeof makeKind<string>> } {
    const seen: string[] = [];
    return { seen, kind: makeKind<string>({ run: (job) => void seen.push(job.payload) }) };
  }

  test("is the order of enqueueing", async () => {
    const { seen, kind } = makeNoting();
    const rows = Array.from({ length: 40 }, (_, n) => ({ payload: `${n}` }));
    await bench.hf.enqueueMany(kind, rows.slice(0, 20));
    for (const { payload } of rows.slice(20)) await bench.hf.enqueue(kind, payload);
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(rows.map(({ payload }) => payload));
  });

  test("is by priority first, higher sooner, then by due time, then by id", async () => {
    const { seen, kind } = makeNoting();
    await bench.hf.enqueueMany(kind, [
      { payload: "7: lowest", priority: -100 },
      { payload: "5: ordinary, due later", runAt: "2020-01-03T00:00:00Z" },
      { payload: "3: ordinary, due first", runAt: "2020-01-01T00:00:00Z" },
      { payload: "6: low", priority: -1, runAt: "2019-01-01T00:00:00Z" },
      { payload: "2: high", priority: 1 },
      { payload: "4a: same time, first", runAt: "2020-01-02T00:00:00Z" },
      { payload: "4b: same time, second", runAt: "2020-01-02T00:00:00Z" },
      { payload: "1: highest", priority: 100 },
    ]);
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(seen.toSorted());
    expect(seen).toHaveLength(8);
  });

  test("is one order for several kinds", async () => {
    const seen: string[] = [];
    const kinds = Array.from({ length: 5 }, () => makeKind<string>({ run: (job) => void seen.push(job.payload) }));
    for (let n = 0; n < 30; n += 1) {
      const priority = n % 3;
      await bench.hf.enqueue(kinds[n % 5]!, `${2 - priority}:${String(n).padStart(2, "0")}`, { priority });
    }
    await runDue(bench.hf, kinds);
    expect(seen).toEqual(seen.toSorted());
    expect(seen).toHaveLength(30);
  });

  test("lets a higher priority that comes later go first", async () => {
    const held = makeHeldKind<string>();
    const worker = await bench.hf.work([held.kind], { concurrency: 1 });
    await bench.hf.enqueue(held.kind, "running");
    await held.started();
    const last = await bench.hf.enqueue(held.kind, "ordinary");
    await bench.hf.enqueue(held.kind, "urgent", { priority: 10 });
    held.release();
    await ended(bench.hf, last.id);
    await worker.stop();
    expect(held.runs.map(({ payload }) => payload)).toEqual(["running", "urgent", "ordinary"]);
  });

  test("does not let a group of low priority pass others by", async () => {
    const { seen, kind } = makeNoting();
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 10 }, (_, n) => ({ payload: `low ${n}`, priority: -5, group: `low ${tier}` })),
    );
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 10 }, (_, n) => ({ payload: `high ${n}`, priority: 5 })),
    );
    await runDue(bench.hf, [kind]);
    expect(seen.slice(0, 10).every((payload) => payload.startsWith("high"))).toBe(true);
    expect(seen.slice(10)).toEqual(Array.from({ length: 10 }, (_, n) => `low ${n}`));
  });

  test("keeps a group of low priority behind others that come while its members run", async () => {
    const seen: string[] = [];
    let isFed = false;
    const kind = makeKind<string>({
      async run(job) {
        seen.push(job.payload);
        // Long enough that the next member is known before the next claim.
        await after(10);
        if (isFed) return;
        isFed = true;
        await bench.hf.enqueueMany(
          kind,
          Array.from({ length: 10 }, (_, n) => ({ payload: `high ${n}`, priority: 5 })),
        );
      },
    });
    await bench.hf.enqueueMany(
      kind,
      Array.from({ length: 10 }, (_, n) => ({ payload: `low ${n}`, priority: -5, group: `fed ${tier}` })),
    );
    await runDue(bench.hf, [kind]);
    expect(seen[0]).toBe("low 0");
    expect(seen.slice(1, 11).every((payload) => payload.startsWith("high"))).toBe(true);
    expect(seen.slice(11)).toEqual(Array.from({ length: 9 }, (_, n) => `low ${n + 1}`));
  });
});
