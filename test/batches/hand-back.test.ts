// An item whose result goes to the owner of its batch: handed over, acked, expired.
import { describe, expect, test } from "vitest";
import { NotFound, OptionInvalid, StateConflict } from "#src/errors.js";
import { type AnyBatchKind, defineBatch, type HandBackOptions } from "#src/job/define-batch.js";
import { aborted, makeGate, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

type Label = "saved" | "duplicate" | "consent-wall";

function importer(handBack: HandBackOptions<Label> = {}): AnyBatchKind {
  return defineBatch<{ url: string }, { url: string }, Label>(uniqueName("import"), {
    concurrency: 2,
    outcomes: { saved: {}, duplicate: {}, "consent-wall": { countsAs: "saved", warning: true } },
    handBack,
    run: (item) => item.handBack({ url: item.payload.url, words: 400 }, { name: "article.json" }),
  });
}

const urls = (count: number): { url: string }[] =>
  Array.from({ length: count }, (_, index) => ({ url: `https://a.example/${index + 1}` }));

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test("an item is handed over in the commit that puts its parcel, and the ack names what it came to", async () => {
    const { hf } = bench;
    const kind = importer();
    const owner = uniqueName("ada");
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, urls(3), { owner });
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(3);
    expect(await hf.batches.get(id)).toMatchObject({ state: "running", ended: 0 });
    const { parcels } = await hf.inbox(owner).list();
    expect(parcels.map(({ name, meta }) => [name, meta])).toEqual(
      expect.arrayContaining([1, 2, 3].map((seq) => ["article.json", { batch: id, seq }])),
    );
    const { items } = await hf.batches.items(id, { state: "handed-over" });
    expect(new Set(items.map((item) => item.parcelId))).toEqual(new Set(parcels.map((parcel) => parcel.id)));
    // Two devices: the first one's word counts.
    const words = await Promise.all([
      hf.batches.ack(id, 1, { outcome: "saved", by: "phone" }),
      hf.batches.ack(id, 1, { outcome: "duplicate", by: "laptop" }),
    ]);
    expect(words.filter(({ first }) => first)).toHaveLength(1);
    expect(new Set(words.map(({ outcome }) => outcome)).size).toBe(1);
    expect(await hf.batches.ack(id, 2, { outcome: "consent-wall" })).toEqual({ outcome: "consent-wall", first: true });
    expect(await hf.batches.ack(id, 3)).toEqual({ outcome: "saved", first: true });
    const batch = (await hf.batches.get(id))!;
    expect(batch).toMatchObject({ state: "done", ended: 3, warnings: 1, completions: 1 });
    // The parcels are acked with them, and their content is gone: the owner alone has it.
    const { parcels: acked } = await hf.inbox(owner).list({ state: "acked" });
    expect(acked).toHaveLength(3);
    expect(acked.every(({ removedAt }) => removedAt !== null)).toBe(true);
    await expect(hf.inbox(owner).open(parcels[0]!.id)).rejects.toThrow(NotFound);
    const { rows } = await hf.sql.query<{ left: string }>(
      "select count(*) as left from :schema.parcel_chunks c join :schema.parcels p on p.id = c.parcel_id where p.recipient = $1",
      [owner],
    );
    expect(Number(rows[0]!.left)).toBe(0);
    await expect(hf.batches.ack(id, 1, { outcome: "nonsense" })).rejects.toThrow(OptionInvalid);
    await worker.stop();
  });

  test("what nobody acks comes back a few times, and then is an error; the batch ends", async () => {
    const { hf } = bench;
    const kind = importer({ within: "1h", tries: 1 });
    const owner = uniqueName("bob");
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, urls(2), { owner });
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(2);
    await hf.janitor.run("expire-hand-backs");
    expect((await hf.batches.get(id))!.counts["handed-over"]).toBe(2);
    await hf.clock.advance("61m");
    await hf.janitor.run("expire-hand-backs");
    await soon(async () => (await hf.batches.item(id, 1))!).toMatchObject({ state: "handed-over", bounces: 1 });
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(2);
    await hf.clock.advance("61m");
    await hf.janitor.run("expire-hand-backs");
    const batch = (await hf.batches.get(id))!;
    expect(batch).toMatchObject({ state: "done", counts: { error: 2, "handed-over": 0 } });
    expect((await hf.batches.item(id, 1))!.error).toMatchObject({ reason: "expired" });
    expect(await hf.batches.errors(id)).toMatchObject([{ count: 2 }]);
    // A word that comes too late is told what it was.
    expect(await hf.batches.ack(id, 1, { outcome: "saved" })).toEqual({ outcome: "error", first: false });
    // Retried, it has its tries again.
    await hf.batches.retryFailed(id);
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(2);
    expect((await hf.batches.item(id, 1))!.bounces).toBe(0);
    await hf.batches.ack(id, 1);
    await hf.batches.ack(id, 2);
    expect(await hf.batches.get(id)).toMatchObject({ state: "done", completions: 2 });
    await worker.stop();
  });

  test("a parcel that is acked through the inbox, without a word on the outcome, ends its item as the kind says", async () => {
    const { hf } = bench;
    const kind = importer({ ackedAs: "duplicate" });
    const owner = uniqueName("cem");
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, urls(1), { owner });
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(1);
    const { parcels } = await hf.inbox(owner).list();
    await hf.inbox(owner).ack(parcels[0]!.id);
    await hf.janitor.run("expire-hand-backs");
    expect(await hf.batches.get(id)).toMatchObject({ state: "done", counts: { duplicate: 1 } });
    await worker.stop();
  });

  test("after a cancel nothing is put into the inbox; what was there may be acked, or expires as cancelled", async () => {
    const { hf } = bench;
    const gate = makeGate();
    const owner = uniqueName("dee");
    const starts: number[] = [];
    const kind = defineBatch<number>(uniqueName("import"), {
      concurrency: 3,
      handBack: { within: "1h" },
      async run(item) {
        starts.push(item.seq);
        if (item.seq > 2) {
          await aborted(item.signal);
          await gate.opened;
        }
        return await item.handBack(`result ${item.seq}`);
      },
    });
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, [1, 2, 3, 4], { owner });
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(2);
    await soon(() => starts.length).toBe(4);
    await hf.batches.cancel(id);
    gate.open();
    await soon(async () => (await hf.batches.get(id))!.counts["cancelled"]).toBe(2);
    expect((await hf.inbox(owner).list()).parcels).toHaveLength(2);
    expect(await hf.batches.ack(id, 1)).toEqual({ outcome: "done", first: true });
    expect((await hf.batches.get(id))!.finishedAt).toBeNull();
    await hf.clock.advance("61m");
    await hf.janitor.run("expire-hand-backs");
    const batch = (await hf.batches.get(id))!;
    expect(batch).toMatchObject({ state: "cancelled", counts: { done: 1, cancelled: 3 } });
    expect(batch.finishedAt).not.toBeNull();
    await worker.stop();
  });

  test("without an owner there is nobody to hand anything back to, and only what waits can be acked", async () => {
    const { hf } = bench;
    const kind = importer();
    const worker = await hf.work([kind]);
    const { id } = await hf.batches.create(kind, urls(1));
    const batch = await hf.batches.wait(id, { timeout: "20s" });
    expect(batch.counts["error"]).toBe(1);
    expect((await hf.batches.item(id, 1))!.error!.message).toContain("no owner");
    await worker.stop();
    const other = await hf.batches.create(kind, urls(1));
    await expect(hf.batches.ack(other.id, 1)).rejects.toThrow(StateConflict);
    await hf.batches.cancel(other.id);
  });
});
