// A job that coalesces and was enqueued to while it ran starts afresh when it has finished: what the finished run has noted,
// its steps and its chunks, is not for the next one, though the payload be the same.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Holdfast, open } from "#src/index.js";
import { makeGate, makeKind } from "../support/make.ts";
import { type Arena, openArena, SCHEMA } from "./arena.ts";

let arena: Arena;
let hf: Holdfast;
beforeAll(async () => {
  arena = await openArena();
  hf = await open({ database: arena.url, schema: SCHEMA });
});
afterAll(async () => {
  await hf.close();
  await arena.close();
});

test("a step and chunks of a job that was enqueued again while it ran are done again", async () => {
  const gate = makeGate();
  const done = { runs: 0, steps: 0, chunks: 0 };
  const kind = makeKind<{ doc: string }>({
    async run(job) {
      done.runs += 1;
      await job.step("pay", async () => void (done.steps += 1));
      for await (const chunk of job.chunks("parts", [1, 2], { size: 1 })) {
        done.chunks += 1;
        await chunk.save(async () => {});
      }
      await gate.opened;
    },
  });
  await hf.work([kind], { concurrency: 1 });
  const { id } = await hf.enqueue(kind, { doc: "a" }, { coalesce: "a" });
  await expect.poll(() => done.chunks, { timeout: 10_000 }).toBe(2);
  await hf.enqueue(kind, { doc: "a" }, { coalesce: "a" });
  gate.open();
  await hf.jobs.wait(id, { timeout: "10s" });
  expect(done).toEqual({ runs: 2, steps: 2, chunks: 4 });
});
