import { describe, expect, test } from "vitest";
import { MAX_PAYLOAD_BYTES } from "#src/job/storable.js";
import { runDue } from "#src/testing/index.js";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("ten megabytes, %s", (tier) => {
  const bench = useHoldfast(tier);
  const quotes = 2;

  test("are taken, as a payload and as a result, and come back whole", async () => {
    // Not compressible to nothing, and not all of one byte.
    const text = Array.from({ length: 1_000 }, (_, n) => `${n * 7919}ü`).join("");
    const bytes = Buffer.byteLength(text);
    const most = text.repeat(Math.floor((MAX_PAYLOAD_BYTES - quotes) / bytes));
    const payload = most + "x".repeat(MAX_PAYLOAD_BYTES - quotes - Buffer.byteLength(most));
    expect(Buffer.byteLength(JSON.stringify(payload))).toBe(MAX_PAYLOAD_BYTES);
    let isWhole = false;
    const kind = makeKind<string, string>({
      run: (job) => {
        isWhole = job.payload === payload;
        return job.payload;
      },
    });
    const { id } = await bench.hf.enqueue(kind, payload);
    await runDue(bench.hf, [kind]);
    const job = await bench.hf.jobs.get(id);
    expect(isWhole).toBe(true);
    expect(job?.state).toBe("done");
    expect(job?.payload === payload).toBe(true);
    expect(job?.result === payload).toBe(true);
  });

  test("and a byte are refused, and the message says how many there are and how many are taken", async () => {
    const error = await caught(bench.hf.enqueue(makeKind(), "x".repeat(MAX_PAYLOAD_BYTES - quotes + 1)));
    expect(error).toMatchObject({
      code: "HOLDFAST_PAYLOAD_INVALID",
      message: expect.stringContaining(`${MAX_PAYLOAD_BYTES + 1} bytes of JSON; at most ${MAX_PAYLOAD_BYTES}`),
    });
  });

  test("and more as a result make the job dead, at once and with the reason", async () => {
    const kind = makeKind({ run: () => "x".repeat(MAX_PAYLOAD_BYTES) });
    const { id } = await bench.hf.enqueue(kind, 1);
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      state: "dead",
      attempt: 1,
      lastError: { reason: "fatal", message: expect.stringContaining("bytes of JSON") },
    });
  });
});
