// How long enqueueMany takes with a key for each job, by how many there are: it must not grow with their square. Ends with exit code 1 if ten
// times as many take more than thirty times as long.
//
//   node test/load/keys.mjs
//
// Not part of npm test: it measures time.
import { defineJob, open } from "../../dist/index.js";
import { startPostgres } from "../support/postgres-server.mjs";

const server = await startPostgres();
const hf = await open({ database: server.url() });
try {
  const job = defineJob("keys.measured", { run: () => undefined });
  const took = {};
  for (const count of [100, 500, 1_000, 2_000, 10_000]) {
    const rows = Array.from({ length: count }, (_, n) => ({ payload: { n }, key: `${count}-${n}` }));
    const startedAt = performance.now();
    await hf.enqueueMany(job, rows);
    took[count] = performance.now() - startedAt;
    process.stdout.write(`${count} keyed jobs in ${Math.round(took[count])} ms\n`);
  }
  process.exitCode = took[10_000] > 30 * took[1_000] ? 1 : 0;
} finally {
  await hf.close();
  await server.remove();
}
