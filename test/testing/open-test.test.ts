import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { open } from "#src/open.js";
import { runDue, openTest } from "#src/testing/index.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { caught, makeKind } from "../support/make.ts";

test(
  "openTest() opens a Holdfast in memory that takes and runs jobs, at the time it is told",
  { timeout: 60_000 },
  async () => {
    await using hf = await openTest({ clock: "2031-05-06T07:08:09Z" });
    const seen: unknown[] = [];
    const kind = defineJob<{ n: number }>("test.note", { run: (job) => void seen.push(job.payload) });
    const { id } = await hf.enqueue(kind, { n: 1 });
    await hf.enqueue(kind, { n: 2 });
    expect(hf.tier).toBe("embedded");
    expect(await runDue(hf, [kind])).toMatchObject({ runs: 2, done: 2, dead: 0 });
    expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
    const job = await hf.jobs.get(id);
    expect(job?.createdAt.toISOString()).toMatch(/^2031-05-06T07:0[89]:/);
    expect(job?.finishedAt?.toISOString()).toMatch(/^2031-05-06T07:0[89]:/);
  },
);

describe("openTest({ database })", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  test("opens that database, and goes on with what is there", async () => {
    const kind = makeKind();
    const first = await openTest({ database: database.url });
    await first.enqueue(kind, 1);
    await first.close();
    await using second = await openTest({ database: database.url });
    expect(second.tier).toBe("server");
    expect(await runDue(second, [kind])).toMatchObject({ done: 1 });
  });

  test("that cannot be opened leaves nothing open", async () => {
    expect(await caught(openTest({ database: database.url, clock: "never" }))).toMatchObject({
      message: "The clock cannot be set to never.",
    });
    expect(await caught(openTest({ database: "nonsense" }))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  });

  test("refuses an option that does not exist", async () => {
    // @ts-expect-error clok is no option
    expect(await caught(openTest({ clok: "2031-05-06" }))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  });

  test("is what runDue() needs: a Holdfast of open() is refused with a sentence", async () => {
    await using hf = await open({ database: database.url });
    // @ts-expect-error it has no movable clock
    expect(await caught(runDue(hf, []))).toMatchObject({ message: expect.stringContaining("openTest()") });
  });
});
