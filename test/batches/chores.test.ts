// What the janitor does for batches: nothing hangs for ever, counters are compared with the items, what is old goes.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { collect } from "../support/events.ts";
import { uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const idle = () => defineBatch<number>(uniqueName("batch"), { concurrency: 3, run: () => undefined });

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test("a batch that was left open is cancelled, and says why; one that is added to is not", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { keepOpen: "1h", run: () => undefined });
    const left = await hf.batches.create(kind, [1, 2], { open: true });
    const used = await hf.batches.create(kind, [1], { total: 5 });
    await hf.clock.advance("40m");
    await hf.batches.add(kind, used.id, [2]);
    await hf.clock.advance("30m");
    await hf.janitor.run("tend-batches");
    expect(await hf.batches.get(left.id)).toMatchObject({ state: "cancelled", counts: { cancelled: 2 } });
    expect((await hf.batches.get(left.id))!.reason).toContain("longer than the batch may stay open");
    expect(await hf.batches.get(used.id)).toMatchObject({ state: "queued", reason: null });
    await hf.batches.cancel(used.id);
  });

  test("a batch in order is left alone, and nothing is told", async () => {
    const { hf } = bench;
    const kind = idle();
    const healed = collect(hf, "batch.healed");
    const miscounted = collect(hf, "batch.miscounted");
    const { id } = await hf.batches.create(kind, numbers(10));
    const before = (await hf.batches.get(id))!.version;
    await hf.janitor.run("tend-batches");
    await hf.janitor.run("check-batches");
    expect((await hf.batches.get(id))!.version).toBe(before);
    expect([...healed.events, ...miscounted.events]).toEqual([]);
    await hf.batches.cancel(id);
  });

  test("items whose jobs somebody removed by hand wait again, and that is told", async () => {
    const { hf, db, store } = bench;
    const kind = idle();
    const healed = collect(hf, "batch.healed");
    const { id } = await hf.batches.create(kind, numbers(10));
    await db.query(`delete from "${store.schema}".jobs where batch_id = $1 and batch_seq in (1, 3)`, [id]);
    await hf.janitor.run("tend-batches");
    expect(healed.events).toEqual([{ batchId: id, kind: kind.kind, lost: 2 }]);
    const worker = await hf.work([kind]);
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ state: "done", counts: { done: 10 } });
    await worker.stop();
  });

  test("a counter that is not what the items say is told of", async () => {
    const { hf, db, store } = bench;
    const kind = idle();
    const miscounted = collect(hf, "batch.miscounted");
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, numbers(5));
    await hf.batches.wait(id, { timeout: "20s" });
    await worker.stop();
    const { schema } = store;
    await db.query(`update "${schema}".batch_outcomes set outcome = 'lost' where batch_id = $1 and seq = 2`, [id]);
    await hf.janitor.run("check-batches");
    expect(miscounted.events.toSorted((a, b) => a.what.localeCompare(b.what))).toEqual([
      { batchId: id, kind: kind.kind, what: "done", kept: 5, counted: 4 },
      { batchId: id, kind: kind.kind, what: "lost", kept: 0, counted: 1 },
    ]);
    await db.query(`update "${schema}".batch_outcomes set outcome = 'done' where batch_id = $1 and seq = 2`, [id]);
  });

  test("a finished batch goes after its retention, in steps, and its key a good while later", async () => {
    const { hf, db, store } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { keep: "1h", keepKeys: "20d", run: () => undefined });
    const { id } = await hf.batches.create(kind, numbers(2_500), { key: "once" });
    await hf.batches.cancel(id);
    const rows = async (table: string): Promise<number> => {
      const text = `select count(*)::integer as count from "${store.schema}".${table} where batch_id = $1`;
      return (await db.query<{ count: number }>(text, [id])).rows[0]!.count;
    };
    await hf.clock.advance("50m");
    await hf.janitor.run("purge-batches");
    expect(await rows("batch_items")).toBe(2_500);
    await hf.clock.advance("20m");
    expect(await hf.batches.get(id)).toBeUndefined();
    await hf.janitor.run("purge-batches");
    expect(await rows("batch_items")).toBe(0);
    expect(await hf.batches.create(kind, numbers(1), { key: "once" })).toMatchObject({ id, created: false });
    await hf.clock.advance("10d");
    await hf.janitor.run("purge-batches");
    expect(await hf.batches.create(kind, numbers(1), { key: "once" })).toMatchObject({ created: false });
    await hf.clock.advance("11d");
    await hf.janitor.run("purge-batches");
    expect(await rows("batch_log")).toBe(0);
    const again = await hf.batches.create(kind, numbers(1), { key: "once" });
    expect(again.created).toBe(true);
    await hf.batches.cancel(again.id);
  });
});
