// Items, results, outcomes and errors of every shape: an item is refused when it is added, or it ends, and its batch with it.
// FUZZ_CASES=2000 for more, FUZZ_SEED repeats a run.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HoldfastError } from "#src/errors.js";
import { defineBatch } from "#src/job/define-batch.js";
import { saveResult } from "../support/history/save-result.ts";
import { uniqueName } from "../support/make.ts";
import { nastyError, nastyText, nastyValue } from "../support/nasty.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { seedFrom } from "../support/random.ts";

const CASES = Math.ceil(Number(process.env["FUZZ_CASES"] ?? 200) / 5);
/** One for the file: what is tried again is the same run. */
const SEED = seedFrom(process.env["FUZZ_SEED"]);
const deed = fc.record({
  payload: fc.oneof(nastyValue, nastyText, fc.nat()),
  how: fc.constantFrom("returns", "returns", "throws", "names an outcome"),
  text: nastyText,
  // Most of the nasty ones cannot be kept; some have to be saved whatever the seed.
  value: fc.oneof(nastyValue, nastyText, fc.nat()),
  error: nastyError,
});

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);

  test(`${CASES} items of every shape: each is refused, or ends`, { timeout: 60_000 + CASES * 1_000 }, async () => {
    const { hf } = bench;
    const deeds = fc.sample(deed, { numRuns: CASES, seed: SEED });
    const byBatch = new Map<string, (typeof deeds)[number]>();
    const kind = defineBatch<unknown, unknown, "saved">(uniqueName("fuzz"), {
      attempts: 1,
      outcomes: { saved: {} },
      run(item) {
        const { how, text, value, error } = byBatch.get(item.batchId)!;
        if (how === "throws") throw error();
        if (how === "returns") return { outcome: "saved", result: value };
        return text as "saved";
      },
    });
    let refused = 0;
    for (const each of deeds) {
      const before = byBatch.size;
      try {
        const { id } = await hf.batches.create(kind, [each.payload], { key: `${before}` });
        byBatch.set(id, each);
      } catch (error) {
        // A sentence and a code for whoever called, never an error of the database.
        expect(error, `FUZZ_SEED=${SEED}`).toBeInstanceOf(HoldfastError);
        refused += 1;
      }
    }
    const worker = await hf.work([kind], { concurrency: 10, poll: "50ms" });
    const ended = { saved: 0, error: 0 };
    for (const id of byBatch.keys()) {
      const { state, counts } = await hf.batches.wait(id, { timeout: "60s" }).catch((error: unknown) => {
        throw new Error(`FUZZ_SEED=${SEED}`, { cause: error });
      });
      expect(state, `FUZZ_SEED=${SEED}`).toBe("done");
      ended.saved += counts["saved"]!;
      ended.error += counts["error"]!;
    }
    await worker.stop();
    expect(ended.saved + ended.error, `FUZZ_SEED=${SEED}`).toBe(byBatch.size);
    await saveResult(`fuzz-batches-${tier}`, SEED, { cases: CASES, refused, ended, violations: [] });
    expect(Math.min(refused, ended.saved, ended.error), `FUZZ_SEED=${SEED}`).toBeGreaterThan(0);
  });
});
