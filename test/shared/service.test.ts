import { expect, test } from "vitest";
import { makeService } from "#src/shared/service.js";
import { caught, makeGate } from "../support/make.ts";

function makeBench(onStart: () => Promise<void> = () => Promise.resolve()) {
  const calls: string[] = [];
  const service = makeService({
    async onStart() {
      calls.push("start");
      await onStart();
    },
    onStop() {
      calls.push("stop");
      return Promise.resolve();
    },
  });
  return { service, calls };
}

test("start twice is one start, stop twice is one stop", async () => {
  const { service, calls } = makeBench();
  await Promise.all([service.start(), service.start()]);
  await Promise.all([service.stop(), service.stop()]);
  await service.stop();
  expect(calls).toEqual(["start", "stop"]);
});

test("stop before start is fine, and nothing starts afterwards", async () => {
  const { service, calls } = makeBench();
  await service.stop();
  expect(await caught(service.start())).toMatchObject({ message: expect.stringContaining("stopped") });
  expect(calls).toEqual([]);
});

test("stop during start waits for the start, then stops", async () => {
  const gate = makeGate();
  const { service, calls } = makeBench(() => gate.opened);
  const started = service.start();
  const stopped = service.stop();
  expect(calls).toEqual(["start"]);
  gate.open();
  await started;
  await stopped;
  expect(calls).toEqual(["start", "stop"]);
});

test("a start that failed is still stopped: it may have begun something", async () => {
  const { service, calls } = makeBench(() => Promise.reject(new Error("no database")));
  expect(await caught(service.start())).toMatchObject({ message: "no database" });
  await service.stop();
  expect(calls).toEqual(["start", "stop"]);
});

test("a start that failed can be tried again, and is stopped once", async () => {
  let isAway = true;
  const { service, calls } = makeBench(() => (isAway ? Promise.reject(new Error("no database")) : Promise.resolve()));
  const both = await Promise.allSettled([service.start(), service.start()]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  isAway = false;
  await service.start();
  await service.start();
  await service.stop();
  expect(calls).toEqual(["start", "start", "stop"]);
});

test("await using stops it", async () => {
  const { service, calls } = makeBench();
  {
    await using disposable = service;
    await disposable.start();
  }
  expect(calls).toEqual(["start", "stop"]);
});
