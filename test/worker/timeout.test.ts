// A handler that is alive but stuck: its job is settled as timed out, its slot is free, and what it says later is refused.
import { describe, expect, test } from "vitest";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { expireEverything, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { claimIds } from "#src/store/jobs/claim.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, makeGate, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("a handler that takes too long, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("is told so, its job waits for the next try, and its slot is free", async () => {
    const held = makeHeldKind({ timeout: "200ms" });
    const quick = makeKind();
    const worker = await bench.hf.work([held.kind, quick], { concurrency: 1 });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    const { signal } = run;
    const next = await bench.hf.enqueue(quick, 2);
    const retrying = nextOf(bench.hf, "job.retrying", id);
    await aborted(signal);
    expect(signal.reason).toMatchObject({ name: "JobAborted", why: "timeout" });
    await retrying;
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      state: "pending",
      attempt: 1,
      lastError: { name: "Timeout", reason: "timeout", message: expect.stringContaining("200 ms") },
    });
    expect(await bench.hf.jobs.attempts(id)).toMatchObject([{ outcome: "retry", error: { reason: "timeout" } }]);
    // The stuck handler is still there, and the only slot works all the same.
    expect(await ended(bench.hf, next.id)).toMatchObject({ state: "done" });
    held.release();
    await worker.stop();
  });

  test("and returns in the end changes nothing any more", async () => {
    const held = makeHeldKind<number>({ timeout: "100ms", attempts: 1, then: () => "too late" });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "dead", lastError: { reason: "timeout" } });
    held.release();
    await run.progress(99, 100, "also too late");
    await worker.stop();
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead", result: null, progress: null });
  });

  test("does not keep a worker from stopping", async () => {
    const held = makeHeldKind({ timeout: "100ms", attempts: 1 });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    await ended(bench.hf, id);
    const began = performance.now();
    await worker.stop();
    expect(performance.now() - began).toBeLessThan(5_000);
    held.release();
  });

  test("is given its time while it is within it", async () => {
    const gate = makeGate();
    const kind = makeKind({ timeout: "1h", lease: "1s", run: () => gate.opened });
    const worker = await bench.hf.work([kind]);
    const claimed = new Promise<void>((resolve) => {
      const stop = bench.hf.on("job.claimed", (event) => {
        if (event.kind !== kind.kind) return;
        stop();
        resolve();
      });
    });
    const { id } = await bench.hf.enqueue(kind, 1);
    await claimed;
    // Several leases long.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "running", attempt: 1, claimCount: 1 });
    gate.open();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    await worker.stop();
  });

  test("does not keep its process to itself when it was run alone", async () => {
    const held = makeHeldKind({ timeout: "300ms", attempts: 1 });
    const quick = makeKind();
    const { id } = await bench.hf.enqueue(held.kind, 1);
    // Its first worker died: it is a suspect, and runs alone from now on.
    const leases = JSON.stringify([{ kind: held.kind.kind, lease_ms: 1_000 }]);
    await claimIds(bench.store, { token: randomToken(), workerId: uuidv7(), leases }, [id], [held.kind.kind], 1);
    await expireEverything(bench.store);
    await expireIfOverdue(bench.store, { limit: 10, atOnce: true, seenForMs: Infinity });
    const worker = await bench.hf.work([held.kind, quick], { concurrency: 5 });
    await held.started();
    const next = await bench.hf.enqueue(quick, 2);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "dead", lastError: { reason: "timeout" } });
    expect(await ended(bench.hf, next.id)).toMatchObject({ state: "done" });
    held.release();
    await worker.stop();
  });
});
