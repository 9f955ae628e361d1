import { beforeAll, describe, expect, test } from "vitest";
import type { Job } from "#src/job/job.js";
import { runDue } from "#src/testing/index.js";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("jobs.list, %s", (tier) => {
  const bench = useHoldfast(tier);
  const mail = makeKind<string>({
    attempts: 1,
    run: (job) => {
      if (job.payload === "dies") throw new Error("no");
    },
  });
  const other = makeKind({ queue: "slow" });
  /** Newest first. */
  let everything: string[];

  beforeAll(async () => {
    const ids: string[] = [];
    const add = async (rows: { payload: string; queue?: string; delay?: "1h" }[]): Promise<string[]> => {
      const added = (await bench.hf.enqueueMany(mail, rows)).map(({ id }) => id);
      ids.push(...added);
      return added;
    };
    await add([{ payload: "done" }, { payload: "dies" }, { payload: "done", queue: "slow" }]);
    await runDue(bench.hf, [mail]);
    const [gone] = await add([{ payload: "cancelled" }]);
    await bench.hf.jobs.cancel(gone!);
    await add([
      { payload: "waits", delay: "1h" },
      { payload: "waits", delay: "1h", queue: "slow" },
    ]);
    ids.push((await bench.hf.enqueue(other, 1, { delay: "1h" })).id);
    everything = ids.toReversed();
  });

  const idsOf = (jobs: Job[]): string[] => jobs.map(({ id }) => id);
  const kindsOf = (jobs: Job[]): unknown[] => jobs.map(({ state, payload, queue }) => [state, payload, queue]);

  test("gives everything, live and finished, newest first", async () => {
    const { jobs, next } = await bench.hf.jobs.list();
    expect(idsOf(jobs)).toEqual(everything);
    expect(next).toBeNull();
  });

  test("filters by state, kind and queue", async () => {
    const list = async (options: Parameters<typeof bench.hf.jobs.list>[0]): Promise<unknown[]> =>
      kindsOf((await bench.hf.jobs.list(options)).jobs);
    expect(await list({ state: "done" })).toEqual([
      ["done", "done", "slow"],
      ["done", "done", "default"],
    ]);
    expect(await list({ state: "dead" })).toEqual([["dead", "dies", "default"]]);
    expect(await list({ state: "cancelled" })).toEqual([["cancelled", "cancelled", "default"]]);
    expect(await list({ state: "running" })).toEqual([]);
    expect(await list({ state: ["dead", "cancelled"], kind: mail.kind })).toHaveLength(2);
    expect(await list({ state: ["pending"], kind: mail.kind, queue: "slow" })).toEqual([["pending", "waits", "slow"]]);
    expect(await list({ queue: "slow" })).toHaveLength(3);
    expect(await list({ kind: other.kind })).toEqual([["pending", 1, "slow"]]);
    expect(await list({ kind: "nobody.knows" })).toEqual([]);
    expect(await list({ state: [] })).toEqual([]);
  });

  test.each([1, 2, 3, 6, 7, 100])("pages by %i without a gap or a double", async (limit) => {
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const page = await bench.hf.jobs.list({ limit, ...(cursor === null ? {} : { cursor }) });
      expect(page.jobs.length).toBeLessThanOrEqual(limit);
      seen.push(...idsOf(page.jobs));
      cursor = page.next;
      pages += 1;
    } while (cursor !== null);
    expect(seen).toEqual(everything);
    expect(pages).toBe(Math.ceil(everything.length / limit));
  });

  test("a page goes on where the last one ended, whatever was added or has moved on meanwhile", async () => {
    const first = await bench.hf.jobs.list({ limit: 3 });
    const added = await bench.hf.enqueue(other, 2, { delay: "1h" });
    await bench.hf.jobs.cancel(first.jobs[2]!.id);
    const rest = await bench.hf.jobs.list({ cursor: first.next! });
    expect(idsOf(rest.jobs)).toEqual(everything.slice(3));
    await bench.db.query("delete from holdfast.jobs where id = $1", [added.id]);
  });

  test("refuses what it does not know", async () => {
    const refused = async (options: object): Promise<unknown> => caught(bench.hf.jobs.list(options));
    expect(await refused({ limit: 0 })).toMatchObject({ message: "limit is 0." });
    expect(await refused({ limit: 501 })).toMatchObject({ hint: "Give a whole number from 1 to 500." });
    expect(await refused({ state: "queued" })).toMatchObject({ message: 'state is "queued".' });
    expect(await refused({ cursor: "7" })).toMatchObject({ message: 'cursor is "7".' });
  });
});
