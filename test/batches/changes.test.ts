// The feed of changes, commands of clients that work offline, and fields that several devices write.
import { describe, expect, test } from "vitest";
import { StateConflict } from "#src/errors.js";
import { defineBatch } from "#src/job/define-batch.js";
import { type FieldMeta, fieldTime, mergeFields } from "#src/job/merge-fields.js";
import { uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test("tells of every change once, in order, with the batches and items as they are now", async () => {
    const { hf } = bench;
    const owner = uniqueName("ada");
    const kind = defineBatch<number>(uniqueName("batch"), { concurrency: 2, run: () => undefined });
    const { next: start } = await hf.batches.changes();
    const { id } = await hf.batches.create(kind, numbers(4), { owner });
    await hf.batches.create(kind, numbers(1), { owner: uniqueName("other") });
    const first = await hf.batches.changes({ since: start, owner });
    expect(first.changes.map(({ what, batchId }) => [what, batchId])).toEqual([
      ["created", id],
      ["added", id],
    ]);
    expect(first).toMatchObject({ reset: false, more: false, batches: [{ id, state: "queued" }] });
    await hf.batches.pause(id, { by: "phone" });
    await hf.batches.resume(id);
    const worker = await hf.work([kind]);
    await hf.batches.wait(id, { timeout: "20s" });
    await worker.stop();
    // Page by page: nothing is left out, nothing comes twice.
    const seen: { what: string; seqs: number[]; by: string | null }[] = [];
    const seqs: bigint[] = [];
    let since = first.next;
    for (;;) {
      const page = await hf.batches.changes({ since, owner, limit: 1 });
      seen.push(...page.changes.map(({ what, seqs: about, by }) => ({ what, seqs: about, by })));
      seqs.push(...page.changes.map(({ seq }) => BigInt(seq)));
      for (const item of page.items[id] ?? []) expect(item.state).toBe("done");
      since = page.next;
      if (!page.more) break;
    }
    expect(seen.slice(0, 2)).toMatchObject([{ what: "paused", by: "phone" }, { what: "resumed" }]);
    expect(seen.flatMap((change) => (change.what === "settled" ? change.seqs : [])).toSorted((a, b) => a - b)).toEqual([
      1, 2, 3, 4,
    ]);
    expect(seqs).toEqual(seqs.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(seqs).size).toBe(seqs.length);
    expect((await hf.batches.changes({ since, owner })).changes).toEqual([]);
    await hf.batches.delete(id);
    const gone = await hf.batches.changes({ since, owner });
    expect(gone).toMatchObject({ changes: [{ what: "deleted", batchId: id }], batches: [] });
  });

  test("a client that was away for longer than the feed is kept is told to begin anew", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { keepOpen: "30d", run: () => undefined });
    const { id } = await hf.batches.create(kind, numbers(1), { open: true });
    const { next } = await hf.batches.changes();
    await hf.batches.pause(id);
    await hf.batches.resume(id);
    await hf.batches.changes();
    await hf.clock.advance("8d");
    await hf.batches.cancel(id);
    await hf.batches.changes();
    await hf.janitor.run("purge-batches");
    expect(await hf.batches.changes({ since: next })).toMatchObject({ reset: true });
  });

  test("commands are applied in order, each once; one that makes no sense is refused and holds up nobody", async () => {
    const { hf } = bench;
    const owner = uniqueName("bob");
    const kind = defineBatch<number, number, "saved">(uniqueName("batch"), {
      outcomes: { saved: {} },
      run: (item) => item.handBack(`item ${item.seq}`),
    });
    const kinds = [kind];
    const made = await hf.batches.apply({
      owner,
      client: "phone",
      kinds,
      commands: [{ n: 1, type: "create", kind: kind.kind, items: numbers(2), key: "k", fields: { title: "mine" } }],
    });
    const id = made.results[0]!.batch!;
    expect(made).toMatchObject({ applied: 1, results: [{ n: 1, status: "applied" }] });
    // Sent again, with more.
    const more = await hf.batches.apply({
      owner,
      client: "phone",
      kinds,
      commands: [
        { n: 1, type: "create", kind: kind.kind, items: numbers(2), key: "k" },
        { n: 2, type: "pause", batch: id },
        { n: 3, type: "outcome", batch: id, seq: 1, outcome: "saved" },
        { n: 4, type: "resume", batch: id },
        { n: 5, type: "fly" as "pause", batch: id },
        { n: 6, type: "create", kind: "no.such", items: [] },
      ],
    });
    expect(more.results.map(({ status, error }) => [status, error?.code])).toEqual([
      ["known", undefined],
      ["applied", undefined],
      ["refused", "HOLDFAST_STATE_CONFLICT"],
      ["applied", undefined],
      ["refused", "HOLDFAST_OPTION_INVALID"],
      ["refused", "HOLDFAST_KIND_UNKNOWN"],
    ]);
    expect(more.applied).toBe(6);
    await expect(
      hf.batches.apply({ owner, client: "phone", kinds, commands: [{ n: 8, type: "pause", batch: id }] }),
    ).rejects.toThrow(StateConflict);
    // An answer to nothing would say that nothing was ever applied.
    await expect(hf.batches.apply({ owner, client: "phone", kinds, commands: [] })).rejects.toThrow("or none");
    // Somebody else's batch is not there.
    const foreign = {
      owner: uniqueName("eve"),
      client: "x",
      kinds,
      commands: [{ n: 1, type: "cancel", batch: id }],
    } as const;
    expect((await hf.batches.apply(foreign)).results).toMatchObject([{ status: "refused" }]);
    const worker = await hf.work([kind]);
    await soon(async () => (await hf.batches.get(id))!.counts["handed-over"]).toBe(2);
    await hf.batches.apply({
      owner,
      client: "laptop",
      kinds,
      commands: [1, 2].map((seq) => ({ n: seq, type: "outcome" as const, batch: id, seq, outcome: "saved" })),
    });
    expect(await hf.batches.get(id)).toMatchObject({ state: "done", counts: { saved: 2 }, fields: { title: "mine" } });
    await worker.stop();
  });

  test("of a field that two devices write the newer stays, and a clock that runs ahead keeps nothing for itself", async () => {
    const { hf } = bench;
    const owner = uniqueName("cem");
    const kind = defineBatch<number>(uniqueName("batch"), { run: () => undefined });
    const { id } = await hf.batches.create(kind, [], { owner, open: true });
    let n = 0;
    const set = (client: string, fields: Record<string, unknown>, meta: Record<string, FieldMeta>): Promise<unknown> =>
      hf.batches.apply({ owner, client, kinds: [], commands: [{ n: ++n, type: "set", batch: id, fields, meta }] });
    await set("a", { title: "first", note: "n" }, { title: "2026-01-01T10:00:00Z" });
    n = 0;
    await set("b", { title: "older" }, { title: { at: "2026-01-01T09:00:00Z", actor: "b" } });
    expect((await hf.batches.get(id))!.fields).toEqual({ title: "first", note: "n" });
    await set("b", { title: "ahead" }, { title: { at: "2099-01-01T00:00:00Z", actor: "b" } });
    await hf.clock.advance("1m");
    n = 1;
    await set("a", { title: "last" }, { title: (await hf.clock.now()).toISOString() });
    expect((await hf.batches.get(id))!.fields).toMatchObject({ title: "last" });
    await hf.batches.cancel(id);
  });
});

describe("merging fields", () => {
  const now = new Date("2026-06-01T12:00:00Z");
  const empty = { fields: {}, times: {} };

  test("both shapes of the time are understood, and what is none counts as now", () => {
    expect(fieldTime("2026-01-01T00:00:00Z")).toBe(Date.UTC(2026, 0, 1));
    expect(fieldTime({ at: "2026-01-01T00:00:00Z", actor: "a", origin: "system" })).toBe(Date.UTC(2026, 0, 1));
    for (const wrong of [undefined, "yesterday", {}, { at: 5 }] as FieldMeta[]) expect(fieldTime(wrong)).toBeNaN();
    const { times } = mergeFields(empty, { fields: { a: 1 }, meta: { a: "yesterday" }, by: "x", now });
    expect(times["a"]).toEqual({ at: now.toISOString(), by: "x" });
  });

  test("the order of arrival does not matter, not even for writes of the same moment", () => {
    const at = "2026-05-01T00:00:00Z";
    const writes = [
      { fields: { a: 1 }, meta: { a: { at, actor: "x" } }, by: "x", now },
      { fields: { a: 2 }, meta: { a: { at, actor: "y" } }, by: "y", now },
      { fields: { a: 3 }, meta: { a: { at, actor: "y" } }, by: "y", now },
    ];
    const orders = [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ];
    const ends = orders.map((order) => {
      let state: { fields: Record<string, unknown>; times: Record<string, { at: string; by: string }> } = empty;
      for (const index of order) state = mergeFields(state, writes[index]!);
      return state.fields["a"];
    });
    expect(new Set(ends)).toEqual(new Set([3]));
  });
});
