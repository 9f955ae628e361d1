// Purging half a million finished jobs while 500 jobs a second flow: how long jobs wait to be claimed, calm and during the
// purge. Ends with exit code 1 if the 99th percentile is more than three times the calm one.
//
//   node test/load/purge.mjs [rows] [postgres-url]
//
// Not part of npm test: it takes two minutes and measures time.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { defineJob, open } from "../../dist/index.js";
import { startPostgres } from "../support/postgres-server.mjs";

const ROWS = Number(process.argv[2] ?? 500_000);
const server = process.argv[3] ? undefined : await startPostgres();
const url = process.argv[3] ?? server.url();
const say = (text) => process.stdout.write(`${text}\n`);

const hf = await open({ database: url });
const client = new pg.Client({ connectionString: url });
await client.connect();
try {
  await client.query(
    `insert into holdfast.job_history (id, finished_at, created_at, run_at, started_at, purge_at, purge_early, token, attempt,
       max_attempts, claim_count, rank, state, kind, queue, payload)
     select gen_random_uuid(), now(), now(), now(), now(), now() + interval '1 day', true, 1, 1, 5, 1, 0, 'done', 'old', 'old',
       jsonb_build_object('n', n, 'text', repeat('x', 100)) from generate_series(1, $1::integer) n`,
    [ROWS],
  );
  await client.query("analyze holdfast.job_history");
  await client.query("checkpoint");

  let waits = [];
  hf.on("job.claimed", ({ waitedMs }) => waits.push(waitedMs));
  const kind = defineJob("flow", { keepDone: "forever", run: () => undefined });
  await hf.work([kind], { concurrency: 50 });
  let flowing = true;
  const flow = (async () => {
    const began = performance.now();
    for (let sent = 0; flowing; sent += 5) {
      await hf.enqueueMany(
        kind,
        Array.from({ length: 5 }, (_, n) => ({ payload: n })),
      );
      const early = began + (sent + 5) * 2 - performance.now();
      if (early > 0) await sleep(early);
    }
  })();

  const measure = async (what, work) => {
    waits = [];
    const began = performance.now();
    await work();
    const seconds = (performance.now() - began) / 1_000;
    const sorted = waits.toSorted((left, right) => left - right);
    const at = (share) => sorted[Math.floor(sorted.length * share)] ?? 0;
    const figures = { p50: at(0.5), p99: at(0.99), max: at(0.99999), perSecond: sorted.length / seconds, seconds };
    say(
      `${what}: ${JSON.stringify(figures, (_, value) => (typeof value === "number" ? Math.round(value * 10) / 10 : value))}`,
    );
    return figures;
  };

  await sleep(5_000);
  const calm = await measure("calm", () => sleep(20_000));
  await client.query("update holdfast.job_history set purge_at = now() - interval '1 second' where kind = 'old'");
  await client.query("vacuum analyze holdfast.job_history");
  await sleep(2_000);
  let purged = 0;
  let slowest = 0;
  const busy = await measure("purging", async () => {
    while (purged < ROWS) {
      const [result] = await hf.janitor.run("purge-finished");
      if (!result.ran) {
        await sleep(500);
        const { rows } = await client.query(
          "select count(*)::integer as left from holdfast.job_history where kind = 'old'",
        );
        purged = ROWS - rows[0].left;
        continue;
      }
      if (result.error) throw new Error(result.error);
      purged += result.rows.done ?? 0;
      slowest = Math.max(slowest, result.tookMs);
    }
  });
  flowing = false;
  await flow;
  const ratio = busy.p99 / calm.p99;
  say(`purged ${purged} of ${ROWS}; claim p99 ${ratio.toFixed(2)} times the calm one`);
  process.exitCode = ratio <= 3 ? 0 : 1;
} finally {
  await client.end();
  await hf.close();
  await server?.remove();
}
