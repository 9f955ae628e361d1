// Payloads, results, errors, notes, keys, groups and queues of every shape, through a real worker: what cannot be stored is refused when it
// is enqueued, and whatever a handler returns, throws or reports, its job ends.
import fc from "fast-check";
import { expect } from "vitest";
import { defineJob } from "#src/index.js";
import { HoldfastError } from "#src/errors.js";
import { runDue, type TestHoldfast } from "#src/testing/index.js";
import { uniqueName } from "../support/make.ts";
import { nastyError, nastyText, nastyValue } from "../support/nasty.ts";

const deed = fc.record({
  payload: fc.oneof(
    nastyValue,
    nastyText,
    fc.constant(JSON.parse(`{"__proto__": {"x": 1}, "constructor": 1}`) as unknown),
  ),
  // Most have none, so that they run.
  where: fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: nastyText.map((group) => ({ group })) },
    { weight: 1, arbitrary: nastyText.map((coalesce) => ({ coalesce })) },
    { weight: 1, arbitrary: nastyText.map((queue) => ({ queue })) },
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
      const hasKey = each.text.length > 0 && each.text.length < 100 && !("coalesce" in each.where);
      const options = { ...each.where, ...(hasKey ? { key: `${byId.size} ${each.text}` } : {}) };
      byId.set((await hf.enqueue(kind, each.payload, options)).id, each);
    } catch (error) {
      // A sentence and a code for whoever called, never an error of the database.
      expect(error).toBeInstanceOf(HoldfastError);
      refused += 1;
    }
  }
  await runDue(hf, [kind], { concurrency: 20, timeout: `${300 + Math.ceil(cases / 5)}s`, maxRuns: cases + 10 });
  const ended: Record<string, number> = {};
  for (const id of byId.keys()) {
    const job = await hf.jobs.get(id);
    ended[job!.state] = (ended[job!.state] ?? 0) + 1;
  }
  expect(Object.keys(ended).filter((state) => state !== "done" && state !== "dead")).toEqual([]);
  return { cases, refused, ended };
}
