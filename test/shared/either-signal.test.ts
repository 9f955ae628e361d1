import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { eitherSignal, orAfter } from "#src/shared/either-signal.js";
import { readSources } from "../house/sources.ts";

const ways: [string, () => AbortSignal][] = [
  ["of its own", () => orAfter(150, new AbortController().signal)],
  ["that it was given", () => eitherSignal(new AbortController().signal, AbortSignal.timeout(150))],
];
test.each(ways)("a time limit %s comes, though nobody holds it and garbage is collected meanwhile", async (_, make) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const signal = make();
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  collect();
  await aborted;
  expect(signal.reason).toMatchObject({ name: "TimeoutError" });
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
