// node test/load/dashboard.mjs: with a million jobs in the history, a hundred thousand waiting and ten thousand dead, every
// question that a screen asks is answered in under 300 ms. Starts a PostgreSQL of its own, or uses TEST_DATABASE_URL.
import pg from "pg";
import { open } from "../../dist/index.js";
import { serve } from "../../dist/http/index.js";
import { startPostgres } from "../support/postgres-server.mjs";

const FINISHED = Number(process.env.FINISHED ?? 1_000_000);
const WAITING = Number(process.env.WAITING ?? 100_000);
const DEAD = Number(process.env.DEAD ?? 10_000);
const MOST_MS = 300;
const TOKEN = "a-token-for-the-load-of-the-dashboard";

const own = process.env.TEST_DATABASE_URL === undefined ? await startPostgres() : null;
const url = process.env.TEST_DATABASE_URL ?? own.url();
const hf = await open({ database: url, schema: "dashboard_load" });
const client = new pg.Client({ connectionString: url });
await client.connect();
const server = await serve({ hf, kinds: [], port: 0, token: TOKEN });
try {
  await hf.sql
    .query(`insert into dashboard_load.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, hold, state, last_error)
    select ('0000000a-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now() - interval '1 hour', now(), 5, 0, 'kind.' || n % 20,
      'queue.' || n % 10, jsonb_build_object('user', n), case when n <= ${DEAD} then 3 else 0 end,
      (case when n <= ${DEAD} then 'dead' else 'pending' end)::dashboard_load.job_state,
      case when n <= ${DEAD} then jsonb_build_object('name', 'Error', 'message', 'no ' || n, 'fingerprint', 'f' || n % 7) end
    from generate_series(1, ${WAITING + DEAD}) as n`);
  await hf.sql
    .query(`insert into dashboard_load.job_history (id, finished_at, created_at, run_at, started_at, token, attempt, max_attempts,
      claim_count, rank, state, kind, queue, payload)
    select ('0000000b-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
      date_trunc('day', now(), 'UTC') + (n % 3) * interval '1 day' + n * interval '1 millisecond', now(), now(), now(), n, 1, 5, 1, 0, 'done',
      'kind.' || n % 20, 'queue.' || n % 10, '{}' from generate_series(1, ${FINISHED}) as n`);
  await hf.sql
    .query(`insert into dashboard_load.run_counts (width, at, queue, kind, outcome, runs, wait_ms, run_ms, waits, durations)
    select 60, date_trunc('minute', now()) - m * interval '1 minute', 'queue.' || k % 10, 'kind.' || k, 'done', 100, 1000, 1000,
      array_fill(3, array[32]), array_fill(3, array[32]) from generate_series(0, 2800) as m cross join generate_series(0, 19) as k`);
  await client.query("analyze dashboard_load.jobs; analyze dashboard_load.job_history");
  await hf.janitor.run("measure-queues");

  const hour = new Date(Date.now() - 3_600_000).toISOString();
  const day = new Date(Date.now() - 86_400_000).toISOString();
  const ASKED = [
    "overview",
    "me",
    "system",
    "queues",
    "workers",
    "janitor",
    "janitor/history",
    "errors",
    "dead",
    "actions",
    "inbox",
    "batches",
    "jobs",
    "jobs?status=dead",
    "jobs?status=running",
    "jobs?status=retrying",
    "jobs?status=done",
    "jobs?kind=kind.3&queue=queue.3",
    "jobs?kind=nobody",
    "jobs?error=nothing%20like%20it",
    "jobs?key=none",
    "jobs?status=dead&kind=kind.3&fingerprint=f3",
    'jobs?payload={"user":"none"}',
    "jobs/count?status=ready",
    "jobs/count",
    "jobs/count?status=dead",
    `stats?from=${hour}`,
    `stats?from=${day}`,
    `stats/latency?from=${hour}`,
    `stats/latency?from=${day}`,
    `stats/kinds?from=${day}`,
    "jobs/0000000b-0000-7000-8000-00000000ffff",
  ];
  let slow = 0;
  for (const path of ASKED) {
    const times = [];
    for (let n = 0; n < 3; n += 1) {
      const began = performance.now();
      const answer = await fetch(`${server.url}/api/v1/${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
      await answer.text();
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      times.push(performance.now() - began);
    }
    const best = Math.min(...times);
    if (best > MOST_MS) slow += 1;
    process.stdout.write(
      `${best > MOST_MS ? "SLOW" : "    "} ${times.map((ms) => `${Math.round(ms)} ms`.padStart(8)).join("")}  ${path}\n`,
    );
  }
  process.exitCode = slow === 0 ? 0 : 1;
} finally {
  await client.query("drop schema dashboard_load cascade").catch(() => undefined);
  await client.end();
  await server.close();
  await hf.close();
  await own?.stop();
}
