// holdfast worker --once: runs what is due, and ends; a worker that is asked to stop ends its process.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Holdfast, open } from "#src/index.js";
import { configSchema } from "#src/cli/config-schema.js";
import { CONFIG_KNOWN } from "#src/cli/config.js";
import { defineJob } from "#src/job/define-job.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { cleanUp, makeFolder, run, spawnHoldfast } from "./holdfast.ts";

let database: TestDatabase;
let hf: Holdfast;
let cwd: string;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createDatabase();
  hf = await open({ database: database.url });
  cwd = await makeFolder();
  env = { DATABASE_URL: database.url };
  await writeFile(
    join(cwd, "holdfast.config.mjs"),
    `import { defineJob, Fatal } from "holdfast";
     const next = defineJob("next", { run() {} });
     export default { jobs: [next, defineJob("work", { attempts: 3, backoff: ["1h"], async run(job) {
       if (job.payload === "bad") throw new Error("bad");
       if (job.payload === "hopeless") throw new Fatal("hopeless");
       if (job.payload === "long") await new Promise((go) => setTimeout(go, 500));
     } })] };`,
  );
});
afterAll(async () => {
  await cleanUp();
  await hf.close();
  await database.drop();
});

const work = defineJob<string | null>("work", { attempts: 3, backoff: ["1h"], run: () => null });

test("nothing to do is 0; what is due runs, what is due later does not; a dead job is exit code 4", async () => {
  const nothing = await run(["worker", "--once"], { cwd, env });
  expect([nothing.code, JSON.parse(nothing.stdout)], nothing.stderr).toEqual([0, expect.objectContaining({ runs: 0 })]);

  await hf.enqueueMany(work, [{ payload: null }, { payload: "long" }, { payload: "bad" }]);
  const { id: later } = await hf.enqueue(work, null, { delay: "1h" });
  const some = await run(["worker", "--once"], { cwd, env });
  expect([some.code, JSON.parse(some.stdout)], some.stderr).toEqual([
    0,
    { runs: 3, done: 2, retrying: 1, snoozed: 0, dead: 0, cancelled: 0 },
  ]);
  expect(await hf.jobs.get(later)).toMatchObject({ status: "scheduled", claimCount: 0 });

  await hf.enqueue(work, "hopeless");
  expect(await run(["worker", "--once"], { cwd, env })).toMatchObject({
    code: 4,
    stdout: expect.stringContaining('"dead":1'),
  });
});

test("holdfast worker ends when its worker is asked to stop", async () => {
  const worker = spawnHoldfast(["worker"], { cwd, env });
  await worker.says('"message":"Ready"');
  const [info] = (await hf.workers.list()).workers;
  await hf.workers.stop(info!.id, { by: "ada" });
  const { code, stderr } = await worker.ended;
  expect([code, stderr]).toEqual([0, expect.stringContaining("The worker was asked to stop")]);
});

test("config schema: every key, and a file that names it is accepted", async () => {
  const { code, stdout } = await run(["config", "schema"]);
  const schema = JSON.parse(stdout) as { properties: Record<string, object>; additionalProperties: boolean };
  expect([code, schema]).toEqual([0, configSchema()]);
  expect(Object.keys(schema.properties)).toEqual(["$schema", ...CONFIG_KNOWN]);
  expect(schema.additionalProperties).toBe(false);
  const folder = await makeFolder();
  await writeFile(join(folder, "holdfast.config.json"), '{ "$schema": "./holdfast.schema.json", "concurrency": 7 }');
  const { stdout: printed } = await run(["config", "--json"], { cwd: folder });
  expect(JSON.parse(printed)).toMatchObject({ settings: { concurrency: { value: 7 } } });
});
