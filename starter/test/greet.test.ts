// The real thing: a database in memory, a worker, and the job on its way through both.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openTest, type TestHoldfast } from "holdfast/testing";
import { greet } from "../jobs/greet.ts";

let hf: TestHoldfast;
before(async () => {
  hf = await openTest();
  await hf.work([greet]);
});
after(() => hf.close());

test("somebody is greeted, once for each key", async () => {
  const first = await hf.enqueue(greet, { name: "Ada" }, { key: "ada" });
  const again = await hf.enqueue(greet, { name: "Ada" }, { key: "ada" });
  assert.equal(again.id, first.id);
  assert.equal(again.created, false);
  const job = await hf.jobs.wait(first.id, { timeout: "10s" });
  assert.equal(job.state, "done");
  assert.deepEqual(job.result, { greeting: "Hello, Ada!" });
});

test("nobody is not tried again", async () => {
  const { id } = await hf.enqueue(greet, { name: "nobody" });
  const job = await hf.jobs.wait(id, { timeout: "10s" });
  assert.equal(job.state, "dead");
  assert.equal(job.attempt, 1);
});
