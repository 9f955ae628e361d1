import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { orAfter } from "#src/shared/or-after.js";
import { readSources } from "../house/sources.ts";

test("the time comes though nobody holds the timer, and garbage is collected meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const signal = orAfter(150, new AbortController().signal);
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  collect();
  await aborted;
  expect(signal.reason).toMatchObject({ name: "TimeoutError", message: "It took longer than 150 ms." });
});

test("another signal comes first", () => {
  const other = new AbortController();
  const signal = orAfter(60_000, other.signal);
  other.abort(new Error("stop"));
  expect(signal.reason).toMatchObject({ message: "stop" });
});

// Node 20 forgets such a timeout: what was to end with it never ends.
test("nobody hands a timeout to AbortSignal.any() without holding it", () => {
  const found = ["src", "apps"].flatMap((folder) =>
    readSources(folder).filter(({ tree }) => /AbortSignal\.any\([^;]*AbortSignal\.timeout\(/.test(tree.text)),
  );
  expect(found.map(({ path }) => path)).toEqual([]);
});
