// openTest(): a Holdfast for a test. In memory unless told otherwise, with a clock that can be moved.
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import { openParts, type OpenedParts } from "../open.ts";
import type { OpenOptions } from "../options.ts";
import { makeTestClock, type TestClock } from "./test-clock.ts";

/** The options of `open()`, and where the clock starts. */
export interface OpenTestOptions extends OpenOptions {
  /** Where the clock starts. Nothing: now. */
  clock?: Date | string;
}

/** What `openTest` gives: everything that `open()` gives, and the clock. */
export interface TestHoldfast extends Holdfast {
  /** The database's clock, which is the only one that counts. */
  readonly clock: TestClock;
}

const parts = new WeakMap<Holdfast, OpenedParts>();

/** A Holdfast for a test: in memory unless told otherwise, with a clock that can be moved. */
export async function openTest(given: OpenTestOptions = {}): Promise<TestHoldfast> {
  const { clock: start, ...options } = given;
  const opened = await openParts({ database: "memory:", ...options });
  const { hf, store } = opened;
  const clock = makeTestClock(store, () => hf.wake());
  parts.set(hf, opened);
  try {
    if (start !== undefined) await clock.set(start);
  } catch (error) {
    await hf.close();
    throw error;
  }
  return Object.assign(hf, { clock });
}

/** What stands behind a Holdfast of openTest(). */
export function partsOf(hf: Holdfast): OpenedParts {
  const found = parts.get(hf);
  if (found) return found;
  throw new OptionInvalid("This Holdfast was not opened by openTest().", "Use openTest({ database }) in tests.");
}
