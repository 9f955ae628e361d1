// A few hundred of the cases of fuzz.ts; FUZZ_CASES=5000 for more, FUZZ_SEED repeats a run.
import { describe, expect, test } from "vitest";
import { saveResult } from "../support/history/save-result.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { seedFrom } from "../support/random.ts";
import { fuzz } from "./fuzz.ts";

const CASES = Number(process.env["FUZZ_CASES"] ?? 200);

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  test(
    `${CASES} payloads, results and errors of every shape: each is refused or its job ends`,
    { timeout: 60_000 + CASES * 400 },
    async () => {
      const seed = seedFrom(process.env["FUZZ_SEED"]);
      const { refused, ended } = await fuzz(bench.hf, CASES, seed).catch((error: unknown) => {
        throw new Error(`FUZZ_SEED=${seed}`, { cause: error });
      });
      await saveResult(`fuzz-worker-${tier}`, seed, { cases: CASES, refused, ended, violations: [] });
      expect(refused).toBeGreaterThan(2);
      expect(Math.min(ended["done"] ?? 0, ended["dead"] ?? 0)).toBeGreaterThan(2);
    },
  );
});
