// A time that no clock will show, however it came into a row, is that job's affair: others are claimed, and can be looked at.
import { describe, expect, test } from "vitest";
import { ended } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("a job that is due at a time without end (%s)", (tier) => {
  const bench = useHoldfast(tier);

  // In its own lane, among suspects, and behind every watermark.
  test.each([
    ["infinity", 0, "pending"],
    ["infinity", 2, "pending"],
    ["290000-01-01", 0, "pending"],
    ["12000-01-01", 0, "pending"],
    ["-infinity", 0, "done"],
    ["-infinity", 2, "done"],
    ["4000-01-01 BC", 0, "done"],
  ])("%s (hold %i): its worker goes on, with this kind and others", async (runAt, hold, state) => {
    const troubles: unknown[] = [];
    const stop = bench.hf.on("trouble", ({ error }) => troubles.push(error));
    const [one, other] = [makeKind(), makeKind()];
    const { id } = await bench.hf.enqueue(one, 1, { delay: "1h" });
    await bench.db.query("update holdfast.jobs set run_at = $2::text::timestamptz, hold = $3 where id = $1", [
      id,
      runAt,
      hold,
    ]);
    const worker = await bench.hf.work([one, other], { poll: "50ms" });
    for (const kind of [one, other]) {
      const { id: neighbour } = await bench.hf.enqueue(kind, 2);
      expect(await ended(bench.hf, neighbour)).toMatchObject({ state: "done" });
    }
    if (state === "done") await ended(bench.hf, id);
    const { jobs } = await bench.hf.jobs.list({ kind: one.kind });
    expect(jobs.find((job) => job.id === id)).toMatchObject({ state, runAt: expect.any(Date) });
    await worker.stop();
    stop();
    await bench.db.query("delete from holdfast.jobs");
    expect(troubles).toEqual([]);
  });
});
