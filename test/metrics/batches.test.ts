// What /metrics says of batches: from zero, and after real work exactly what happened.
import { describe, expect, test } from "vitest";
import { defineBatch, Fatal } from "#src/index.js";
import { uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("batches in the metrics (%s)", (tier) => {
  const bench = useHoldfast(tier);

  test("batches, items by outcome, what was cancelled, from zero; an item that fails is no dead job", async () => {
    const name = uniqueName();
    const kind = defineBatch<string, string, "saved" | "duplicate">(name, {
      concurrency: 2,
      attempts: 1,
      outcomes: { saved: {}, duplicate: {} },
      run({ payload }) {
        if (payload === "bad") throw new Fatal("bad");
        return payload === "known" ? "duplicate" : "saved";
      },
    });
    const worker = await bench.hf.work([kind]);
    const value = async (series: string): Promise<number | undefined> => {
      const line = (await bench.hf.metrics.text()).split("\n").find((row) => row.startsWith(`${series} `));
      return line === undefined ? undefined : Number(line.slice(series.length + 1));
    };
    const items = (outcome: string) => value(`holdfast_batch_items_total{kind="${name}",outcome="${outcome}"}`);
    for (const outcome of ["saved", "duplicate", "error", "cancelled", "handed-over"]) {
      expect(await items(outcome), outcome).toBe(0);
    }
    expect(await value(`holdfast_batches_created_total{kind="${name}"}`)).toBe(0);
    expect(await value(`holdfast_batches_finished_total{kind="${name}",result="cancelled"}`)).toBe(0);
    expect(await value(`holdfast_batch_items_bounced_total{kind="${name}"}`)).toBe(0);
    for (const fault of ["healed", "miscounted"]) {
      expect(await value(`holdfast_batch_faults_total{fault="${fault}"}`)).toBe(0);
    }

    const { id } = await bench.hf.batches.create(kind, ["a", "b", "known", "bad"]);
    await bench.hf.batches.wait(id, { timeout: "20s" });
    await expect.poll(() => items("saved")).toBe(2);
    expect(await items("duplicate")).toBe(1);
    await expect.poll(() => items("error")).toBe(1);
    expect(await value(`holdfast_batches_finished_total{kind="${name}",result="done"}`)).toBe(1);
    expect(await value(`holdfast_jobs_finished_total{queue="default",kind="${name}",outcome="dead"}`)).toBe(0);
    await worker.stop();

    const waiting = await bench.hf.batches.create(kind, ["a", "b", "c", "d", "e"]);
    await bench.hf.batches.cancel(waiting.id);
    await bench.hf.batches.cancel(waiting.id);
    expect(await items("cancelled")).toBe(5);
    expect(await value(`holdfast_batches_created_total{kind="${name}"}`)).toBe(2);
    expect(await value(`holdfast_batches_finished_total{kind="${name}",result="cancelled"}`)).toBe(1);
    expect(await value(`holdfast_batch_faults_total{fault="miscounted"}`)).toBe(0);
  });
});
