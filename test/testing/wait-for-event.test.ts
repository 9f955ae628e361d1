import { describe, expect, test } from "vitest";
import { waitForEvent } from "#src/testing/index.js";
import { caught, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

describe("waitForEvent()", () => {
  const bench = useHoldfast("server");

  test("resolves with the first event that matches", async () => {
    const kind = makeKind<number>();
    const second = waitForEvent(bench.hf, "job.enqueued", (event) => event.queue === "second");
    await bench.hf.enqueue(kind, 1);
    const { id } = await bench.hf.enqueue(kind, 2, { queue: "second" });
    expect(await second).toMatchObject({ jobId: id, queue: "second" });
  });

  test("without a condition takes any", async () => {
    const any = waitForEvent(bench.hf, "job.enqueued");
    const { id } = await bench.hf.enqueue(makeKind(), 1);
    expect((await any).jobId).toBe(id);
  });

  test("gives up after its timeout, and says what came instead", async () => {
    const kind = makeKind();
    const waited = caught(waitForEvent(bench.hf, "job.enqueued", (event) => event.kind === "x", { timeout: "200ms" }));
    await bench.hf.enqueue(kind, 1);
    expect(await waited).toMatchObject({
      code: "HOLDFAST_WAIT_TIMEOUT",
      message: "No job.enqueued event that matches came within 200ms: 1 that did not match.",
    });
    expect(await caught(waitForEvent(bench.hf, "job.done", undefined, { timeout: "10ms" }))).toMatchObject({
      message: expect.stringContaining("none at all"),
    });
  });

  test("fails when its condition fails", async () => {
    const waited = caught(
      waitForEvent(bench.hf, "job.enqueued", () => {
        throw new Error("mine");
      }),
    );
    await bench.hf.enqueue(makeKind(), 1);
    expect(await waited).toMatchObject({ message: "mine" });
  });
});
