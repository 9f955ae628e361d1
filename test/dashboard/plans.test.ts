// No question of the dashboard walks through a table that grows. Every route that it reads is asked over HTTP, on tables as a
// busy system has them, and the plans are those that really ran: the database hands them over as notices (auto_explain), and they
// are read off the wire between the server and its database.
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { defineJob } from "#src/job/define-job.js";
import { type HttpServer, serve } from "#src/http/index.js";
import { openTest, type TestHoldfast } from "#src/testing/open-test.js";
import { ROUTES } from "../../dashboard/src/api/routes.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type PlanNode, readPlan, rowsOf } from "../support/explain.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { NoticeReader } from "../support/notice-reader.ts";

const TOKEN = "a-token-for-the-plans-of-the-dashboard";
const FINISHED = 200_000;
const WAITING = 30_000;
/** A table with fewer rows is read faster without an index. */
const LARGE = 1_000;
/** What a search looks at, with much to spare; and far from all there is. */
const MOST_ROWS = 150_000;

const GROW = `
  insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, hold, state, last_error, attempt)
  select ('0000000a-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now() + (n % 3 - 1) * interval '1 hour', now(), 5, 0,
    'kind.' || n % 20, 'queue.' || n % 10, jsonb_build_object('user', n), case when n % 10 = 0 then 3 else 0 end,
    (case when n % 10 = 0 then 'dead' else 'pending' end)::holdfast.job_state,
    case when n % 5 = 0 then jsonb_build_object('name', 'Error', 'message', 'no ' || n, 'fingerprint', 'f' || n % 7) end, n % 5
  from generate_series(1, ${WAITING}) as n;
  insert into holdfast.job_history (id, finished_at, created_at, run_at, started_at, token, attempt, max_attempts, claim_count, rank,
    state, kind, queue, payload)
  select ('0000000b-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
    date_trunc('day', now(), 'UTC') + (n % 3) * interval '1 day' + n * interval '1 millisecond', now(), now(), now(), n, 1, 5, 1, 0,
    'done', 'kind.' || n % 20, 'queue.' || n % 10, '{}' from generate_series(1, ${FINISHED}) as n;
  insert into holdfast.attempts (job_id, claim_count, attempt, started_at, failed_at, outcome, error)
  select ('0000000a-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 1, now(), now(), 'retry', '{}'
  from generate_series(1, 20000) as n;
  insert into holdfast.job_keys (kind, key, job_id, payload_hash, created_at, expires_at)
  select 'kind.1', 'key ' || n, gen_random_uuid(), gen_random_uuid(), now(), now() + interval '1 day' from generate_series(1, 20000) as n;
  insert into holdfast.run_counts (width, at, queue, kind, outcome, runs, wait_ms, run_ms, waits, durations)
  select 60, date_trunc('minute', now()) - m * interval '1 minute', 'queue.' || k % 10, 'kind.' || k, 'done', 100, 1000, 1000,
    array_fill(3, array[32]), array_fill(3, array[32]) from generate_series(0, 2800) as m cross join generate_series(0, 9) as k;
  insert into holdfast.queue_depths (queue, minute, taken_at, ready, scheduled, retrying, running, dead, paused, estimated)
  select 'queue.' || k, date_trunc('minute', now()) - m * interval '1 minute', now() - m * interval '1 minute', 1, 1, 1, 1, 1, 0, false
  from generate_series(0, 2800) as m cross join generate_series(0, 9) as k;
  insert into holdfast.errors (kind, fingerprint, queue, name, message, last_job_id, first_seen_at, last_seen_at)
  select 'kind.' || n % 20, 'f' || n, 'queue.1', 'Error', 'no', gen_random_uuid(), now(), now() - n * interval '1 second'
  from generate_series(1, 5000) as n;
  insert into holdfast.error_counts (kind, fingerprint, at, retries, deaths)
  select 'kind.' || n % 20, 'f' || n, now() - m * interval '10 minutes', 1, 1
  from generate_series(1, 5000) as n cross join generate_series(1, 10) as m;
  insert into holdfast.audit (at, caller, action, target, status)
  select now(), 'ada', 'cancelJob', '/jobs/' || n, 200 from generate_series(1, 50000) as n;
  insert into holdfast.chore_runs (chore, started_at, took_ms, rows, run_by)
  select 'chore-' || n % 20, now(), 1, '{"done": 1}', 'me' from generate_series(1, 50000) as n;
  insert into holdfast.actions (id, verb, filter, title, state, asked_by, created_at, below)
  select ('0000000c-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'retry', '{}', 'retry', 'done', 'ada', now(), gen_random_uuid()
  from generate_series(1, 5000) as n;
  insert into holdfast.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name, acked_at, removed_at)
  select gen_random_uuid(), 'r' || n % 50, now(), now() + interval '1 day', now() + interval '1 hour', 10, 10,
    decode(repeat('00', 32), 'hex'), 'x', now(), now() from generate_series(1, 50000) n;
  insert into holdfast.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name)
  select gen_random_uuid(), 'r' || n % 50, now(), now() + interval '1 day', now() + interval '1 day', 10, 10,
    decode(repeat('00', 32), 'hex'), 'x' from generate_series(1, 2000) n;
  insert into holdfast.inboxes (recipient, touched_at, acked_count) select 'r' || n, now(), 1000 from generate_series(1, 50000) n;
  insert into holdfast.job_notes (job_id, sort, name, value, written_at)
  select ('0000000a-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'step', 'one', '1', now() from generate_series(1, 20000) n`;

const waits = defineJob("kind.1", { queue: "queue.1", run: () => null });
const items = defineBatch<number>("plans.batch", { concurrency: 10, run: () => undefined });

describe("with tables that have grown", () => {
  let database: TestDatabase;
  let wire: TcpProxy;
  let hf: TestHoldfast;
  let server: HttpServer;
  let batch: string;
  let large: Set<string>;
  let plans: PlanNode[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    const client = new Client({ connectionString: database.url });
    await client.connect();
    for (const [name, value] of Object.entries({
      session_preload_libraries: "auto_explain",
      "auto_explain.log_min_duration": "0",
      "auto_explain.log_nested_statements": "on",
      "auto_explain.log_analyze": "on",
      "auto_explain.log_timing": "off",
      "auto_explain.log_format": "json",
      "auto_explain.log_level": "notice",
    })) {
      await client.query(`alter database "${database.name}" set ${name} = '${value}'`);
    }
    wire = await startTcpProxy(database.url);
    const notices = new NoticeReader();
    wire.onData(({ direction, data, connection }) => {
      if (direction === "to-client") {
        for (const text of notices.read(connection, data)) plans.push(...(readPlan(text) ?? []));
      }
      return "pass";
    });
    hf = await openTest({ database: wire.through(database.url) });
    await client.query(`set synchronous_commit = off; ${GROW}`);
    batch = (
      await hf.batches.create(
        items,
        Array.from({ length: 5_000 }, (_, n) => n),
      )
    ).id;
    for (let n = 0; n < 20; n += 1) await hf.batches.create(items, [n]);
    await client.query("analyze");
    const { rows } = await client.query<{ name: string }>(
      "select relname as name from pg_class where relnamespace = 'holdfast'::regnamespace and reltuples >= $1",
      [LARGE],
    );
    large = new Set(rows.map(({ name }) => name));
    await client.end();
    server = await serve({ hf, kinds: [waits, items], port: 0, token: TOKEN });
  }, 180_000);
  afterAll(async () => {
    await server.close();
    await hf.close();
    await wire.close();
    await database.drop();
  });

  async function ask(path: string): Promise<{ lines: string[]; visited: number }> {
    plans = [];
    const answer = await fetch(`${server.url}/api/v1/${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(answer.status, `${path}: ${await answer.text()}`).toBe(200);
    const nodes = plans.filter((node) => large.has(node["Relation Name"] ?? ""));
    return {
      lines: nodes.map((node) => `${node["Node Type"]} on ${node["Relation Name"]}: ${rowsOf(node)}`),
      visited: nodes.reduce((sum, node) => sum + rowsOf(node), 0),
    };
  }

  // A day is half of what there is by the minute: that is read with or without an index.
  const from = new Date(Date.now() - 6 * 3_600_000).toISOString();
  const jobId = "0000000a-0000-7000-8000-000000000bb8";
  /** With the queries that the screens make. */
  const asked = (): string[] => [
    "me",
    "overview",
    "system",
    "queues",
    `stats?from=${from}`,
    `stats?from=${from}&queue=queue.1`,
    `stats/latency?from=${from}`,
    `stats/latency?from=${from}&queue=queue.1`,
    `stats/kinds?from=${from}&queue=queue.1`,
    "jobs?limit=50",
    `jobs?limit=50&cursor=${jobId}`,
    ...["scheduled", "ready", "running", "retrying", "stuck", "paused", "done", "dead", "cancelled"].map(
      (status) => `jobs?status=${status}&limit=50`,
    ),
    "jobs?kind=kind.3&queue=queue.3",
    "jobs?kind=nobody",
    "jobs?error=nothing%20like%20it",
    "jobs?key=none",
    "jobs?group=none",
    "jobs?leastAttempts=3&olderThan=5m",
    'jobs?payload={"user":"none"}',
    "jobs?status=dead&kind=kind.0&fingerprint=f3",
    "jobs/count",
    "jobs/count?status=ready",
    "jobs/count?status=dead&kind=kind.0&fingerprint=f3",
    `jobs/${jobId}`,
    "keys?kind=kind.1&key=key%207",
    "kinds",
    "actions",
    "actions/0000000c-0000-7000-8000-000000000007",
    "batches",
    "batches?state=done",
    `batches/${batch}`,
    `batches/${batch}/items?limit=50`,
    `batches/${batch}/items?limit=50&state=error`,
    `batches/${batch}/errors`,
    "errors?limit=5",
    "errors",
    "dead",
    "workers",
    "inbox",
    "inbox/r5/parcels",
    "inbox/r5/parcels?state=acked",
    "janitor",
    "janitor/history?limit=50",
    "janitor/history?chore=chore-3&limit=50",
    "janitor/preview?chore=purge-finished",
    "audit?limit=25",
    "apps",
  ];

  test("every route that the dashboard reads is asked, downloads apart", () => {
    const patterns = Object.entries(ROUTES)
      .filter(([name, route]) => route.startsWith("GET ") && !name.startsWith("export"))
      .map(([, route]) => new RegExp(`^${route.slice("GET /api/v1/".length).replace(/:\w+/g, "[^/?]+")}(\\?|$)`));
    for (const pattern of patterns)
      expect(
        asked().some((path) => pattern.test(path)),
        String(pattern),
      ).toBe(true);
  });

  test("the reading itself works: a walk through a table is seen", async () => {
    plans = [];
    await hf.sql.query("select count(*) from holdfast.audit where caller = 'bob'");
    expect(plans.map((node) => `${node["Node Type"]} ${node["Relation Name"]}`)).toContain("Seq Scan audit");
    expect([...large]).toEqual(expect.arrayContaining(["jobs", "audit", "run_counts", "batch_items", "parcels"]));
  });

  test("no table that grows is walked through, and what is read is bounded", { timeout: 120_000 }, async () => {
    const wrong: string[] = [];
    for (const path of asked()) {
      const { lines, visited } = await ask(path);
      const walks = lines.filter((line) => /^(Parallel )?Seq Scan.*: [1-9]/.test(line));
      if (walks.length > 0 || visited > MOST_ROWS)
        wrong.push(`${path} reads ${visited}: ${(walks.length > 0 ? walks : lines).join("; ")}`);
    }
    expect(wrong).toEqual([]);
  });
});
