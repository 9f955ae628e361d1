// One open job per coalesce key: what waits takes the newest payload, what runs runs again with it.
import { describe, expect, test } from "vitest";
import { Snooze } from "#src/job/outcome.js";
import { runDue } from "#src/testing/index.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, caught, makeGate, makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const coalesce = "doc";

describe.each(TIERS)("a coalesce key, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("gives a job that waits the newest payload", async () => {
    const seen: number[] = [];
    const kind = makeKind<number>({ run: (job) => void seen.push(job.payload) });
    const first = await bench.hf.enqueue(kind, 1, { coalesce });
    const second = await bench.hf.enqueue(kind, 2, { coalesce });
    expect(first).toMatchObject({ created: true });
    expect(second).toMatchObject({ id: first.id, created: false, conflict: false });
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual([2]);
  });

  test("makes a job that waits due at the earlier of the two times", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, 1, { coalesce, delay: "1h" });
    const late = (await bench.hf.jobs.get(id))!.runAt;
    await bench.hf.enqueue(kind, 2, { coalesce, delay: "2h" });
    expect((await bench.hf.jobs.get(id))?.runAt).toEqual(late);
    await bench.hf.enqueue(kind, 3, { coalesce, delay: "1m" });
    const earlier = (await bench.hf.jobs.get(id))!;
    expect(earlier.runAt.getTime()).toBeLessThan(late.getTime());
    expect(earlier.payload).toBe(3);
  });

  test("gives a job that waits for its next try a fresh start", async () => {
    const kind = makeKind<string>({
      run: (job) => {
        if (job.payload === "bad") throw new Error("bad");
      },
    });
    const { id } = await bench.hf.enqueue(kind, "bad", { coalesce });
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 1 });
    await bench.hf.enqueue(kind, "good", { coalesce });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ attempt: 0, payload: "good" });
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
  });

  test("makes a job that runs run again afterwards, once, with the newest payload", async () => {
    const held = makeHeldKind<number>();
    const worker = await bench.hf.work([held.kind]);
    const first = await bench.hf.enqueue(held.kind, 1, { coalesce });
    await held.started();
    const later = [];
    for (const payload of [2, 3, 4]) later.push(await bench.hf.enqueue(held.kind, payload, { coalesce }));
    expect(later.every(({ id, created }) => id === first.id && !created)).toBe(true);
    expect(held.runs[0]?.payload).toBe(1);
    const again = nextOf(bench.hf, "job.again", first.id);
    held.release();
    await again;
    await ended(bench.hf, first.id);
    await worker.stop();
    expect(held.runs.map(({ payload, attempt }) => [payload, attempt])).toEqual([
      [1, 1],
      [4, 1],
    ]);
  });

  test("makes a job that fails meanwhile run again at once, with the newest payload", async () => {
    const held = makeHeldKind<string>({
      then: (job) => {
        if (job.payload === "bad") throw new Error("bad");
      },
    });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, "bad", { coalesce });
    await held.started();
    await bench.hf.enqueue(held.kind, "good", { coalesce });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", payload: "good", attempt: 1 });
    expect(await bench.hf.jobs.attempts(id)).toMatchObject([{ attempt: 1, error: { message: "bad" } }]);
    await worker.stop();
  });

  test("keeps the newest payload through a snooze", async () => {
    const held = makeHeldKind<number>({
      then: (job) => {
        if (job.payload === 1) throw new Snooze("1h");
      },
    });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1, { coalesce });
    await held.started();
    await bench.hf.enqueue(held.kind, 2, { coalesce });
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", payload: 2 });
    await worker.stop();
  });

  test("keeps the newest payload when a shutdown gives the job back", async () => {
    const held = makeHeldKind<number>({
      then: () => {
        throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind], { grace: "0s", abortGrace: "5s" });
    const { id } = await bench.hf.enqueue(held.kind, 1, { coalesce });
    const run = await held.started();
    await bench.hf.enqueue(held.kind, 2, { coalesce });
    const stopped = worker.stop();
    await aborted(run.signal);
    held.release();
    await stopped;
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0, payload: 2 });
  });

  test.each(["succeeds", "fails", "snoozes"])(
    "asked for again, with the same payload, during a run that %s: the next run does every step and chunk itself",
    async (end) => {
      let world = "old";
      let runs = 0;
      const seen: unknown[] = [];
      const [began, go] = [makeGate(), makeGate()];
      const kind = makeKind<string>({
        async run(job) {
          const fetched = await job.step("fetch", () => Promise.resolve(world));
          const chunks: number[][] = [];
          for await (const chunk of job.chunks("parts", [1, 2, 3], { size: 2, key: String })) {
            chunks.push([...chunk.items]);
            await chunk.save(async () => {});
          }
          seen.push([fetched, chunks]);
          if ((runs += 1) > 1) return;
          began.open();
          await go.opened;
          if (end === "fails") throw new Error("the index is away");
          if (end === "snoozes") throw new Snooze("1h");
        },
      });
      const worker = await bench.hf.work([kind]);
      const { id } = await bench.hf.enqueue(kind, "page", { coalesce: end });
      await began.opened;
      world = "new";
      expect(await bench.hf.enqueue(kind, "page", { coalesce: end })).toMatchObject({ id, coalesced: true });
      go.open();
      expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
      await worker.stop();
      const all = [[1, 2], [3]];
      expect(seen).toEqual([
        ["old", all],
        ["new", all],
      ]);
    },
  );

  test("that is asked for after a cancel is not cancelled with it", async () => {
    const held = makeHeldKind<number>({
      then: (job) => {
        if (job.payload === 1) throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1, { coalesce });
    const run = await held.started();
    await bench.hf.jobs.cancel(id);
    await bench.hf.enqueue(held.kind, 2, { coalesce });
    await aborted(run.signal);
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", payload: 2 });
    await worker.stop();
  });

  test("that was asked for before a cancel is cancelled with it", async () => {
    const held = makeHeldKind<number>({
      then: () => {
        throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind]);
    const { id } = await bench.hf.enqueue(held.kind, 1, { coalesce });
    const run = await held.started();
    await bench.hf.enqueue(held.kind, 2, { coalesce });
    await bench.hf.jobs.cancel(id);
    await aborted(run.signal);
    held.release();
    expect(await ended(bench.hf, id)).toMatchObject({ state: "cancelled" });
    await worker.stop();
    expect(held.runs).toHaveLength(1);
  });

  test("makes a new job beside a dead one, and the dead one cannot come back while that is open", async () => {
    const kind = makeKind<string>({
      attempts: 1,
      run: (job) => {
        if (job.payload === "bad") throw new Error("bad");
      },
    });
    const dead = await bench.hf.enqueue(kind, "bad", { coalesce });
    await runDue(bench.hf, [kind]);
    const next = await bench.hf.enqueue(kind, "good", { coalesce });
    expect(next).toMatchObject({ created: true });
    expect(next.id).not.toBe(dead.id);
    expect(await caught(bench.hf.jobs.retry(dead.id))).toMatchObject({
      code: "HOLDFAST_STATE_CONFLICT",
      hint: expect.stringContaining("newer job with the same coalesce key"),
    });
    await runDue(bench.hf, [kind]);
    await bench.hf.jobs.retry(dead.id);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, dead: 1 });
  });

  test("of a job that is over makes a new one", async () => {
    const kind = makeKind();
    const first = await bench.hf.enqueue(kind, 1, { coalesce });
    await runDue(bench.hf, [kind]);
    const second = await bench.hf.enqueue(kind, 1, { coalesce });
    expect(second).toMatchObject({ created: true });
    expect(second.id).not.toBe(first.id);
  });

  test("belongs to its kind", async () => {
    const first = await bench.hf.enqueue(makeKind(), 1, { coalesce });
    const second = await bench.hf.enqueue(makeKind(), 2, { coalesce });
    expect(second).toMatchObject({ created: true });
    expect(second.id).not.toBe(first.id);
  });
});
