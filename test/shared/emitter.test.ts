import { expect, test } from "vitest";
import { makeEmitter } from "#src/shared/emitter.js";

interface Events {
  tick: { n: number };
}

test("a listener that throws is reported and does not keep the others from hearing", () => {
  const reported: unknown[] = [];
  const heard: number[] = [];
  const emitter = makeEmitter<Events>((error) => reported.push(error));
  emitter.on("tick", () => {
    throw new Error("mine");
  });
  emitter.on("tick", ({ n }) => heard.push(n));
  emitter.emit("tick", { n: 1 });
  expect(heard).toEqual([1]);
  expect(reported).toEqual([expect.objectContaining({ message: "mine" })]);
});

test("an async listener that fails is reported, and ends no process", async () => {
  const reported: unknown[] = [];
  const emitter = makeEmitter<Events>((error) => reported.push(error));
  const fail = async (): Promise<void> => {
    await Promise.resolve();
    throw new Error("later");
  };
  // The types let any function through whose answer nobody reads.
  emitter.on("tick", fail as () => void);
  emitter.emit("tick", { n: 1 });
  await expect.poll(() => reported).toEqual([expect.objectContaining({ message: "later" })]);
});

test("a report that throws does not reach whoever emits", () => {
  const heard: number[] = [];
  const emitter = makeEmitter<Events>(() => {
    throw new Error("the log is broken, too");
  });
  emitter.on("tick", () => {
    throw new Error("mine");
  });
  emitter.on("tick", ({ n }) => heard.push(n));
  emitter.emit("tick", { n: 1 });
  expect(heard).toEqual([1]);
});

test("the function that on() returns stops the listening, also from inside a listener", () => {
  const heard: number[] = [];
  const emitter = makeEmitter<Events>(() => undefined);
  const stop = emitter.on("tick", ({ n }) => {
    heard.push(n);
    stop();
  });
  expect(emitter.has("tick")).toBe(true);
  emitter.emit("tick", { n: 1 });
  emitter.emit("tick", { n: 2 });
  expect(heard).toEqual([1]);
  expect(emitter.has("tick")).toBe(false);
});
