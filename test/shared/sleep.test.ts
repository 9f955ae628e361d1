import { expect, test } from "vitest";
import { jitter, makeAlarm, within } from "#src/shared/sleep.js";

test("an alarm that rang before the wait ends it at once, and only once", async () => {
  const alarm = makeAlarm();
  alarm.ring();
  alarm.ring();
  await alarm.wait(60_000);
  const began = performance.now();
  await alarm.wait(20);
  expect(performance.now() - began).toBeGreaterThan(15);
});

test("an alarm that rings during the wait ends it", async () => {
  const alarm = makeAlarm();
  const waited = alarm.wait(60_000);
  alarm.ring();
  await waited;
});

test("a wait that ends with an error leaves no timer behind", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  await expect(within(60_000, Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(timers()).toBe(before);
});

test("jitter is between half and the whole", () => {
  for (let n = 0; n < 1_000; n += 1) {
    const ms = jitter(100);
    expect(ms).toBeGreaterThanOrEqual(50);
    expect(ms).toBeLessThanOrEqual(100);
  }
});
