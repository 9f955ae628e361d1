// Batches share workers: a small one that comes later is not stuck behind a huge one, and an item's crash is its own.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { sleep } from "#src/shared/sleep.js";
import { aborted, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { useHoldfast } from "../support/open-test.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe("on the server tier", () => {
  const bench = useHoldfast("server");

  test("a small batch that comes after a huge one ends long before it", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { concurrency: 8, run: () => sleep(3) });
    const worker = await hf.work([kind], { concurrency: 8 });
    const huge = await hf.batches.create(kind, numbers(2_000));
    const small = await hf.batches.create(kind, numbers(10), { concurrency: 2 });
    await hf.batches.wait(small.id, { timeout: "20s" });
    const { ended, state } = (await hf.batches.get(huge.id))!;
    expect(state).toBe("running");
    expect(ended).toBeLessThan(1_000);
    await hf.batches.cancel(huge.id);
    await hf.batches.wait(huge.id, { timeout: "20s" });
    await worker.stop();
  });

  test("the limit of a batch holds across processes", async () => {
    const { hf } = bench;
    const other = await bench.another();
    let atOnce = 0;
    let most = 0;
    const kind = defineBatch<number>(uniqueName("batch"), {
      concurrency: 3,
      async run() {
        most = Math.max(most, ++atOnce);
        await sleep(5);
        atOnce -= 1;
      },
    });
    const workers = [await hf.work([kind], { concurrency: 20 }), await other.work([kind], { concurrency: 20 })];
    const { id } = await hf.batches.create(kind, numbers(60));
    await hf.batches.wait(id, { timeout: "20s" });
    expect(most).toBe(3);
    await Promise.all(workers.map((worker) => worker.stop()));
  });

  test("a cancel reaches hundreds of items that run in another process, all of them at once", async () => {
    const { hf } = bench;
    const other = await bench.another();
    let running = 0;
    let told = 0;
    const kind = defineBatch<number>(uniqueName("batch"), {
      concurrency: 350,
      lease: "5m",
      async run(item) {
        running += 1;
        await aborted(item.signal);
        told += 1;
        item.signal.throwIfAborted();
      },
    });
    const worker = await other.work([kind], { concurrency: 350 });
    const { id } = await hf.batches.create(kind, numbers(350));
    await soon(() => running).toBe(350);
    await hf.batches.cancel(id);
    // A beat would come after a hundred seconds.
    await soon(() => told).toBe(350);
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ counts: { cancelled: 350 } });
    await worker.stop();
  });
});
