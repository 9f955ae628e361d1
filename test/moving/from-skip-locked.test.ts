// The SQL of docs/moving-from-skip-locked.md, as it stands there: there, again, and back.
import { beforeAll, describe, expect, test } from "vitest";
import { Client } from "pg";
import { defineJob } from "#src/job/define-job.js";
import { runDue } from "#src/testing/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { blockOf } from "./page.ts";
import { runSql } from "./run-sql.ts";

const PAGE = "moving-from-skip-locked.md";
const MOVE = blockOf(PAGE, "Move what is open", "sql");
const BACK = blockOf(PAGE, "Going back", "sql");

describe("a table with SKIP LOCKED", () => {
  const bench = useHoldfast("server");
  const ran: string[] = [];
  const mail = defineJob<{ n: string }>("mail.send", { run: (job) => void ran.push(job.payload.n) });
  const tasks = async () =>
    (
      await bench.hf.sql.query<{ n: string; status: string; attempts: number; dedupe_key: string | null }>(
        "select payload ->> 'n' as n, status, attempts, dedupe_key from tasks order by id",
      )
    ).rows;
  const moved = async () =>
    (
      await bench.hf.sql.query<{ n: string; job_id: string }>(
        "select task -> 'payload' ->> 'n' as n, job_id from moved_tasks order by id",
      )
    ).rows;
  const jobOf = async (n: string) => {
    const found = (await moved()).find((each) => each.n === n);
    return found && (await bench.hf.jobs.get(found.job_id));
  };

  beforeAll(async () => {
    await runSql(bench.url, blockOf(PAGE, undefined, "sql"));
    await runSql(
      bench.url,
      `insert into tasks (type, payload, status, priority, attempts, run_at, dedupe_key, last_error) values
        ('mail.send', '{"n": "plain"}', 'pending', 0, 0, now(), null, null),
        ('mail.send', '{"n": "urgent"}', 'pending', -500, 0, now(), null, null),
        ('mail.send', '{"n": "later"}', 'pending', 0, 0, now() + interval '1 hour', null, null),
        ('mail.send', '{"n": "retrying"}', 'pending', 0, 3, now(), null, 'mailbox full'),
        ('mail.send', '{"n": "keyed"}', 'pending', 0, 0, now(), 'order-42', null),
        ('mail.send', '{"n": "repeated"}', 'pending', 0, 0, now(), 'order-43', null),
        ('mail.send', '{"n": "held"}', 'pending', 0, 0, now(), null, null),
        ('mail.send', '{"n": "running"}', 'processing', 0, 1, now(), null, null),
        ('mail.send', '{"n": "done"}', 'done', 0, 1, now(), null, null),
        ('mail.send', '{"n": "exhausted"}', 'pending', 0, 5, now(), null, 'no')`,
    );
  });

  test("what is open is moved, with its tries, its time and its key; what runs, what is held and what ended stays", async () => {
    // A producer that was changed already.
    const before = await bench.hf.enqueue(mail, { n: "repeated" }, { key: "order-43" });
    const holder = new Client({ connectionString: bench.url });
    await holder.connect();
    await holder.query("begin");
    await holder.query("select 1 from tasks where payload ->> 'n' = 'held' for update");
    await runSql(bench.url, MOVE);
    await holder.query("rollback");
    await holder.end();
    expect((await tasks()).map(({ n }) => n)).toEqual(["held", "running", "done", "exhausted"]);
    expect((await moved()).map(({ n }) => n)).toEqual(["plain", "urgent", "later", "retrying", "keyed", "repeated"]);

    expect(await jobOf("plain")).toMatchObject({ kind: "mail.send", status: "ready", attempt: 0, maxAttempts: 5 });
    expect(await jobOf("urgent")).toMatchObject({ priority: 100 });
    expect(await jobOf("later")).toMatchObject({ status: "scheduled" });
    expect(await jobOf("retrying")).toMatchObject({
      status: "retrying",
      attempt: 3,
      lastError: { message: "mailbox full" },
    });
    expect((await jobOf("repeated"))?.id).toBe(before.id);
    expect(await bench.hf.enqueue(mail, { n: "keyed" }, { key: "order-42" })).toMatchObject({ created: false });
  });

  test("again: what was held comes too, and nothing comes twice", async () => {
    await runSql(bench.url, MOVE);
    await runSql(bench.url, MOVE);
    expect(await moved()).toHaveLength(7);
    expect((await bench.hf.jobs.list({ kind: "mail.send", limit: 100 })).jobs).toHaveLength(7);
  });

  test("and back: as it was, with its key free on this side", async () => {
    const { hf } = bench;
    const { rows } = await hf.sql.query<{ job_id: string }>("select job_id from moved_tasks");
    for (const { job_id } of rows) {
      const job = await hf.jobs.get(job_id);
      if (job?.state === "pending") await hf.jobs.cancel(job_id);
    }
    await runSql(bench.url, BACK);
    await runSql(bench.url, BACK);
    expect(await tasks()).toHaveLength(10);
    expect((await tasks()).slice(0, 5)).toMatchObject([
      { n: "plain", status: "pending", attempts: 0 },
      { n: "urgent" },
      { n: "later" },
      { n: "retrying", attempts: 3 },
      { n: "keyed", dedupe_key: "order-42" },
    ]);
    expect(await moved()).toEqual([]);
  });

  test("moved once more, everything runs, once", async () => {
    await runSql(bench.url, MOVE);
    await bench.hf.sql.query("update :schema.jobs set run_at = :schema.clock() where state = 'pending'");
    await runDue(bench.hf, [mail]);
    expect(ran.toSorted()).toEqual(["held", "keyed", "later", "plain", "repeated", "retrying", "urgent"]);
    expect(await bench.hf.enqueue(mail, { n: "keyed" }, { key: "order-42" })).toMatchObject({ created: false });
  });

  test("a name that cannot be one is an error, and then nothing was moved", async () => {
    await runSql(
      bench.url,
      `insert into tasks (type, payload) values ('mail.send', '{"n": "good"}'), ('has a space', '{"n": "bad"}')`,
    );
    await expect(runSql(bench.url, MOVE)).rejects.toThrow("enqueue() kind is 'has a space'.");
    expect((await tasks()).map(({ n }) => n)).toEqual(expect.arrayContaining(["good", "bad"]));
  });
});
