// What `holdfast dev` runs where there is no configuration file: kinds that show something within seconds.
import { setTimeout as delay } from "node:timers/promises";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { defineBatch } from "../job/define-batch.ts";
import { defineJob } from "../job/define-job.ts";

/** A Standard Schema by hand; in an application, use Zod, Valibot or ArkType. */
const withName: StandardSchemaV1<{ name: string }> = {
  "~standard": {
    version: 1,
    vendor: "holdfast-sample",
    validate(value) {
      const name: unknown = value !== null && typeof value === "object" && "name" in value ? value.name : undefined;
      if (typeof name === "string" && name !== "") return { value: { name } };
      return { issues: [{ path: ["name"], message: 'must be a text, as in {"name":"Ada"}' }] };
    },
  },
};

const hello = defineJob("sample.hello", {
  schema: withName,
  run: (job) => ({ greeting: `Hello, ${job.payload.name}!` }),
});

const STEPS = 10;

const slow = defineJob("sample.slow", {
  async run(job) {
    for (let step = 1; step <= STEPS; step += 1) {
      // Ends at once, with an error, when the job is cancelled or the worker stops.
      await delay(500, undefined, { signal: job.signal });
      await job.progress(step, STEPS, `step ${step} of ${STEPS}`);
    }
    return { steps: STEPS };
  },
});

const flaky = defineJob("sample.flaky", {
  attempts: 5,
  backoff: ["500ms", "1s"],
  run(job) {
    if (job.attempt < 3) throw new Error(`Try ${job.attempt} was bound to fail`);
    return { succeededOnTry: job.attempt };
  },
});

/** Items are anything with a number `n`: every seventh is odd luck, every tenth is there twice. */
const check = defineBatch<{ n: string | number }, { n: string | number }, "fine" | "duplicate">("sample.check", {
  concurrency: 5,
  attempts: 2,
  backoff: ["500ms"],
  outcomes: { fine: {}, duplicate: { warning: true } },
  async run({ payload, signal }) {
    const n = Number((payload as { n?: unknown } | null)?.n ?? payload);
    await delay(100, undefined, { signal });
    if (n % 7 === 0) throw new Error(`${n} is a multiple of seven`);
    return n % 10 === 0 ? "duplicate" : { outcome: "fine", result: { square: n * n } };
  },
});

/** The kinds that `holdfast dev` runs where there is no configuration file. */
export const SAMPLE_JOBS = [hello, slow, flaky, check];
