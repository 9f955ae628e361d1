import { describe, expect, test } from "vitest";
import type { WorkOptions } from "#src/options.js";
import { resolveWorkOptions } from "#src/options.js";
import { caught, makeHeldKind, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";
import { times } from "../support/events.ts";

test.each<[unknown, string, string]>([
  [{ concurency: 5 }, 'work() has the unknown option "concurency".', 'Did you mean "concurrency"?'],
  [{ concurrency: 0 }, "work().concurrency is 0.", "1 to 10000"],
  [{ concurrency: -1 }, "work().concurrency is -1.", "1 to 10000"],
  [{ concurrency: 1.5 }, "work().concurrency is 1.5.", "1 to 10000"],
  [{ concurrency: "5" }, "work().concurrency is 5.", "1 to 10000"],
  [{ poll: 1 }, "work().poll is 1, which is not a duration.", '"1s" or "1ms"'],
  [{ poll: "5ms" }, "work().poll is 5 ms.", '"10ms"'],
  [{ grace: -1 }, "work().grace is -1, which is not a duration.", "ambiguous"],
  [{ grace: "forever" }, 'work().grace is "forever", which is not a duration.', "number and a unit"],
  [{ abortGrace: "-1s" }, 'work().abortGrace is "-1s", which is not a duration.', "number and a unit"],
])("%j is refused", (options, message, hint) => {
  const resolve = (): unknown => resolveWorkOptions(options as WorkOptions);
  expect(resolve).toThrow(message);
  try {
    resolve();
  } catch (error) {
    expect(error).toMatchObject({ code: "HOLDFAST_OPTION_INVALID", hint: expect.stringContaining(hint) });
  }
});

test("the defaults are those of the documentation, and undefined means the default", () => {
  // @ts-expect-error the types refuse it, JavaScript does not
  expect(resolveWorkOptions({ concurrency: undefined })).toMatchObject({
    concurrency: 10,
    pollMs: 1_000,
    graceMs: 25_000,
    abortMs: 3_000,
    name: "worker",
  });
  expect(resolveWorkOptions({ grace: "0s" })).toMatchObject({ graceMs: 0 });
});

describe("work()", () => {
  const bench = useHoldfast("server");

  test("needs kinds, each once", async () => {
    const kind = makeKind();
    expect(await caught(bench.hf.work([]))).toMatchObject({ message: "work() got no kinds." });
    expect(await caught(bench.hf.work([kind, kind]))).toMatchObject({ message: expect.stringContaining("twice") });
    // @ts-expect-error a name is no kind
    expect(await caught(bench.hf.work(["mail.send"]))).toMatchObject({ code: "HOLDFAST_KIND_UNKNOWN" });
  });

  test("a worker that could not be started is not counted among those that are there", async () => {
    const { hf } = bench;
    const kind = makeKind({ queue: "nobody-starts" });
    await hf.sql.query("alter table :schema.workers rename to elsewhere");
    try {
      expect(await caught(hf.work([kind], { concurrency: 7 }))).toMatchObject({ code: "42P01" });
    } finally {
      await hf.sql.query("alter table :schema.elsewhere rename to workers");
    }
    expect(await hf.metrics.text()).not.toContain('worker_slots{queue="nobody-starts"}');
    const worker = await hf.work([kind], { concurrency: 3 });
    expect(await hf.metrics.text()).toContain('worker_slots{queue="nobody-starts"} 3');
    await worker.stop();
  });

  test("runs as many at once as it says, and no more", async () => {
    const held = makeHeldKind<number>();
    const worker = await bench.hf.work([held.kind], { concurrency: 3 });
    await bench.hf.enqueueMany(
      held.kind,
      Array.from({ length: 10 }, (_, payload) => ({ payload })),
    );
    await held.started(3);
    expect(worker.running).toBe(3);
    expect(held.runs).toHaveLength(3);
    const done = times(bench.hf, "job.done", 10, (event) => event.kind === held.kind.kind);
    held.release();
    await done;
    await worker.stop();
    expect(held.runs).toHaveLength(10);
  });

  test("takes only the kinds it was given", async () => {
    const [mine, theirs] = [makeKind(), makeKind()];
    const other = await bench.hf.enqueue(theirs, 1);
    const worker = await bench.hf.work([mine]);
    const { id } = await bench.hf.enqueue(mine, 1);
    await bench.hf.jobs.wait(id, { timeout: "10s" });
    await worker.stop();
    expect(await bench.hf.jobs.get(other.id)).toMatchObject({ state: "pending", claimCount: 0 });
  });
});
