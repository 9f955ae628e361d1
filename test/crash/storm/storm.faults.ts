// Runs the parts of parts.ts and judges each. Not part of `npm test`: see `npm run test:faults`.
//
// FAULT_PARTS=kills,network   which ones (all)
// FAULT_SECONDS=300           how long each goes on (its own time)
// FAULT_SEED=7                repeats a run
// FAULT_OUT=folder            where the results and the histories go (nowhere)
import { afterEach, expect, test } from "vitest";
import { COVERED_BY_STORMS, type Expectations } from "../../support/history/judge.ts";
import { seedFrom } from "../../support/random.ts";
import { unleash } from "./faults.ts";
import { PARTS } from "./parts.ts";
import { endStorm, openStorm, sleep, type Storm } from "./storm.ts";

const wanted =
  process.env["FAULT_PARTS"]?.split(",") ?? Object.keys(PARTS).filter((name) => PARTS[name]!.isExtra !== true);

let storm: Storm | undefined;
afterEach(async () => {
  await storm?.close();
  storm = undefined;
});

for (const name of wanted) {
  const part = PARTS[name];
  if (!part) throw new Error(`There is no part "${name}". There are: ${Object.keys(PARTS).join(", ")}.`);
  const skipped = part.skip?.();
  if (skipped !== undefined) {
    process.stderr.write(`Skipped: ${name}. ${skipped}.\n`);
    test.skip(`${name}: ${skipped}`, () => {});
    continue;
  }
  const seconds = Number(process.env["FAULT_SECONDS"] ?? part.seconds);
  test(
    `${name}, ${seconds} seconds: nothing is lost, nothing is done twice, all comes to rest`,
    { timeout: (seconds + 400) * 1_000 },
    async () => {
      const seed = seedFrom(process.env["FAULT_SEED"]);
      process.stderr.write(`FAULT_PARTS=${name} FAULT_SEED=${seed}\n`);
      storm = await openStorm({ seed, ...part.options });
      const { places } = storm;
      await Promise.all(places.map(({ worker }) => worker.child.until("ready")));
      storm.producers.start();
      await sleep(1_000);
      await part.first?.(storm);
      const until = Date.now() + seconds * 1_000;
      const wrong: string[] = [];
      // What a fault finds wrong ends the faults, and not the judging.
      await unleash(storm, part.nemeses, () => Date.now() > until).catch((error: Error) => wrong.push(error.message));
      wrong.push(...((await part.after?.(storm)) ?? []));
      const leastFaults = Object.fromEntries(
        Object.entries(part.perMinute).map(([fault, count]) => [fault, Math.floor((count * seconds) / 60)]),
      );
      // In a short one nothing need be due.
      const covers = [
        ...COVERED_BY_STORMS,
        ...(seconds < 120 ? [] : ["I14"]),
        ...(part.expected?.reasons ? ["I19"] : []),
      ];
      const expected: Expectations = { leastFaults, covers, ...part.expected };
      if (part.leastLong !== undefined) expected.leastLong = part.leastLong;
      if (part.okShare !== undefined) expected.okShare = part.okShare;
      if (part.callMs !== undefined) expected.callMs = part.callMs;
      const outcome = await endStorm(storm, name, seed, expected, wrong);
      const { looked, ...rest } = outcome;
      process.stderr.write(
        `${JSON.stringify({ ...rest, looked: Object.values(looked).reduce((a, b) => a + b, 0) })}\n`,
      );
      expect(outcome.violations).toEqual([]);
    },
  );
}
