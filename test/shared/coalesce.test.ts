import { expect, test } from "vitest";
import { makeCoalescer, type Turn } from "#src/shared/coalesce.js";
import { caught, makeGate } from "../support/make.ts";

/** A coalescer of doubling, whose statements can be held and are written down. */
function makeBench(
  options: { maxEntries?: number; maxWeight?: number; lanes?: number; turnsOf?: (entry: number) => Turn[] } = {},
) {
  const batches: number[][] = [];
  const gates: ReturnType<typeof makeGate>[] = [];
  const coalescer = makeCoalescer<number, number>({
    maxEntries: 100,
    weigh: (entry) => entry,
    ...options,
    async run(entries) {
      batches.push(entries);
      const gate = makeGate();
      gates.push(gate);
      await gate.opened;
      return entries.map((entry) => (entry === 13 ? new Error("unlucky") : entry * 2));
    },
  });
  return { coalescer, batches, gates };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("calls of one turn share the first statement, those during it the next", async () => {
  const { coalescer, batches, gates } = makeBench();
  const first = [coalescer.add(1), coalescer.add(2)];
  await turn();
  const second = [coalescer.add(3), coalescer.add(4), coalescer.add(5)];
  await turn();
  expect(batches).toEqual([[1, 2]]);
  gates[0]!.open();
  expect(await Promise.all(first)).toEqual([2, 4]);
  await turn();
  expect(batches).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
  gates[1]!.open();
  expect(await Promise.all(second)).toEqual([6, 8, 10]);
});

test("an entry that fails is rejected alone", async () => {
  const { coalescer, gates } = makeBench();
  const good = coalescer.add(1);
  const bad = caught(coalescer.add(13));
  const alsoGood = coalescer.add(2);
  await turn();
  gates[0]!.open();
  expect(await good).toBe(2);
  expect(await bad).toMatchObject({ message: "unlucky" });
  expect(await alsoGood).toBe(4);
});

test("a statement that fails rejects its own entries, and the next goes on", async () => {
  let calls = 0;
  const coalescer = makeCoalescer<number, number>({
    maxEntries: 10,
    run: (entries) => {
      calls += 1;
      return calls === 1 ? Promise.reject(new Error("gone")) : Promise.resolve(entries);
    },
  });
  expect(await caught(coalescer.add(1))).toMatchObject({ message: "gone" });
  expect(await coalescer.add(2)).toBe(2);
});

test("an entry that waits longer does not hold up the next statement, and idle() waits for it", async () => {
  const slow = makeGate();
  const coalescer = makeCoalescer<string, string>({
    maxEntries: 10,
    run: (entries) =>
      Promise.resolve(entries.map((entry) => (entry === "slow" ? slow.opened.then(() => "at last") : entry))),
  });
  const late = coalescer.add("slow");
  expect(await coalescer.add("quick")).toBe("quick");
  expect(coalescer.size).toBe(1);
  let isIdle = false;
  const idle = coalescer.idle().then(() => (isIdle = true));
  await turn();
  expect(isIdle).toBe(false);
  slow.open();
  expect(await late).toBe("at last");
  await idle;
  expect(coalescer.size).toBe(0);
});

test("a statement takes at most so many entries, and at most so much weight unless one alone is heavier", async () => {
  const few = makeBench({ maxEntries: 2 });
  const weighed = makeBench({ maxWeight: 10 });
  const all = [
    ...[1, 2, 3].map((entry) => few.coalescer.add(entry)),
    ...[4, 5, 6, 50, 1].map((entry) => weighed.coalescer.add(entry)),
  ];
  for (let round = 0; round < 5; round += 1) {
    await turn();
    for (const gate of [...few.gates, ...weighed.gates]) gate.open();
  }
  await Promise.all(all);
  expect(few.batches).toEqual([[1, 2], [3]]);
  expect(weighed.batches).toEqual([[4, 5], [6], [50], [1]]);
});

test("two lanes run two statements at once, never three", async () => {
  const { coalescer, batches, gates } = makeBench({ maxEntries: 1, lanes: 2 });
  const all = [1, 2, 3].map((entry) => coalescer.add(entry));
  await turn();
  expect(batches).toEqual([[1], [2]]);
  gates[1]!.open();
  await turn();
  expect(batches).toEqual([[1], [2], [3]]);
  for (const gate of gates) gate.open();
  expect(await Promise.all(all)).toEqual([2, 4, 6]);
});

const sameParity = (entry: number): Turn[] => [{ name: entry % 2 === 0 ? "even" : "odd" }];

test("entries of one turn are never in two statements at once, and others are not kept waiting", async () => {
  const { coalescer, batches, gates } = makeBench({ maxEntries: 2, lanes: 2, turnsOf: sameParity });
  const all = [1, 3, 5, 7, 2, 4].map((entry) => coalescer.add(entry));
  await turn();
  expect(batches).toEqual([
    [1, 3],
    [2, 4],
  ]);
  gates[1]!.open();
  await turn();
  expect(batches).toHaveLength(2);
  gates[0]!.open();
  await turn();
  expect(batches.slice(2)).toEqual([[5, 7]]);
  gates[2]!.open();
  expect(await Promise.all(all)).toEqual([2, 6, 10, 14, 4, 8]);
  await coalescer.idle();
});

test("of entries that want to be alone in a statement each goes after the one before it, and none is overtaken", async () => {
  const alone = (entry: number): Turn[] => [{ name: String(entry % 10), isAlone: true }];
  const { coalescer, batches, gates } = makeBench({ lanes: 2, turnsOf: alone });
  const all = [1, 11, 2].map((entry) => coalescer.add(entry));
  await turn();
  const later = [21, 3].map((entry) => coalescer.add(entry));
  await turn();
  expect(batches).toEqual([[1, 2], [3]]);
  gates[0]!.open();
  await turn();
  expect(batches[2]).toEqual([11]);
  gates[2]!.open();
  await turn();
  expect(batches[3]).toEqual([21]);
  for (const gate of gates) gate.open();
  await Promise.all([...all, ...later]);
});

test("an entry that waits longer keeps its turn until it is over", async () => {
  const slow = makeGate();
  const seen: string[][] = [];
  const coalescer = makeCoalescer<string, string>({
    maxEntries: 10,
    turnsOf: (entry) => [{ name: entry[0]! }],
    run: (entries) => {
      seen.push(entries);
      return Promise.resolve(entries.map((entry) => (entry === "a1" ? slow.opened.then(() => entry) : entry)));
    },
  });
  const all = [coalescer.add("a1")];
  await turn();
  all.push(coalescer.add("a2"), coalescer.add("b1"));
  await turn();
  expect(seen).toEqual([["a1"], ["b1"]]);
  slow.open();
  expect(await Promise.all(all)).toEqual(["a1", "a2", "b1"]);
  expect(seen[2]).toEqual(["a2"]);
});
