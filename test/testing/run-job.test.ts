import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineJob } from "#src/job/define-job.js";
import { Fatal, Gone, RetryAfter, Snooze } from "#src/job/outcome.js";
import { runJob } from "#src/testing/index.js";
import { caught } from "../support/make.ts";

const kind = defineJob("mail.send", {
  schema: z.object({ to: z.string(), copies: z.number().default(1), at: z.coerce.date().optional() }),
  attempts: 3,
  backoff: ["30s", "2m"],
  async run(job) {
    job.log.info("sending", { to: job.payload.to });
    await job.progress(1, 2, "half");
    switch (job.payload.to) {
      case "nobody":
        throw new Fatal("no such address");
      case "deleted":
        throw new Gone("left the company");
      case "busy":
        throw new RetryAfter("5m");
      case "asleep":
        throw new Snooze("8h");
      case "down":
        throw new Error("connection refused");
      case "odd":
        return { sent: 2n };
      default:
        return { sent: job.payload.copies, attempt: job.attempt, before: job.lastError?.message, key: job.key };
    }
  },
});

test("a handler that returns is done, with its result, progress and log", async () => {
  const run = await runJob(kind, { to: "a@b.c" }, { attempt: 2, lastError: new Error("flaky"), key: "k" });
  expect(run).toEqual({
    outcome: "done",
    result: { sent: 1, attempt: 2, before: "flaky", key: "k" },
    error: undefined,
    delayMs: undefined,
    progress: [{ done: 1, total: 2, note: "half" }],
    log: [{ level: "info", message: "sending", fields: { to: "a@b.c" } }],
  });
});

test.each([
  ["nobody", 1, { outcome: "dead", error: { message: "no such address", reason: "fatal" } }],
  ["deleted", 1, { outcome: "gone", error: { message: "left the company" } }],
  ["busy", 1, { outcome: "retry", delayMs: 300_000 }],
  ["asleep", 1, { outcome: "snooze", delayMs: 28_800_000 }],
  ["down", 1, { outcome: "retry", delayMs: 30_000, error: { message: "connection refused" } }],
  ["down", 2, { outcome: "retry", delayMs: 120_000 }],
  ["down", 3, { outcome: "dead", error: { message: "connection refused" } }],
  ["odd", 1, { outcome: "dead", error: { name: "PayloadInvalid", reason: "fatal" } }],
] as const)("to %s in attempt %i it is %j", async (to, attempt, expected) => {
  expect(await runJob(kind, { to }, { attempt })).toMatchObject(expected);
});

describe("the payload is checked and stored as it really would be", () => {
  test("one that does not fit is refused", async () => {
    // @ts-expect-error to is missing
    expect(await caught(runJob(kind, { copies: 1 }))).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID" });
  });
  test("one that cannot be stored is refused", async () => {
    expect(await caught(runJob(kind, { to: "a\0" }))).toMatchObject({ message: expect.stringContaining("NUL") });
  });
  test("what the handler gets has been through JSON", async () => {
    const seen: unknown[] = [];
    const plain = defineJob<object>("plain", { run: (job) => void seen.push(job.payload) });
    await runJob(plain, { at: new Date(0), gone: undefined });
    expect(seen).toEqual([{ at: "1970-01-01T00:00:00.000Z" }]);
  });
});

describe("the signal", () => {
  const waiting = defineJob<null>("waits", {
    async run(job) {
      await new Promise<void>((resolve) => {
        if (job.signal.aborted) resolve();
        job.signal.addEventListener("abort", () => resolve());
      });
      job.signal.throwIfAborted();
    },
  });
  test("can be aborted from the start", async () => {
    expect(await runJob(waiting, null, { abort: "shutdown" })).toMatchObject({ outcome: "release" });
    expect(await runJob(waiting, null, { abort: "cancelled" })).toMatchObject({ outcome: "cancelled" });
  });
  test("can be aborted when something happens", async () => {
    const when = new Promise((resolve) => setTimeout(resolve, 5));
    expect(await runJob(waiting, null, { abort: { cause: "timeout", when } })).toMatchObject({
      outcome: "retry",
      error: { name: "JobAborted" },
    });
  });
});

test("what needs a database says so", async () => {
  const fenced = defineJob<null>("fenced", { run: (job) => job.transaction(() => Promise.resolve(1)) });
  expect(await runJob(fenced, null)).toMatchObject({
    outcome: "retry",
    error: { message: expect.stringContaining("without a database") },
  });
});
