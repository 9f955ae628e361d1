// holdfast.enqueue() is hf.enqueue() for SQL: the same rows, the same answers, the same refusals. On both tiers.
import { describe, expect, test } from "vitest";
import { Client } from "pg";
import type { EnqueueOptions } from "#src/client/new-job.js";
import { runDue } from "#src/testing/index.js";
import { ended } from "../support/events.ts";
import { makeHeldKind, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { blocksOf } from "../moving/page.ts";
import { runSql } from "../moving/run-sql.ts";

interface Answer {
  id: string;
  created: boolean;
  conflict: boolean;
  coalesced: boolean;
}

describe.each(TIERS)("enqueue() in SQL, %s", (tier) => {
  const bench = useHoldfast(tier);
  const ask = async (kind: string, payload: unknown, more = "", values: unknown[] = []): Promise<Answer> => {
    const { rows } = await bench.hf.sql.query<Answer>(`select * from :schema.enqueue($1, $2::jsonb${more})`, [
      kind,
      JSON.stringify(payload),
      ...values,
    ]);
    return rows[0]!;
  };
  /** Everything about a job but its id and its times. */
  const rowOf = async (id: string): Promise<unknown> => {
    const { rows } = await bench.hf.sql.query<{ row: unknown }>(
      `select to_jsonb(j) - '{id,created_at,run_at}'::text[]
         || jsonb_build_object('due_in_s', round(extract(epoch from j.run_at - j.created_at))) as row
       from :schema.jobs j where id = $1`,
      [id],
    );
    return rows[0]?.row;
  };

  const cases: [string, EnqueueOptions, string][] = [
    ["nothing", {}, ""],
    ["priority and queue", { priority: 7, queue: "slow" }, ", priority => 7, queue => 'slow'"],
    ["attempts", { attempts: 9 }, ", attempts => 9"],
    ["a delay", { delay: "90s" }, ", delay => '90s'"],
    ["a time", { runAt: "2077-01-01T00:00:00Z" }, ", run_at => '2077-01-01T00:00:00Z'"],
    ["headers", { headers: { traceparent: "x" } }, `, headers => '{"traceparent": "x"}'`],
    ["onDead", { onDead: { kind: "tell", payload: 1 } }, `, on_dead => '{"kind": "tell", "payload": 1}'`],
    ["a coalescing key", { coalesce: "c" }, ", coalesce_key => 'c'"],
  ];
  test.each(cases)("with %s it stores what the client stores", async (_, options, more) => {
    const payload = { text: "für 😀", list: [1, null, { deep: true }] };
    const [one, other] = [makeKind(), makeKind()];
    const first = await bench.hf.enqueue(one, payload, options);
    const second = await ask(other.kind, payload, more);
    expect(second).toMatchObject({ created: true, conflict: false, coalesced: false });
    expect(second.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
    const kindless = (row: unknown) => ({ ...(row as object), kind: "", run_at: "" });
    if (!options.runAt) expect(kindless(await rowOf(second.id))).toEqual(kindless(await rowOf(first.id)));
    else expect((await bench.hf.jobs.get(second.id))?.runAt).toEqual((await bench.hf.jobs.get(first.id))?.runAt);
    await bench.hf.jobs.cancel(first.id);
    await bench.hf.jobs.cancel(second.id);
  });

  test("a key is one job, whoever asks and in whichever way; another payload is a conflict", async () => {
    const kind = makeKind();
    const first = await ask(kind.kind, { n: 1 }, ", key => 'k'");
    expect(await bench.hf.enqueue(kind, { n: 1 }, { key: "k" })).toEqual({ ...first, created: false });
    expect(await ask(kind.kind, { n: 1 }, ", key => 'k'")).toEqual({ ...first, created: false });
    expect(await ask(kind.kind, { n: 2 }, ", key => 'k'")).toEqual({ ...first, created: false, conflict: true });
    await runDue(bench.hf, [kind]);
    expect(await ask(kind.kind, { n: 1 }, ", key => 'k'")).toEqual({ ...first, created: false });
    const { rows } = await bench.hf.sql.query<{ days: number; forever: boolean }>(
      `select round(extract(epoch from expires_at - created_at) / 86400)::int as days, expires_at is null as forever
       from :schema.job_keys where job_id = any ($1::uuid[]) order by 1`,
      [[first.id, (await ask(kind.kind, 1, ", key => 'for ever', keep_key => null")).id]],
    );
    expect(rows).toEqual([
      { days: 30, forever: false },
      { days: null, forever: true },
    ]);
    await runDue(bench.hf, [kind]);
  });

  test("it coalesces with what waits, and runs again after what runs", async () => {
    const held = makeHeldKind<{ n: number }>();
    const first = await bench.hf.enqueue(held.kind, { n: 1 }, { coalesce: "c", delay: "1h" });
    expect(await ask(held.kind.kind, { n: 2 }, ", coalesce_key => 'c'")).toMatchObject({
      id: first.id,
      coalesced: true,
    });
    const worker = await bench.hf.work([held.kind]);
    await held.started();
    expect(held.runs[0]!.payload).toEqual({ n: 2 });
    expect(await ask(held.kind.kind, { n: 3 }, ", coalesce_key => 'c'")).toMatchObject({
      id: first.id,
      coalesced: true,
    });
    held.release();
    await held.started(2);
    held.release();
    await ended(bench.hf, first.id);
    await worker.stop();
    expect(held.runs.map(({ payload }) => payload)).toEqual([{ n: 2 }, { n: 3 }]);
  });

  test("a group keeps its order, with jobs of both ways in it, and many of one statement keep theirs", async () => {
    const ran: unknown[] = [];
    const kind = makeKind({ run: (job) => void ran.push(job.payload) });
    await ask(kind.kind, 1, ", group_key => 'g'");
    await bench.hf.enqueue(kind, 2, { group: "g" });
    await bench.hf.sql.query(
      "select count(e.id) from generate_series(3, 6) n, lateral :schema.enqueue($1, to_jsonb(n), group_key => 'g') e",
      [kind.kind],
    );
    await runDue(bench.hf, [kind]);
    expect(ran).toEqual([1, 2, 3, 4, 5, 6]);
    const { rows } = await bench.hf.sql.query<{ id: string }>(
      "select e.id from generate_series(1, 50) n, lateral :schema.enqueue($1, to_jsonb(n)) e",
      [kind.kind],
    );
    const ids = rows.map(({ id }) => id);
    // The embedded database's clock knows no microseconds.
    if (tier === "server") expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(50);
    await runDue(bench.hf, [kind]);
  });

  test("a job with a past goes on from there", async () => {
    const kind = makeKind({
      run: () => {
        throw new Error("still");
      },
    });
    const { id } = await ask(kind.kind, 1, ", attempts => 3, attempts_used => 2, last_error => 'it was full'");
    expect(await bench.hf.jobs.get(id)).toMatchObject({
      status: "retrying",
      attempt: 2,
      lastError: { message: "it was full" },
    });
    await runDue(bench.hf, [kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 3 });
    await bench.hf.jobs.discard(id);
  });

  const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  const refused: [string, string, EnqueueOptions | undefined, unknown?][] = [
    [", priority => 101", "priority is 101.", { priority: 101 }],
    [", queue => 'a b'", "queue is", { queue: "a b" }],
    [", attempts => 0", "attempts is 0.", { attempts: 0 }],
    [", attempts => 1001", "attempts is 1001.", { attempts: 1_001 }],
    [", key => ''", "key is 0 characters long.", { key: "" }],
    [", key => repeat('x', 501)", "key is 501 characters long.", { key: "x".repeat(501) }],
    [", coalesce_key => 'a', key => 'b'", "together with key.", { coalesce: "a", key: "b" }],
    [", coalesce_key => 'a', group_key => 'b'", "together with group", { coalesce: "a", group: "b" }],
    [", run_at => now(), delay => '1s'", "has both", { runAt: new Date(), delay: "1s" }],
    [", run_at => 'infinity'", "run_at is infinity.", undefined],
    [", delay => '-1s'", "delay is", { delay: "-1s" as "1s" }],
    [", delay => '9000 years'", "delay is 9000 years.", undefined],
    [", delay => '170000 years'", "delay is 170000 years.", undefined],
    [`, on_dead => '{"kind": "a b"}'`, "on_dead.kind is", undefined],
    [`, on_dead => '["a"]'`, "on_dead.kind is null.", undefined],
    [`, on_dead => '{"kind": "a", "attempts": "many"}'`, "on_dead has the unknown field 'attempts'.", undefined],
    [", attempts_used => 5", "attempts_used is 5.", undefined],
    ["", "nested deeper than 200", {}, JSON.parse(deep(201))],
    ["", "at most 10485760 are taken.", {}, "x".repeat(10_485_761)],
  ];
  test.each(refused)("what the client refuses is refused%s", async (more, message, options, payload = 1) => {
    const kind = makeKind();
    await expect(ask(kind.kind, payload, more)).rejects.toMatchObject({
      code: "22023",
      message: expect.stringContaining(message) as string,
    });
    if (options) await expect(bench.hf.enqueue(kind, payload, options)).rejects.toThrow();
  });

  test("a kind must be one; 200 levels are not too deep, and 10 MiB not too much", async () => {
    await expect(ask("a b", 1)).rejects.toThrow("enqueue() kind is 'a b'.");
    const kind = makeKind();
    await ask(kind.kind, JSON.parse(deep(200)));
    await ask(kind.kind, "x".repeat(10_485_758));
    await runDue(bench.hf, [kind]);
  });
});

describe("enqueue() in SQL, from elsewhere", () => {
  const bench = useHoldfast("server");

  test("a worker that polls hardly ever is woken with the commit, and nothing comes of a rollback", async () => {
    const kind = makeKind();
    const worker = await bench.hf.work([kind], { poll: "1h" });
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    await client.query("begin");
    await client.query("select holdfast.enqueue($1)", [kind.kind]);
    await client.query("rollback");
    await client.query("begin");
    const { rows } = await client.query<{ id: string }>("select id from holdfast.enqueue($1)", [kind.kind]);
    expect(await bench.hf.jobs.get(rows[0]!.id)).toBeUndefined();
    await client.query("commit");
    await client.end();
    await ended(bench.hf, rows[0]!.id);
    await worker.stop();
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(1);
  });

  test("every block of docs/enqueue-from-sql.md runs as it stands, and is one job", async () => {
    await runSql(bench.url, "create table orders (id bigint primary key)");
    const blocks = blocksOf("enqueue-from-sql.md", "sql");
    expect(blocks).toHaveLength(3);
    for (const block of blocks) await runSql(bench.url, block);
    await runSql(bench.url, "insert into orders values (7)");
    const { jobs } = await bench.hf.jobs.list({ kind: "mail.send" });
    expect(jobs.map(({ payload }) => payload)).toEqual(
      expect.arrayContaining([{ to: "ada@example.com" }, { to: "ada@example.com", order: 42 }, { order: 7 }]),
    );
    expect(jobs).toHaveLength(3);
  });
});
