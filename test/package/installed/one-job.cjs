// One real job in an embedded database, a call of the HTTP side, a database in memory: handed the four doors as they came
// through `import` or through `require`.
const assert = require("node:assert/strict");
const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");

module.exports = async function runOneJob({ main, http, testing, guardedFetch }) {
  const data = mkdtempSync(join(tmpdir(), "holdfast-one-job-"));
  const add = main.defineJob("add", { run: (job) => job.payload.a + job.payload.b });
  const hf = await main.open({ data });
  try {
    await hf.work([add]);
    const { id } = await hf.enqueue(add, { a: 1, b: 2 });
    const job = await hf.jobs.wait(id, { timeout: "20s" });
    assert.deepEqual([job.state, job.result], ["done", 3]);
    const answer = await http.makeHandler({ hf, kinds: [add] })(new Request("http://localhost/livez"));
    assert.equal(answer.status, 200);
  } finally {
    await hf.close();
    rmSync(data, { recursive: true, force: true });
  }
  const test = await testing.openTest();
  await test.enqueue(add, { a: 2, b: 2 });
  assert.equal((await testing.runDue(test, [add])).done, 1);
  await test.close();
  assert.equal(guardedFetch.isPublicAddress("127.0.0.1"), false);
};
