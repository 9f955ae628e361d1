// Payloads, results, errors, notes and headers of every shape, through a real worker: what cannot be stored is refused when it
// is enqueued, and whatever a handler returns, throws or reports, its job ends.
import fc from "fast-check";
import { expect } from "vitest";
import { defineJob } from "#src/index.js";
import { HoldfastError } from "#src/errors.js";
import { runDue, type TestHoldfast } from "#src/testing/index.js";
import { uniqueName } from "../support/make.ts";

const nastyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "\u0000",
    "a\u0000b",
    "\ud800",
    "\udfff x",
    "'; drop table jobs; --",
    "\u202e",
    "💥".repeat(50),
    "x".repeat(20_000),
  ),
);
const nastyValue = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
  withUnicodeString: true,
  maxDepth: 3,
});
const getters = (text: string): object =>
  Object.defineProperties(new Error("outside"), {
    message: {
      get() {
        throw new Error(text);
      },
    },
    stack: { get: () => text },
  });
/** Made when it is thrown: fast-check looks at what it makes, and some of these must not be looked at. */
const nastyError = fc.oneof(
  nastyText.map((text) => () => new Error(text)),
  nastyText.map((text) => () => Object.assign(new Error("x"), { name: text, code: text, cause: { text } })),
  nastyText.map((text) => () => getters(text)),
  nastyValue.map((value) => () => value),
  fc.constantFrom(null, undefined, Symbol("thrown"), Math.max).map((value) => () => value),
);
const deed = fc.record({
  payload: fc.oneof(
    nastyValue,
    nastyText,
    fc.constant(JSON.parse(`{"__proto__": {"x": 1}, "constructor": 1}`) as unknown),
  ),
  how: fc.constantFrom("returns", "throws", "reports", "notes"),
  text: nastyText,
  value: nastyValue,
  error: nastyError,
});

export interface Fuzzed {
  cases: number;
  refused: number;
  ended: Record<string, number>;
}

export async function fuzz(hf: TestHoldfast, cases: number, seed: number): Promise<Fuzzed> {
  const deeds = fc.sample(deed, { numRuns: cases, seed });
  const byId = new Map<string, (typeof deeds)[number]>();
  const kind = defineJob(uniqueName("fuzz"), {
    attempts: 1,
    async run(job) {
      const { how, text, value, error } = byId.get(job.id)!;
      if (how === "throws") throw error();
      if (how === "reports") await job.progress(1, 2, text);
      if (how === "notes")
        await job.step(text.slice(0, 200) || "x", async () => value).catch((refusal: unknown) => refusal);
      return value;
    },
  });
  let refused = 0;
  for (const each of deeds) {
    try {
      const key = each.text.length > 0 && each.text.length < 100 ? { key: `${byId.size} ${each.text}` } : {};
      byId.set((await hf.enqueue(kind, each.payload, key)).id, each);
    } catch (error) {
      // A sentence and a code for whoever called, never an error of the database.
      expect(error).toBeInstanceOf(HoldfastError);
      refused += 1;
    }
  }
  await runDue(hf, [kind], { concurrency: 20, timeout: "5m", maxRuns: cases + 10 });
  const ended: Record<string, number> = {};
  for (const id of byId.keys()) {
    const job = await hf.jobs.get(id);
    ended[job!.state] = (ended[job!.state] ?? 0) + 1;
  }
  expect(Object.keys(ended).filter((state) => state !== "done" && state !== "dead")).toEqual([]);
  return { cases, refused, ended };
}
