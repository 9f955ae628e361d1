// A batch from its creation to its end, on both tiers.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { defineJob } from "#src/job/define-job.js";
import { Fatal } from "#src/job/outcome.js";
import { makeGate, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const numbers = (count: number): { n: number }[] => Array.from({ length: count }, (_, index) => ({ n: index + 1 }));

describe.each(TIERS)("a batch on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test("runs every item once, counts them, and is done in the commit of the last", async () => {
    const { hf } = bench;
    const ran: number[] = [];
    let atOnce = 0;
    let most = 0;
    const follow = defineJob(uniqueName("follow"), { run: () => undefined });
    const kind = defineBatch<{ n: number }, { n: number }, "saved" | "duplicate" | "consent-wall">(
      uniqueName("batch"),
      {
        concurrency: 3,
        outcomes: { saved: {}, duplicate: {}, "consent-wall": { countsAs: "saved", warning: true } },
        async run(item) {
          most = Math.max(most, ++atOnce);
          ran.push(item.seq);
          await new Promise((resolve) => setTimeout(resolve, 2));
          atOnce -= 1;
          if (item.payload.n % 10 === 0) return "duplicate";
          if (item.payload.n % 10 === 1) return { outcome: "consent-wall" as const, result: { n: item.payload.n } };
          return undefined;
        },
      },
    );
    const worker = await hf.work([kind, follow], { concurrency: 20 });
    const { id, created, added } = await hf.batches.create(kind, numbers(40), {
      onDone: { kind: follow.kind, payload: "after" },
    });
    expect({ created, added }).toEqual({ created: true, added: 40 });
    const batch = await hf.batches.wait(id, { timeout: "20s" });
    expect(batch).toMatchObject({ state: "done", total: 40, ended: 40, warnings: 4, completions: 1 });
    expect(batch.counts).toEqual({
      pending: 0,
      running: 0,
      "handed-over": 0,
      saved: 32,
      duplicate: 4,
      "consent-wall": 4,
      error: 0,
      cancelled: 0,
    });
    expect(batch.countedAs).toMatchObject({ saved: 36, duplicate: 4 });
    expect(ran.toSorted((a, b) => a - b)).toEqual(numbers(40).map(({ n }) => n));
    expect(most).toBeLessThanOrEqual(3);
    const { items } = await hf.batches.items(id, { state: "consent-wall" });
    expect(items.map((item) => item.result)).toEqual([{ n: 1 }, { n: 11 }, { n: 21 }, { n: 31 }]);
    await worker.stop();
  });

  test("retries an item, and ends it as an error when its attempts are used up", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), {
      concurrency: 2,
      attempts: 2,
      backoff: ["10ms"],
      run(item) {
        if (item.payload === 1) throw new Error(`bad number ${item.payload} at ${item.attempt}`);
        if (item.payload === 2) throw new Fatal("hopeless");
        if (item.payload === 3 && item.attempt === 1) throw new Error("once");
      },
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, [1, 2, 3, 4]);
    const batch = await hf.batches.wait(id, { timeout: "20s" });
    expect(batch).toMatchObject({ state: "done", counts: { done: 2, error: 2 } });
    const { items } = await hf.batches.items(id);
    expect(items.map((item) => [item.state, item.attempt])).toEqual([
      ["error", 2],
      ["error", 1],
      ["done", 2],
      ["done", 1],
    ]);
    expect((await hf.batches.errors(id)).map(({ count, sample }) => [count, sample.message])).toHaveLength(2);
    await worker.stop();
  });

  test("of no items is done at once", async () => {
    const { hf } = bench;
    const kind = defineBatch(uniqueName("batch"), { run: () => undefined });
    const { id } = await hf.batches.create(kind, []);
    expect(await hf.batches.get(id)).toMatchObject({ state: "done", total: 0, completions: 1 });
  });

  test("tells how fast it goes and how long it will take, while it goes", async () => {
    const { hf } = bench;
    const gate = makeGate();
    const kind = defineBatch<number>(uniqueName("pace"), {
      concurrency: 5,
      run: (item) => (item.seq > 10 ? gate.opened : undefined),
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(
      kind,
      Array.from({ length: 30 }, (_, n) => n),
    );
    await soon(async () => (await hf.batches.get(id))!.ended).toBe(10);
    const { rate, etaMs } = (await hf.batches.get(id))!;
    // Ten of thirty have ended since it was made: twice as long again, at the pace of this moment.
    expect(rate).toBeGreaterThan(0);
    expect(etaMs! / 1_000).toBeCloseTo(20 / rate!, 1);
    expect(await hf.batches.pause(id)).toMatchObject({ rate: null, etaMs: null });
    await hf.batches.resume(id);
    gate.open();
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ state: "done", rate: null, etaMs: null });
    await worker.stop();
  });
});
