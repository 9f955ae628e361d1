// The embedded database does not block whoever uses it: its synchronous calls happen in a thread.
import { expect, test } from "vitest";
import { type EmbeddedOptions, openEmbedded } from "#src/db/embedded.js";
import { testSeed } from "./children/seed.mjs";

/** How often a timer of 10 ms fires while a statement computes for `seconds`. */
async function ticksDuring(seconds: number, options: EmbeddedOptions): Promise<number> {
  const db = await openEmbedded({ memory: true }, { seed: await testSeed(), ...options });
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 10);
  await db.script(`do $$
    declare enough timestamptz := clock_timestamp() + interval '${seconds} s';
    begin
      while clock_timestamp() < enough loop null; end loop;
    end $$`);
  clearInterval(timer);
  await db.close();
  return ticks;
}

test("timers go on while a statement runs for seconds", async () => {
  // An idle machine gives 200.
  expect(await ticksDuring(2, {})).toBeGreaterThan(40);
});

test("which they do not without the thread", async () => {
  expect(await ticksDuring(0.5, { thread: null })).toBeLessThan(5);
});
