// Whatever is accepted comes back equal: from the row, in the handler, and as a result.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { runDue } from "#src/testing/index.js";
import { ended } from "../support/events.ts";
import { caught, makeKind, uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { z } from "zod";
import { seedFrom } from "../support/random.ts";

// One for the file: what is tried again is the same run. fast-check names it when something fails.
const seed = seedFrom(process.env["FUZZ_SEED"]);

const nest = (depth: number): unknown => (depth === 0 ? "deep" : [{ a: nest(depth - 2) }]);

const TORTURE: [string, unknown][] = [
  ["integers to 2^53", [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 2 ** 53]],
  ["integers beyond it that a double holds", [2 ** 60, 2 ** 64, -(2 ** 70), 1e21]],
  ["numbers of all sizes", [5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 1e-7, 123456789.125]],
  [
    "text of all sorts",
    ["", " ", "Grüße", "👩‍👩‍👧‍👦", "\u{10FFFF}", "\u0001\u001f\u007f", '"\\/\b\f\n\r\t', "\u2028\u2029\uFEFF"],
  ],
  ["text that looks like an escape", ["\\u0000", "\\\\u0000", "\\ud800"]],
  ["what SQL might trip over", ["'; drop table jobs; --", ":schema", "$1", "?", "{}", "null", "\\."]],
  ["odd keys", { "": 1, " ": 2, "a.b": 3, ключ: 4, toString: 5, constructor: { prototype: 6 } }],
  ["nested as deep as it may be", nest(198)],
  ["nothing", null],
  ["false, zero and nothing inside", [false, 0, null, "", [], {}]],
  ["a long list", Array.from({ length: 5_000 }, (_, n) => n)],
];

describe.each(TIERS)("payloads, %s", (tier) => {
  const bench = useHoldfast(tier);
  const echo = defineJob(uniqueName("echo"), {
    run: (job) => {
      handed.set(job.id, job.payload);
      return job.payload;
    },
  });
  const handed = new Map<string, unknown>();

  async function roundTrip(payloads: readonly unknown[]): Promise<void> {
    const results = await bench.hf.enqueueMany(
      echo,
      payloads.map((payload) => ({ payload })),
    );
    await runDue(bench.hf, [echo], { concurrency: 50 });
    for (const [index, { id }] of results.entries()) {
      const job = await bench.hf.jobs.get(id);
      expect(job?.state).toBe("done");
      expect(job?.payload).toEqual(payloads[index]);
      expect(handed.get(id)).toEqual(payloads[index]);
      expect(job?.result).toEqual(payloads[index]);
    }
  }

  test("of every awkward sort come back equal", async () => {
    await roundTrip(TORTURE.map(([, payload]) => payload));
  });

  test("of every awkward sort come back equal among very many", async () => {
    const payloads = Array.from({ length: 20 }, () => TORTURE.map(([, payload]) => payload)).flat();
    for (const kind of [makeKind(), defineJob(uniqueName(), { schema: z.unknown(), run: () => undefined })]) {
      const results = await bench.hf.enqueueMany(
        kind,
        payloads.map((payload) => ({ payload })),
      );
      const stored = await Promise.all(results.map(({ id }) => bench.hf.jobs.get(id)));
      expect(stored.map((job) => job?.payload)).toEqual(payloads);
    }
  });

  test("with a key called __proto__ keep it, and nobody's prototype changes", async () => {
    const payload: unknown = JSON.parse('{"__proto__": {"admin": true}, "list": [{"__proto__": 1}]}');
    const { id } = await bench.hf.enqueue(echo, payload);
    await runDue(bench.hf, [echo]);
    const job = await bench.hf.jobs.get(id);
    for (const back of [job?.payload, job?.result, handed.get(id)]) {
      expect(JSON.stringify(back)).toContain('"__proto__":{"admin":true}');
      expect(back).not.toHaveProperty("admin");
    }
    expect({}).not.toHaveProperty("admin");
  });

  test("of any sort come back equal, or are refused", async () => {
    // JSON has one zero; test/job/storable.test.ts tells what is refused.
    const value = fc.jsonValue({ maxDepth: 6, stringUnit: "binary", noUnicodeString: false }).map(withoutNegativeZero);
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 60 }), async (values) => {
        const accepted: unknown[] = [];
        for (const payload of values) {
          const error = await bench.hf.enqueue(makeKind(), payload).catch((thrown: unknown) => thrown);
          if (error instanceof Error) expect(error).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID" });
          else accepted.push(payload);
        }
        await roundTrip(accepted);
      }),
      { numRuns: 5, seed },
    );
  });

  test("are what the schema makes of them, also when it changes their type", async () => {
    const seen: unknown[] = [];
    const kind = defineJob(uniqueName(), {
      schema: z.object({ n: z.string().transform(Number), at: z.coerce.date(), note: z.string().default("none") }),
      run: (job) => void seen.push(job.payload),
    });
    const { id } = await bench.hf.enqueue(kind, { n: "41", at: "2030-01-01T00:00:00Z" });
    await runDue(bench.hf, [kind]);
    expect((await ended(bench.hf, id)).state).toBe("done");
    expect(seen).toEqual([{ n: 41, at: new Date("2030-01-01T00:00:00Z"), note: "none" }]);
  });

  test("that would not fit their schema any more after being stored are refused at once", async () => {
    const kind = defineJob(uniqueName(), { schema: z.object({ at: z.date() }), run: () => undefined });
    const error = await caught(bench.hf.enqueue(kind, { at: new Date() }));
    expect(error).toMatchObject({ code: "HOLDFAST_PAYLOAD_INVALID", message: expect.stringContaining("at: ") });
  });

  test("that do not fit the schema when they are claimed end dead, with the reason", async () => {
    const name = uniqueName();
    const before = defineJob(name, { run: () => undefined });
    const after = defineJob(name, { schema: z.object({ version: z.literal(2) }), run: () => undefined });
    const { id } = await bench.hf.enqueue(before, { version: 1 });
    expect(await runDue(bench.hf, [after])).toMatchObject({ runs: 1, dead: 1 });
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      state: "dead",
      lastError: { name: "PayloadInvalid", reason: "invalid-payload", message: expect.stringContaining("version: ") },
    });
  });
});

function withoutNegativeZero<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
