// One key is one job, for the key's life: before, during and after its run, and after the job itself was purged.
import { describe, expect, test } from "vitest";
import { Fatal } from "#src/job/outcome.js";
import { runDue } from "#src/testing/index.js";
import { ended } from "../support/events.ts";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { purgeEarly, purgeKeys } from "../support/purge.ts";

const again = { created: false, conflict: false, coalesced: false };

describe.each(TIERS)("a key, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("delivered again before the run is the same job, and the job is not touched", async () => {
    const kind = makeKind();
    const first = await bench.hf.enqueue(kind, { n: 1 }, { key: "k", delay: "1h" });
    const before = await bench.hf.jobs.get(first.id);
    expect(await bench.hf.enqueue(kind, { n: 1 }, { key: "k", priority: 9 })).toEqual({ id: first.id, ...again });
    expect(await bench.hf.jobs.get(first.id)).toEqual(before);
  });

  test("delivered again during the run is the same job", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind]);
    const first = await bench.hf.enqueue(held.kind, 1, { key: "k" });
    await held.started();
    expect(await bench.hf.enqueue(held.kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
    held.release();
    await ended(bench.hf, first.id);
    await worker.stop();
    expect(held.runs).toHaveLength(1);
  });

  test("delivered again after success is the same job, and it does not run again", async () => {
    let runs = 0;
    const kind = makeKind({ run: () => void (runs += 1) });
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
    await runDue(bench.hf, [kind]);
    expect(runs).toBe(1);
    expect((await bench.hf.jobs.get(first.id))?.state).toBe("done");
  });

  test("delivered again after the job died is the same job, and it stays dead", async () => {
    const kind = makeKind({
      run: () => {
        throw new Fatal("no");
      },
    });
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
    expect(await bench.hf.jobs.get(first.id)).toMatchObject({ state: "dead", attempt: 1 });
  });

  test("delivered again after the job was cancelled is the same job", async () => {
    const kind = makeKind();
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await bench.hf.jobs.cancel(first.id);
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
  });

  test("outlives the job: purging the job does not free it", async () => {
    const kind = makeKind({ keepDone: "0s" });
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await runDue(bench.hf, [kind]);
    await bench.hf.clock.advance("1s");
    await purgeEarly(bench.store, 1_000);
    expect(await bench.hf.jobs.get(first.id)).toBeUndefined();
    await purgeKeys(bench.store, 1_000);
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
    expect(await bench.hf.enqueue(kind, 2, { key: "k" })).toEqual({ id: first.id, ...again, conflict: true });
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
  });

  test("with another payload is reported as a conflict, and the first payload stays", async () => {
    const kind = makeKind();
    const first = await bench.hf.enqueue(kind, { a: 1, b: [2] }, { key: "k" });
    expect(await bench.hf.enqueue(kind, { a: 1, b: [3] }, { key: "k" })).toEqual({
      id: first.id,
      ...again,
      conflict: true,
    });
    expect((await bench.hf.jobs.get(first.id))?.payload).toEqual({ a: 1, b: [2] });
  });

  test("with the same payload written in another order is no conflict", async () => {
    const kind = makeKind();
    await bench.hf.enqueue(kind, { a: 1, b: 2.5, c: { d: null } }, { key: "k" });
    expect(await bench.hf.enqueue(kind, { c: { d: null }, b: 2.5, a: 1 }, { key: "k" })).toMatchObject(again);
  });

  test("belongs to its kind", async () => {
    const [one, other] = [makeKind(), makeKind()];
    const first = await bench.hf.enqueue(one, 1, { key: "k" });
    const second = await bench.hf.enqueue(other, 1, { key: "k" });
    expect(second.created).toBe(true);
    expect(second.id).not.toBe(first.id);
  });

  test("may be any text, to the letter", async () => {
    const kind = makeKind();
    const keys = ["a", "A", " a", "a ", "ä", "a\u0308", "😀", "'; --", "x".repeat(500), "ü".repeat(500)];
    const results = await Promise.all(keys.map((key) => bench.hf.enqueue(kind, 1, { key })));
    expect(results.map(({ created }) => created)).toEqual(keys.map(() => true));
    const repeated = await Promise.all(keys.map((key) => bench.hf.enqueue(kind, 1, { key })));
    expect(repeated).toEqual(results.map(({ id }) => ({ id, ...again })));
  });

  test("that is kept for ever outlives everything", async () => {
    const kind = makeKind({ keepKeys: "forever" });
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await bench.hf.jobs.cancel(first.id);
    await bench.hf.clock.advance("3650d");
    await purgeKeys(bench.store, 1_000);
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
  });

  test("ends with its life, and not before", async () => {
    const kind = makeKind({ keepKeys: "2h" });
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await runDue(bench.hf, [kind]);
    await bench.hf.clock.advance("119m");
    expect(await bench.hf.enqueue(kind, 1, { key: "k" })).toEqual({ id: first.id, ...again });
    await bench.hf.clock.advance("2m");
    const second = await bench.hf.enqueue(kind, 2, { key: "k" });
    expect(second).toMatchObject({ created: true, conflict: false });
    expect(second.id).not.toBe(first.id);
    // A new life, of the new job.
    await bench.hf.clock.advance("119m");
    expect(await bench.hf.enqueue(kind, 2, { key: "k" })).toEqual({ id: second.id, ...again });
  });

  test("that is over is removed from the ledger by the janitor's purge", async () => {
    const kind = makeKind({ keepKeys: "1h" });
    const first = await bench.hf.enqueue(kind, 1, { key: "k" });
    await runDue(bench.hf, [kind]);
    await bench.hf.clock.advance("61m");
    expect(await purgeKeys(bench.store, 1_000)).toBeGreaterThanOrEqual(1);
    expect((await bench.hf.enqueue(kind, 1, { key: "k" })).id).not.toBe(first.id);
  });

  test("of a job that still waits, or is dead, never ends", async () => {
    const kind = makeKind<string>({
      keepKeys: "1h",
      attempts: 1,
      run: () => {
        throw new Error("no");
      },
    });
    const dead = await bench.hf.enqueue(kind, "dies", { key: "dies" });
    await runDue(bench.hf, [kind]);
    const waits = await bench.hf.enqueue(kind, "waits", { key: "waits", delay: "30d" });
    await bench.hf.clock.advance("7d");
    await purgeKeys(bench.store, 1_000);
    expect(await bench.hf.enqueue(kind, "waits", { key: "waits" })).toEqual({ id: waits.id, ...again });
    expect(await bench.hf.enqueue(kind, "dies", { key: "dies" })).toEqual({ id: dead.id, ...again });
    // Who asks without enqueueing is told the same.
    expect(await bench.hf.jobs.byKey(kind.kind, "waits")).toMatchObject({ jobId: waits.id });
    expect(await bench.hf.jobs.byKey(kind.kind, "dies")).toMatchObject({ jobId: dead.id });
    // Put away, it is not dead any more as far as the ledger is concerned.
    await bench.hf.jobs.discard(dead.id);
    expect(await bench.hf.jobs.byKey(kind.kind, "dies")).toBeNull();
    expect((await bench.hf.enqueue(kind, "dies", { key: "dies" })).created).toBe(true);
  });
});

describe("very many keys at once", () => {
  const bench = useHoldfast("server");

  test("ten thousand in one call are stored within the time that a call has: none is compared with every other", async () => {
    const kind = makeKind();
    const rows = Array.from({ length: 10_000 }, (_, n) => ({ payload: n, key: `k${n}` }));
    const stored = await bench.hf.enqueueMany(kind, rows);
    expect(stored.every(({ created }) => created)).toBe(true);
    const [first, ...more] = await bench.hf.enqueueMany(kind, rows.toReversed());
    expect(first).toEqual({ id: stored.at(-1)!.id, ...again });
    expect(more.map(({ id }) => id)).toEqual(
      stored
        .slice(0, -1)
        .map(({ id }) => id)
        .toReversed(),
    );
  });
});

describe("a key from several processes", () => {
  const bench = useHoldfast("server");

  test("asked for by all of them at once is one job", async () => {
    const kind = makeKind();
    const clients = [bench.hf, await bench.another(), await bench.another()];
    for (let round = 0; round < 10; round += 1) {
      const results = await Promise.all(
        clients.flatMap((hf) => [1, 2, 3].map(() => hf.enqueue(kind, { round }, { key: `k${round}` }))),
      );
      expect(results.filter(({ created }) => created)).toHaveLength(1);
      expect(new Set(results.map(({ id }) => id)).size).toBe(1);
    }
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(10);
  });
});
