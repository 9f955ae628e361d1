// Definitions that are allowed and probably mistaken: each is told at start, with both values and what to set.
import { describe, expect, test } from "vitest";
import { defineJob, type JobOptions } from "#src/job/define-job.js";
import { kindWarnings } from "#src/job/warnings.js";
import { ended } from "../support/events.ts";
import { caught } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

const kind = (options: Partial<JobOptions<unknown, unknown, unknown>>) =>
  defineJob("embed", { run: () => undefined, ...options });

const codes = (options: Partial<JobOptions<unknown, unknown, unknown>>): string[] =>
  kindWarnings([kind(options)]).map(({ code }) => code);

const messageOf = (options: Partial<JobOptions<unknown, unknown, unknown>>): string => {
  const warnings = kindWarnings([kind(options)]);
  expect(warnings).toHaveLength(1);
  return warnings[0]!.message;
};

test("a kind with nothing but defaults has no warning", () => {
  expect(kindWarnings([kind({})])).toEqual([]);
  expect(kindWarnings([])).toEqual([]);
});

describe("a declared call timeout that is not below the lease", () => {
  test("is told from the lease on, and not just below it", () => {
    expect(codes({ lease: "10s", callTimeout: "10s" })).toEqual(["call-timeout-not-below-lease"]);
    expect(codes({ lease: "10s", callTimeout: "5m" })).toEqual(["call-timeout-not-below-lease"]);
    expect(codes({ lease: "10s", callTimeout: "9999ms" })).toEqual([]);
  });

  test("names the kind, both values, and what to set", () => {
    const message = messageOf({ lease: "90s", callTimeout: "5m" });
    expect(message).toMatch(/^embed: callTimeout is "5m" and lease is "90s"/);
    expect(message).toContain('Set lease to more than "5m"');
    expect(message).toContain('or callTimeout below "90s"');
  });

  test("a call timeout that cannot be is refused when the kind is defined", async () => {
    expect(kind({ callTimeout: "1ms" })).toMatchObject({ callTimeoutMs: 1 });
    expect(kind({})).toMatchObject({ callTimeoutMs: undefined });
    expect(await caught(() => kind({ callTimeout: "0s" }))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    // @ts-expect-error a bare number is no duration
    expect(await caught(() => kind({ callTimeout: 5 }))).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  });
});

describe("a lease below a second", () => {
  test("is told just below, and not from a second on", () => {
    expect(codes({ lease: "999ms" })).toEqual(["lease-below-a-second"]);
    expect(codes({ lease: "1s" })).toEqual([]);
  });

  test("says how often beats come, and what to set", () => {
    const message = messageOf({ lease: "300ms" });
    expect(message).toContain('embed: lease is "300ms"');
    expect(message).toContain("beats come every 100ms");
    expect(message).toContain('Set lease to "1s" or more.');
  });
});

describe("a timeout below the lease", () => {
  test("is told just below, and not from the lease on", () => {
    expect(codes({ lease: "30s", timeout: "29999ms" })).toEqual(["timeout-below-lease"]);
    expect(codes({ lease: "30s", timeout: "30s" })).toEqual([]);
  });

  test("names both values and what to set", () => {
    const message = messageOf({ lease: "2m", timeout: "1500ms" });
    expect(message).toContain('embed: timeout is "1500ms" and lease is "2m"');
    expect(message).toContain('Set lease to "1500ms" or less, or timeout to "2m" or more.');
  });
});

describe("keys that live shorter than the finished jobs", () => {
  test("are told just below, and not from the retention on", () => {
    expect(codes({ keepKeys: "23h", keepDone: "1d" })).toEqual(["keys-shorter-than-jobs"]);
    expect(codes({ keepKeys: "1d", keepDone: "1d" })).toEqual([]);
  });

  test("for ever is longer than everything", () => {
    expect(codes({ keepKeys: "30d", keepDone: "forever" })).toEqual(["keys-shorter-than-jobs"]);
    expect(codes({ keepKeys: "forever", keepDone: "forever" })).toEqual([]);
    expect(codes({ keepKeys: "forever", keepDone: "365d" })).toEqual([]);
  });

  test("name both values and what to set", () => {
    expect(messageOf({ keepKeys: "1h", keepDone: "7d" })).toMatch(
      /embed: keepKeys is "1h" and keepDone is "7d".*Set keepKeys to "7d" or more, or keepDone to "1h" or less\.$/,
    );
    expect(messageOf({ keepDone: "forever" })).toContain('keepKeys to "forever"');
  });
});

test("what a message tells to set makes the warning go away", () => {
  // As a reader would do it: both ways that each message offers.
  expect(codes({ lease: "15m", callTimeout: "5m" })).toEqual([]);
  expect(codes({ lease: "1s" })).toEqual([]);
  expect(codes({ lease: "1500ms", timeout: "1500ms" })).toEqual([]);
  expect(codes({ keepKeys: "7d", keepDone: "7d" })).toEqual([]);
});

test("several mistakes of several kinds are all told", () => {
  const first = defineJob("first", { lease: "500ms", timeout: "100ms", run: () => undefined });
  const second = defineJob("second", { keepDone: "forever", run: () => undefined });
  const found = kindWarnings([first, second]);
  expect(found.map(({ code }) => code)).toEqual([
    "lease-below-a-second",
    "timeout-below-lease",
    "keys-shorter-than-jobs",
  ]);
  expect(found.map(({ message }) => message.split(":")[0])).toEqual(["first", "first", "second"]);
});

describe("work()", () => {
  const warned: { message: string; fields: object | undefined }[] = [];
  const quiet = (): void => undefined;
  const bench = useHoldfast("server", {
    log: { debug: quiet, info: quiet, error: quiet, warn: (message, fields) => void warned.push({ message, fields }) },
  });

  test("logs each warning once, when it starts", async () => {
    const calm = defineJob("calm", { run: () => undefined });
    const hasty = defineJob("hasty", { lease: "500ms", run: () => undefined });
    const worker = await bench.hf.work([calm, hasty]);
    const { id } = await bench.hf.enqueue(hasty, 1);
    await ended(bench.hf, id);
    await worker.stop();
    expect(warned).toEqual([
      { message: expect.stringContaining("hasty: lease is"), fields: { code: "lease-below-a-second" } },
    ]);
  });
});
