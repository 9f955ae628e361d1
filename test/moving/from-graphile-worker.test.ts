// The SQL of docs/moving-from-graphile-worker.md, as it stands there, against graphile-worker 0.18.0.
import { beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { runDue } from "#src/testing/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { blockOf } from "./page.ts";
import { peerMissing, runPeer } from "./peers.ts";
import { runSql } from "./run-sql.ts";

const missing = peerMissing("graphile-worker");
const MOVE = blockOf("moving-from-graphile-worker.md", "Move what is open", "sql");
const BACK = blockOf("moving-from-graphile-worker.md", "Going back", "sql");

describe.skipIf(missing)(`graphile-worker${missing ? ` (${missing})` : ""}`, () => {
  const bench = useHoldfast("server");
  const ran: unknown[] = [];
  const kinds = ["mail.send", "report.build", "ledger.post"].map((name) =>
    defineJob(name, { run: (job) => void ran.push(job.payload) }),
  );
  const open = async () =>
    (
      await bench.hf.sql.query<{ data: unknown }>(
        `select t.identifier as name, j.payload as data from graphile_worker._private_jobs j
         join graphile_worker._private_tasks t on t.id = j.task_id order by t.identifier, j.id`,
      )
    ).rows;
  const jobs = async (kind: string) => (await bench.hf.jobs.list({ kind, limit: 100 })).jobs;
  const jobOf = async (n: string) =>
    (await jobs("mail.send")).find(({ payload }) => (payload as { n: string }).n === n);

  beforeAll(async () => {
    await runPeer("graphile-worker.mjs", bench.url, "seed");
  });

  test("what is open is moved; what runs, what stands behind it and other tasks stay", async () => {
    await runSql(bench.url, MOVE);
    expect(await open()).toMatchObject([
      { name: "ledger.post", data: { n: 1 } },
      { name: "ledger.post", data: { n: 2 } },
      { name: "ledger.post", data: { n: 3 } },
      { name: "mail.send", data: { n: "active" } },
      { name: "other" },
    ]);
    expect(await jobOf("plain")).toMatchObject({ status: "ready", attempt: 0, maxAttempts: 25 });
    expect(await jobOf("urgent")).toMatchObject({ priority: 100 });
    expect(await jobOf("later")).toMatchObject({ status: "scheduled" });
    expect(await jobOf("failed")).toMatchObject({
      status: "retrying",
      attempt: 1,
      maxAttempts: 5,
      lastError: { message: expect.stringContaining("mailbox full") as string },
    });
    expect(await jobs("report.build")).toMatchObject([{ payload: { day: 2 } }]);
    expect(await bench.hf.enqueue(kinds[1]!, { day: 3 }, { coalesce: "today" })).toMatchObject({ coalesced: true });
    expect(await jobs("ledger.post")).toMatchObject([{ group: "account-2" }, { group: "account-2" }]);
  });

  test("again, after the ones that ran have ended: the rest comes, and nothing comes twice", async () => {
    await runSql(bench.url, MOVE);
    expect(await jobs("ledger.post")).toHaveLength(2);
    await runPeer("graphile-worker.mjs", bench.url, "unlock");
    await runSql(bench.url, MOVE);
    expect(await open()).toMatchObject([{ name: "other" }]);
    expect(await jobs("ledger.post")).toHaveLength(4);
    expect(await jobOf("active")).toMatchObject({ attempt: 1, lastError: { message: "again" } });
  });

  test("and back: graphile-worker runs what is due", async () => {
    const { rows } = await bench.hf.sql.query<{ job_id: string }>("select job_id from moved_from_graphile_worker");
    for (const { job_id } of rows) await bench.hf.jobs.cancel(job_id);
    await runSql(bench.url, BACK);
    await runSql(bench.url, BACK);
    expect(await open()).toHaveLength(11);
    const taken = (await runPeer("graphile-worker.mjs", bench.url, "run")) as { n?: unknown; day?: number }[];
    expect(taken[0]).toMatchObject({ n: "urgent", attempts: 1 });
    expect(taken).toHaveLength(8);
  });

  test("moved for good, what is left runs, once", async () => {
    await runSql(bench.url, MOVE);
    await bench.hf.sql.query("update :schema.jobs set run_at = :schema.clock() where state = 'pending'");
    await runDue(bench.hf, kinds);
    expect(ran.map((each) => (each as { n: string }).n).sort()).toEqual(["failed", "later"]);
    expect(await open()).toMatchObject([{ name: "other" }]);
  });
});
