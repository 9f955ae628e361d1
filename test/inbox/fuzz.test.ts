// Names, types, keys, remarks and recipients of every shape: a put is refused, or its bytes come back.
// FUZZ_CASES=2000 for more, FUZZ_SEED repeats a run.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HoldfastError } from "#src/errors.js";
import { saveResult } from "../support/history/save-result.ts";
import { nastyText, nastyValue } from "../support/nasty.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { seedFrom } from "../support/random.ts";

const CASES = Number(process.env["FUZZ_CASES"] ?? 200);
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined, freq: 2 });
/** One for the file: what is tried again is the same run. */
const SEED = seedFrom(process.env["FUZZ_SEED"]);
const deed = fc.record({
  recipient: fc.oneof({ weight: 4, arbitrary: fc.constant("somebody") }, { weight: 1, arbitrary: nastyText }),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }),
  name: maybe(nastyText),
  type: maybe(nastyText),
  key: maybe(nastyText),
  meta: maybe(nastyValue),
});

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);

  test(
    `${CASES} puts of every shape: each is refused, or its bytes come back`,
    { timeout: 60_000 + CASES * 200 },
    async () => {
      let refused = 0;
      let taken = 0;
      for (const { recipient, bytes, ...given } of fc.sample(deed, { numRuns: CASES, seed: SEED })) {
        const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
        try {
          const inbox = bench.hf.inbox(recipient);
          const put = await inbox.put(bytes, options);
          taken += 1;
          if (put.conflict) continue;
          const content = await inbox.open(put.id);
          expect([...(await content.bytes())], `FUZZ_SEED=${SEED}`).toEqual([...bytes]);
          expect(put.name, `FUZZ_SEED=${SEED}`).toMatch(/^[\p{L}\p{N}._-]{1,100}$/u);
        } catch (error) {
          expect(error, `FUZZ_SEED=${SEED}`).toBeInstanceOf(HoldfastError);
          refused += 1;
        }
      }
      await saveResult(`fuzz-inbox-${tier}`, SEED, { cases: CASES, refused, taken, violations: [] });
      expect(Math.min(refused, taken), `FUZZ_SEED=${SEED}`).toBeGreaterThan(CASES / 20);
    },
  );
});
