import { describe, expect, test } from "vitest";
import { KindUnknown } from "#src/errors.js";
import { nextOf, times } from "../support/events.ts";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("one enqueue, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("is stored when its promise resolves, with the kind's own settings", async () => {
    const kind = makeKind<{ to: string }>({ queue: "mail", attempts: 3 });
    const { id, created, conflict } = await bench.hf.enqueue(kind, { to: "a" });
    expect({ created, conflict }).toEqual({ created: true, conflict: false });
    const job = await bench.hf.jobs.get(id);
    expect(job).toMatchObject({
      id,
      kind: kind.kind,
      queue: "mail",
      state: "pending",
      payload: { to: "a" },
      result: null,
      priority: 0,
      attempt: 0,
      maxAttempts: 3,
      claimCount: 0,
      key: null,
      group: null,
      coalesceKey: null,
      progress: null,
      lastError: null,
      startedAt: null,
      finishedAt: null,
    });
    expect(job?.runAt).toEqual(job?.createdAt);
  });

  test("may have another queue, budget and priority", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, null, { queue: "slow", attempts: 1, priority: -7 });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ queue: "slow", maxAttempts: 1, priority: -7, payload: null });
  });

  test("is due when it says: later, at a time, or in the past", async () => {
    const kind = makeKind();
    const delayed = await bench.hf.jobs.get((await bench.hf.enqueue(kind, 1, { delay: "90m" })).id);
    expect(delayed!.runAt.getTime() - delayed!.createdAt.getTime()).toBe(90 * 60_000);
    const at = new Date("2071-02-03T04:05:06.789Z");
    expect((await bench.hf.jobs.get((await bench.hf.enqueue(kind, 1, { runAt: at })).id))?.runAt).toEqual(at);
    const text = await bench.hf.enqueue(kind, 1, { runAt: "1999-12-31T23:59:59+01:00" });
    expect((await bench.hf.jobs.get(text.id))?.runAt).toEqual(new Date("1999-12-31T22:59:59Z"));
  });

  test("is reported", async () => {
    const kind = makeKind();
    const reported = times(bench.hf, "job.enqueued", 1, (event) => event.kind === kind.kind);
    const { id } = await bench.hf.enqueue(kind, 1);
    expect(await reported).toEqual({ jobId: id, kind: kind.kind, queue: "default", created: true, conflict: false });
  });

  test("starts at once where a worker waits", async () => {
    const kind = makeKind();
    // It would not look by itself for a long time.
    const worker = await bench.hf.work([kind], { poll: "1m" });
    const first = await bench.hf.enqueue(kind, 1);
    await bench.hf.jobs.wait(first.id, { timeout: "5s" });
    const began = performance.now();
    const claimed = times(bench.hf, "job.claimed", 1, (event) => event.kind === kind.kind);
    const { id } = await bench.hf.enqueue(kind, 2);
    const done = nextOf(bench.hf, "job.done", id);
    expect((await claimed).jobId).toBe(id);
    expect(performance.now() - began).toBeLessThan(5_000);
    await done;
    await worker.stop();
  });

  test("of something that is no kind is refused", async () => {
    // @ts-expect-error a name is no kind
    expect(await caught(bench.hf.enqueue("mail.send", {}))).toBeInstanceOf(KindUnknown);
    // @ts-expect-error nor is nothing
    expect(await caught(bench.hf.enqueue(undefined, {}))).toMatchObject({
      hint: "Hand over what defineJob() returned.",
    });
  });
});
