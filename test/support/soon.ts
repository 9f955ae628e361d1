// Asks again until the answer is as expected: for what no event tells.
import { expect } from "vitest";

export const soon = <T>(ask: () => T): ReturnType<typeof expect.poll<T>> => expect.poll(ask, { timeout: 15_000 });
