// job.signal is aborted when the run should end, and its reason says why.
import { describe, expect, test } from "vitest";
import { JobAborted } from "#src/job/handler.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("the signal, %s", (tier) => {
  const bench = useHoldfast(tier);

  const whyOf = (signal: AbortSignal): string => {
    if (!(signal.reason instanceof JobAborted)) throw new Error("The reason is no JobAborted.");
    return signal.reason.why;
  };

  test("is not aborted while all is well", async () => {
    const seen: boolean[] = [];
    const kind = makeKind({ run: (job) => void seen.push(job.signal.aborted) });
    const worker = await bench.hf.work([kind]);
    await ended(bench.hf, (await bench.hf.enqueue(kind, 1)).id);
    await worker.stop();
    expect(seen).toEqual([false]);
  });

  test("is aborted by a cancel: cancelled", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const { signal } = await held.started();
    await bench.hf.jobs.cancel(id);
    await aborted(signal);
    expect(whyOf(signal)).toBe("cancelled");
    held.release();
    await worker.stop();
  });

  test("is aborted by a shutdown: shutdown", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind], { grace: "0s", abortGrace: "5s" });
    await bench.hf.enqueue(held.kind, 1);
    const { signal } = await held.started();
    const stopped = worker.stop();
    await aborted(signal);
    expect(whyOf(signal)).toBe("shutdown");
    held.release();
    await stopped;
  });

  test("is aborted by the kind's timeout: timeout", async () => {
    const held = makeHeldKind({ timeout: "100ms" });
    const worker = await bench.hf.work([held.kind]);
    await bench.hf.enqueue(held.kind, 1);
    const { signal } = await held.started();
    await aborted(signal);
    expect(whyOf(signal)).toBe("timeout");
    held.release();
    await worker.stop();
  });

  test("is aborted when the lease is gone: lease-lost, and the result is refused", async () => {
    const held = makeHeldKind({ lease: "1s", then: () => "mine" });
    const worker = await bench.hf.work([held.kind], { concurrency: 1 });
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const { signal, token } = await held.started();
    const lost = nextOf(bench.hf, "lease.lost", id);
    // Somebody else has it now.
    await bench.db.query("update holdfast.jobs set token = token / 2 where id = $1", [id]);
    await bench.db.query(
      "update holdfast.leases set token = token / 2, expires_at = expires_at + interval '1 hour' where token = $1",
      [token],
    );
    await aborted(signal);
    expect(whyOf(signal)).toBe("lease-lost");
    await lost;
    held.release();
    await worker.stop();
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "running", result: null });
  });

  test("that is asked for after the abort is aborted already", async () => {
    const held = makeHeldKind();
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1);
    const run = await held.started();
    await bench.hf.jobs.cancel(id);
    // A first look, so that the abort has certainly arrived; then a fresh one.
    await aborted(run.signal);
    expect(run.signal.aborted).toBe(true);
    expect(run.signal.throwIfAborted.bind(run.signal)).toThrow("The job was cancelled.");
    held.release();
    await worker.stop();
  });
});
