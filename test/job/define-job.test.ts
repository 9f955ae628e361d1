import { describe, expect, test } from "vitest";
import { z } from "zod";
import { OptionInvalid, PayloadInvalid } from "#src/errors.js";
import { defineJob, parsePayload } from "#src/job/define-job.js";
import { caught } from "../support/make.ts";

const run = (): void => undefined;

test("a kind has the defaults of the documentation", () => {
  expect(defineJob("mail.send", { run })).toMatchObject({
    kind: "mail.send",
    queue: "default",
    attempts: 5,
    leaseMs: 30_000,
    timeoutMs: 3_600_000,
    keepDoneMs: 168 * 3_600_000,
    keepKeysMs: 30 * 86_400_000,
  });
});

test("a kind cannot be changed afterwards", () => {
  expect(Object.isFrozen(defineJob("mail.send", { run }))).toBe(true);
});

test.each(["a", "mail.send", "Mail:send/now-2", "0", "x".repeat(128)])("%j can name a kind", (name) => {
  expect(defineJob(name, { run }).kind).toBe(name);
});

test.each(["", ".mail", "mail send", "mail\n", "müll", "x".repeat(129), 7, null, undefined])(
  "%j cannot name a kind",
  (name) => {
    // @ts-expect-error some of them are not even texts
    expect(() => defineJob(name, { run })).toThrow(OptionInvalid);
  },
);

describe("an option that cannot work is refused, and the message says which", () => {
  test.each([
    [undefined, 'defineJob("k") got no options.'],
    [{}, 'defineJob("k").run is not a function.'],
    [{ run, attempt: 3 }, 'defineJob("k") has the unknown option "attempt".'],
    [{ run, queue: "a b" }, 'defineJob("k").queue is "a b".'],
    [{ run, attempts: 0 }, 'defineJob("k").attempts is 0.'],
    [{ run, attempts: 1.5 }, 'defineJob("k").attempts is 1.5.'],
    [{ run, attempts: 1_001 }, 'defineJob("k").attempts is 1001.'],
    [{ run, lease: 30 }, 'defineJob("k").lease is 30, which is not a duration.'],
    [{ run, lease: "99ms" }, 'defineJob("k").lease is 99ms.'],
    [{ run, timeout: "0s" }, 'defineJob("k").timeout is 0s.'],
    [{ run, keepDone: 0 }, 'defineJob("k").keepDone is 0, which is not a duration.'],
    [{ run, keepDone: "-1h" }, 'defineJob("k").keepDone is "-1h", which is not a duration.'],
    [{ run, keepKeys: "for ever" }, 'defineJob("k").keepKeys is "for ever", which is not a duration.'],
    [{ run, backoff: [] }, 'defineJob("k").backoff is an empty ladder.'],
    [{ run, schema: { parse: run } }, 'defineJob("k").schema is not a Standard Schema.'],
  ])("%j", (options, message) => {
    // @ts-expect-error none of them is a JobOptions
    expect(() => defineJob("k", options)).toThrow(message);
  });
});

test("retentions may be forever or nothing at all", () => {
  const kind = defineJob("k", { run, keepDone: "0s", keepKeys: "forever" });
  expect(kind).toMatchObject({ keepDoneMs: 0, keepKeysMs: null });
});

describe("a payload is read by the schema", () => {
  const kind = defineJob("k", { schema: z.object({ to: z.array(z.object({ name: z.string() })) }), run });

  test("and is what the schema makes of it", async () => {
    expect(await parsePayload(kind, { to: [{ name: "a", extra: 1 }] })).toEqual({ to: [{ name: "a" }] });
  });

  test("and what is wrong is said place by place", async () => {
    const error = await caught(parsePayload(kind, { to: [{ name: "a" }, { name: 7 }] }));
    expect(error).toBeInstanceOf(PayloadInvalid);
    expect(error).toMatchObject({ message: expect.stringContaining("does not fit its schema: to.1.name: ") });
  });

  test("also by one that takes its time", async () => {
    const slow = defineJob("k", { schema: z.string().refine((text) => Promise.resolve(text === "a")), run });
    expect(await parsePayload(slow, "a")).toBe("a");
    expect(await caught(parsePayload(slow, "b"))).toBeInstanceOf(PayloadInvalid);
  });
});
