import { expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { open } from "#src/open.js";
import { drain, openTest } from "#src/testing/index.js";
import { caught } from "../support/make.ts";

test("openTest() opens a Holdfast in memory that takes and runs jobs", async () => {
  await using hf = await openTest();
  const seen: unknown[] = [];
  const kind = defineJob<{ n: number }>("test.note", { run: (job) => void seen.push(job.payload) });
  await hf.enqueue(kind, { n: 1 });
  await hf.enqueue(kind, { n: 2 });
  expect(hf.tier).toBe("embedded");
  expect(await drain(hf, [kind])).toMatchObject({ runs: 2, done: 2, dead: 0 });
  expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
});

test("openTest({ clock }) starts at that time", async () => {
  await using hf = await openTest({ clock: "2031-05-06T07:08:09Z" });
  const kind = defineJob("test.note", { run: () => undefined });
  const { id } = await hf.enqueue(kind, null);
  await drain(hf, [kind]);
  const job = await hf.jobs.get(id);
  expect(job?.createdAt.toISOString()).toMatch(/^2031-05-06T07:08:/);
  expect(job?.finishedAt?.toISOString()).toMatch(/^2031-05-06T07:08:/);
});

test("an option that does not exist is refused with the one that was probably meant", async () => {
  // @ts-expect-error clok is no option
  const error = await caught(openTest({ clok: "2031-05-06" }));
  expect(error).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
});

test("drain() says so when it is handed a Holdfast that is not of openTest()", async () => {
  await using hf = await open({ database: "memory:" });
  // @ts-expect-error it has no movable clock
  const error = await caught(drain(hf, []));
  expect(error).toMatchObject({ message: expect.stringContaining("openTest()") });
});
