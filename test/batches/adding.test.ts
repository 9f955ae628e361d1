// Items come from lists and streams, from several writers, again after lost answers, late and never.
import { describe, expect, test } from "vitest";
import { KindUnknown, OptionInvalid, PayloadInvalid, StateConflict } from "#src/errors.js";
import { defineBatch } from "#src/job/define-batch.js";
import { defineJob } from "#src/job/define-job.js";
import { z } from "zod";
import { caught, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const kindOf = (): ReturnType<typeof make> => make();
const make = () => defineBatch<number>(uniqueName("batch"), { concurrency: 4, run: () => undefined });
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

async function* streamOf(count: number, failAt = Infinity): AsyncGenerator<number> {
  for (let n = 1; n <= count; n += 1) {
    if (n === failAt) throw new Error("the source broke");
    yield n;
  }
}

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test("a stream is taken in parts, in its order", async () => {
    const { hf } = bench;
    const kind = kindOf();
    const { id, added } = await hf.batches.create(kind, streamOf(2_500));
    expect(added).toBe(2_500);
    expect(await hf.batches.get(id)).toMatchObject({ total: 2_500, closed: true, counts: { pending: 2_500 } });
    const seen: unknown[] = [];
    for await (const item of hf.batches.export(id)) seen.push(item.payload);
    expect(seen).toEqual(numbers(2_500));
    await hf.batches.cancel(id);
  });

  test("one key is one batch, and a call that broke off goes on where it stopped", async () => {
    const { hf } = bench;
    const kind = kindOf();
    expect(await caught(hf.batches.create(kind, streamOf(2_500, 1_700), { key: "import" }))).toMatchObject({
      message: "the source broke",
    });
    const { batches } = await hf.batches.list({ kind: kind.kind });
    expect(batches).toMatchObject([{ added: 1_000, closed: false, state: "queued" }]);
    const again = await hf.batches.create(kind, streamOf(2_500), { key: "import" });
    expect(again).toEqual({ id: batches[0]!.id, created: false, added: 1_500 });
    expect(await hf.batches.create(kind, streamOf(2_500), { key: "import" })).toEqual({ ...again, added: 0 });
    expect(await hf.batches.get(again.id)).toMatchObject({ added: 2_500, closed: true });
    await hf.batches.cancel(again.id);
  });

  test("is not done before everything that was declared has ended", async () => {
    const { hf } = bench;
    const kind = kindOf();
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, [1, 2], { total: 4 });
    await soon(async () => (await hf.batches.get(id))!.ended).toBe(2);
    expect(await hf.batches.get(id)).toMatchObject({ state: "running", total: 4, added: 2, closed: false });
    await expect(hf.batches.close(id)).rejects.toThrow(StateConflict);
    await expect(hf.batches.add(kind, id, [3, 4, 5])).rejects.toThrow(StateConflict);
    expect(await hf.batches.add(kind, id, [3, 4])).toEqual({ added: 2, total: 4 });
    expect(await hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ state: "done", total: 4, completions: 1 });
    await expect(hf.batches.add(kind, id, [5])).rejects.toThrow(StateConflict);
    await worker.stop();
  });

  test("several writers add until it is closed; what a writer sends again is taken once", async () => {
    const { hf } = bench;
    const kind = kindOf();
    const { id } = await hf.batches.create(kind, [], { open: true });
    const sent = ["a", "b", "c"].map(async (writer) => {
      await hf.batches.add(kind, id, numbers(700), { writer });
      return await hf.batches.add(kind, id, numbers(1_500), { writer, from: 0 });
    });
    for (const { added } of await Promise.all(sent)) expect(added).toBe(800);
    expect(await hf.batches.get(id)).toMatchObject({ added: 4_500, closed: false });
    await expect(hf.batches.add(kind, id, [1], { writer: "a", from: 2_000 })).rejects.toThrow("before number 2001");
    await hf.batches.close(id);
    await hf.batches.close(id);
    await expect(hf.batches.add(kind, id, [1])).rejects.toThrow("closed");
    await hf.batches.cancel(id);
    await expect(hf.batches.add(kind, id, [1])).rejects.toThrow("cancelled");
  });

  test("an open batch waits for more when its items have ended, and is done when it is closed", async () => {
    const { hf } = bench;
    const kind = kindOf();
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, [1, 2], { open: true });
    await soon(async () => (await hf.batches.get(id))!.ended).toBe(2);
    expect((await hf.batches.get(id))!.state).toBe("running");
    await hf.batches.close(id);
    expect(await hf.batches.get(id)).toMatchObject({ state: "done", ended: 2 });
    await worker.stop();
  });

  test("wrong items are refused with their number: of a list before anything is stored", async () => {
    const { hf } = bench;
    const kind = defineBatch(uniqueName("batch"), { schema: z.object({ url: z.url() }), run: () => undefined });
    const error = await caught(hf.batches.create(kind, [{ url: "https://a.example" }, { url: "no" }]));
    expect(error).toBeInstanceOf(PayloadInvalid);
    expect((error as Error).message).toContain("item 2");
    expect((await hf.batches.list({ kind: kind.kind })).batches).toEqual([]);
  });

  test("wrong kinds and options are refused, each by name", async () => {
    const { hf } = bench;
    const kind = kindOf();
    const job = defineJob(uniqueName(), { run: () => undefined });
    expect(await caught(hf.batches.create(job as never, []))).toBeInstanceOf(KindUnknown);
    expect(await caught(hf.enqueue(kind as never, 1))).toBeInstanceOf(KindUnknown);
    for (const [options, said] of [
      [{ total: -1 }, "total"],
      [{ concurrency: 0 }, "concurrency"],
      [{ priority: 101 }, "priority"],
      [{ attempts: 0 }, "attempts"],
      [{ key: "" }, "key"],
      [{ owner: "a b" }, "owner"],
      [{ fields: [] }, "fields"],
      [{ onDone: { kind: "no good" } }, "onDone.kind"],
      [{ keys: "x" }, 'unknown option "keys"'],
    ] as const) {
      const error = await caught(hf.batches.create(kind, [], options as never));
      expect(error, said).toBeInstanceOf(OptionInvalid);
      expect((error as Error).message).toContain(said);
    }
    expect(await caught(hf.batches.create(kind, 5 as never))).toBeInstanceOf(OptionInvalid);
    for (const outcomes of [{}, { error: {} }, { Saved: {} }, { a: { countsAs: "b" } }, { a: 1 }]) {
      expect(
        await caught(() => defineBatch("x", { outcomes: outcomes as never, run: () => undefined })),
      ).toBeInstanceOf(OptionInvalid);
    }
  });

  test("create commits or rolls back with the caller's transaction", async () => {
    const { hf } = bench;
    const kind = kindOf();
    const made = await caught(
      hf.sql.transaction(async (tx) => {
        await hf.batches.create(kind, numbers(3), { tx });
        throw new Error("rolled back");
      }),
    );
    expect((made as Error).message).toBe("rolled back");
    expect((await hf.batches.list({ kind: kind.kind })).batches).toEqual([]);
    const { id } = await hf.sql.transaction((tx) => hf.batches.create(kind, numbers(1_200), { tx }));
    expect(await hf.batches.get(id)).toMatchObject({ added: 1_200, closed: true });
    await hf.batches.cancel(id);
  });
});
