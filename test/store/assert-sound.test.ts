// A rule that cannot fail holds nothing: each kind of damage is seen, and a sound schema passes.
import { describe, expect, test } from "vitest";
import { Fatal } from "#src/job/outcome.js";
import { runDue } from "#src/testing/index.js";
import { assertSound } from "../support/assert-sound.ts";
import { caught, makeHeldKind, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

describe("assertSound", () => {
  const bench = useHoldfast("server");

  /** One of everything: done, dead, cancelled, waiting, running, grouped, keyed, coalesced. */
  async function populate(): Promise<() => Promise<void>> {
    const kind = makeKind<string>({
      run: (job) => {
        if (job.payload === "dies") throw new Fatal("no");
      },
    });
    const held = makeHeldKind<string>();
    await bench.hf.enqueueMany(kind, [{ payload: "works" }, { payload: "dies", key: "d" }]);
    await runDue(bench.hf, [kind]);
    const { id } = await bench.hf.enqueue(kind, "cancelled");
    await bench.hf.jobs.cancel(id);
    await bench.hf.enqueueMany(kind, [
      { payload: "waits", key: "k" },
      { payload: "first", group: "g" },
      { payload: "second", group: "g" },
      { payload: "third", group: "g" },
      { payload: "newest", coalesce: "c" },
    ]);
    await bench.hf.enqueue(held.kind, "runs");
    const worker = await bench.hf.work([held.kind], { concurrency: 1 });
    await held.started();
    return async () => {
      held.release();
      await worker.stop();
    };
  }

  const DAMAGE: [rule: string, sql: string][] = [
    [
      "a job is live or in the history",
      `insert into holdfast.job_history (id, finished_at, created_at, run_at, attempt, max_attempts, claim_count, rank, state,
         kind, queue, payload)
       select id, now(), created_at, run_at, 1, 5, 1, 0, 'cancelled', kind, queue, payload from holdfast.jobs limit 1`,
    ],
    [
      "finished once",
      `insert into holdfast.job_history select (jsonb_populate_record(h, jsonb_build_object('finished_at', h.finished_at + interval '1 second'))).*
       from holdfast.job_history h limit 1`,
    ],
    ["exactly one lease", "delete from holdfast.leases"],
    ["exactly one lease", "update holdfast.jobs set token = token + 1 where state = 'running'"],
    ["held by nothing", "update holdfast.jobs set hold = 1 where state = 'running'"],
    ["a lease lists jobs", "update holdfast.leases set job_ids = job_ids || job_ids"],
    ["a token, a start", "update holdfast.jobs set started_at = null where state = 'running'"],
    ["which lane it is of", "update holdfast.leases set light = true, kind = null"],
    ["among the live", "update holdfast.jobs set state = 'done' where key = 'k'"],
    ["held as dead", "update holdfast.jobs set hold = 3 where key = 'k'"],
    ["held as dead", "update holdfast.jobs set hold = 0 where state = 'dead'"],
    ["budget", "update holdfast.jobs set attempt = max_attempts + 1, claim_count = 99 where state = 'pending'"],
    ["budget", "update holdfast.job_history set claim_count = 0 where state = 'done'"],
    ["a cancel waits", "update holdfast.jobs set cancel_requested_at = now() where state = 'pending'"],
    ["only members of a group", "update holdfast.jobs set hold = 1 where coalesce_key is not null"],
    ["has its row", "delete from holdfast.job_groups"],
    ["the head of a group", "update holdfast.job_groups set head = gen_random_uuid()"],
    ["the head of a group", "update holdfast.jobs set hold = 1 where payload = '\"first\"'"],
    ["everybody else in a group", "update holdfast.jobs set hold = 0 where payload = '\"third\"'"],
    ["places in a group", "update holdfast.jobs set group_seq = 2 where payload = '\"third\"'"],
    ["the ledger knows", "delete from holdfast.job_keys where key = 'k'"],
    ["the ledger knows", "delete from holdfast.job_keys where key = 'd'"],
    ["run again", "update holdfast.jobs set rerun = '1' where key = 'k'"],
    ["a run that happened", "update holdfast.attempts set claim_count = 7"],
    ["says why", "update holdfast.attempts set error = null"],
    ["what is done was started", "update holdfast.job_history set started_at = null where state = 'done'"],
  ];

  test("a sound schema passes, and each kind of damage is named", async () => {
    const finish = await populate();
    await assertSound(bench.db);
    await assertSound(bench.url);
    expect(await caught(assertSound(bench.db, "holdfast", { idle: true }))).toMatchObject({
      message: expect.stringContaining("nothing runs"),
    });
    for (const [rule, damage] of DAMAGE) {
      const undone = new Error("undone");
      const thrown = await caught(
        bench.db.transaction(async (tx) => {
          const { rowCount } = await tx.query(damage);
          expect(rowCount, damage).toBeGreaterThan(0);
          const error = await caught(assertSound({ ...bench.db, query: tx.query.bind(tx) }));
          expect(error, damage).toMatchObject({ message: expect.stringContaining(rule) });
          throw undone;
        }),
      );
      expect(thrown).toBe(undone);
    }
    await finish();
    await assertSound(bench.db, "holdfast", { idle: true });
  });
});
