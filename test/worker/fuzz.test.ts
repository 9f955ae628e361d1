// A few hundred of the cases of fuzz.ts; FUZZ_CASES=5000 for more, FUZZ_SEED repeats a run.
import { describe, expect, test } from "vitest";
import { saveResult } from "../support/history/save-result.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { seedFrom } from "../support/random.ts";
import { fuzz } from "./fuzz.ts";

const CASES = Number(process.env["FUZZ_CASES"] ?? 200);
/** One for the file: what is tried again is the same run. */
const SEED = seedFrom(process.env["FUZZ_SEED"]);

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  test(
    `${CASES} payloads, results and errors of every shape: each is refused or its job ends`,
    { timeout: 60_000 + CASES * 400 },
    async () => {
      const { refused, ended } = await fuzz(bench.hf, CASES, SEED).catch((error: unknown) => {
        throw new Error(`FUZZ_SEED=${SEED}`, { cause: error });
      });
      await saveResult(`fuzz-worker-${tier}`, SEED, { cases: CASES, refused, ended, violations: [] });
      expect(refused, `FUZZ_SEED=${SEED}`).toBeGreaterThan(2);
      expect(Math.min(ended["done"] ?? 0, ended["dead"] ?? 0), `FUZZ_SEED=${SEED}`).toBeGreaterThan(2);
    },
  );
});
