// The SQL of docs/moving-from-pg-boss.md, as it stands there, against pg-boss 12.35.0.
import { beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { runDue } from "#src/testing/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { blockOf } from "./page.ts";
import { peerMissing, runPeer } from "./peers.ts";
import { runSql } from "./run-sql.ts";

const missing = peerMissing("pg-boss");
const MOVE = blockOf("moving-from-pg-boss.md", "Move what is open", "sql");
const BACK = blockOf("moving-from-pg-boss.md", "Going back", "sql");

describe.skipIf(missing)(`pg-boss${missing ? ` (${missing})` : ""}`, () => {
  const bench = useHoldfast("server");
  let seeded: { active: string; running: string; runningData: { n: number } };
  const ran: unknown[] = [];
  const kinds = ["mail.send", "report.build", "ledger.post"].map((name) =>
    defineJob(name, { run: (job) => void ran.push(job.payload) }),
  );
  const open = async () =>
    (
      await bench.hf.sql.query<{ name: string; state: string; data: unknown }>(
        "select name, state::text, data from pgboss.job where state < 'completed' order by name, created_on",
      )
    ).rows;
  const jobs = async (kind: string) => (await bench.hf.jobs.list({ kind, limit: 100 })).jobs;
  const jobOf = async (n: string) =>
    (await jobs("mail.send")).find(({ payload }) => (payload as { n: string }).n === n);

  beforeAll(async () => {
    seeded = (await runPeer("pg-boss.mjs", bench.url, "seed")) as typeof seeded;
  });

  test("what is open is moved; what runs, what stands behind it and other queues stay", async () => {
    await runSql(bench.url, MOVE);
    expect(await open()).toMatchObject([
      { name: "ledger.post", state: "active", data: { n: 1 } },
      { name: "ledger.post", state: "created", data: { n: 2 } },
      { name: "ledger.post", state: "created", data: { n: 3 } },
      { name: "mail.send", state: "active", data: { n: "active" } },
      { name: "other" },
    ]);
    expect(await jobs("mail.send")).toHaveLength(4);
    expect(await jobOf("plain")).toMatchObject({ status: "ready", attempt: 0, maxAttempts: 5 });
    expect(await jobOf("urgent")).toMatchObject({ priority: 100 });
    expect(await jobOf("later")).toMatchObject({ status: "scheduled" });
    expect(await jobOf("failed")).toMatchObject({
      status: "retrying",
      attempt: 1,
      maxAttempts: 5,
      priority: 50,
      lastError: { message: "mailbox full" },
    });
    expect(await jobs("report.build")).toMatchObject([{ payload: { day: 1 } }]);
    // The key is still that of one open job.
    expect(await bench.hf.enqueue(kinds[1]!, { day: 3 }, { coalesce: "today" })).toMatchObject({ coalesced: true });
    expect(await jobs("ledger.post")).toMatchObject([{ group: "ledger.post:account-2" }, {}]);
  });

  test("again, after the ones that ran have ended: the rest comes, in order, and nothing comes twice", async () => {
    await runSql(bench.url, MOVE);
    expect(await jobs("ledger.post")).toHaveLength(2);
    await runPeer("pg-boss.mjs", bench.url, "complete", `ledger.post/${seeded.running}`);
    await runPeer("pg-boss.mjs", bench.url, "complete", `mail.send/${seeded.active}`);
    await runSql(bench.url, MOVE);
    expect(await open()).toMatchObject([{ name: "other" }]);
    expect(await jobs("ledger.post")).toHaveLength(4);
    expect(await jobs("mail.send")).toHaveLength(4);
  });

  test("and back: pg-boss takes them up where they were", async () => {
    const { rows } = await bench.hf.sql.query<{ job_id: string }>("select job_id from moved_from_pgboss");
    for (const { job_id } of rows) await bench.hf.jobs.cancel(job_id);
    await runSql(bench.url, BACK);
    await runSql(bench.url, BACK);
    expect(await open()).toHaveLength(10);
    // The failed one waits for its time.
    expect(await runPeer("pg-boss.mjs", bench.url, "take")).toEqual([
      expect.objectContaining({ n: "urgent", priority: 500 }),
      expect.objectContaining({ n: "plain", retryCount: 0 }),
    ]);
  });

  test("moved for good, all of it runs, once, and groups in order", async () => {
    await runSql(bench.url, "update pgboss.job set state = 'created' where state = 'active'");
    await runSql(bench.url, MOVE);
    await bench.hf.sql.query("update :schema.jobs set run_at = :schema.clock() where state = 'pending'");
    await runDue(bench.hf, kinds);
    const mails = ran.flatMap((each) => (each as { n?: unknown }).n ?? []);
    expect(mails.filter((n) => typeof n === "string").sort()).toEqual(["failed", "later", "plain", "urgent"]);
    expect(mails.filter((n) => n === 2 || n === 3)).toEqual([2, 3]);
    expect(mails.filter((n) => n === 4 || n === 5)).toEqual([4, 5]);
    expect(ran).toContainEqual({ day: 1 });
  });
});
