// The job that follows a death is inserted exactly once, in the commit that marks the death, whoever marks it.
import { describe, expect, test } from "vitest";
import { defineJob } from "#src/job/define-job.js";
import { Fatal } from "#src/job/outcome.js";
import { uuidv7, randomToken } from "#src/shared/uuid.js";
import { endSetApart, expireEverything, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { claimIds, claimSuspect } from "#src/store/jobs/claim.js";
import { runDue } from "#src/testing/index.js";
import { ended as over } from "../support/events.ts";
import { makeKind, uniqueName } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";

interface Death {
  job: { id: string; kind: string; payload: unknown; error: { message: string }; attempt: number };
  payload: unknown;
}

/** Which transaction wrote the newest version of each of these rows. */
async function writtenBy(bench: Bench, ids: string[]): Promise<Set<string>> {
  const { rows } = await bench.db.query<{ xmin: string }>(
    "select xmin::text as xmin from holdfast.jobs where id = any($1)",
    [ids],
  );
  expect(rows).toHaveLength(ids.length);
  return new Set(rows.map(({ xmin }) => xmin));
}

describe.each(TIERS)("onDead, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("gets the job that died, why, and a payload of its own", async () => {
    const told: Death[] = [];
    const giveUp = makeKind<Death>({ run: (job) => void told.push(job.payload) });
    const kind = makeKind({
      run: () => {
        throw new Fatal("no such chat");
      },
    });
    const { id } = await bench.hf.enqueue(
      kind,
      { chat: 7 },
      { onDead: { kind: giveUp.kind, payload: { text: "Sorry." } } },
    );
    await runDue(bench.hf, [kind, giveUp]);
    expect(told).toEqual([
      {
        job: {
          id,
          kind: kind.kind,
          payload: { chat: 7 },
          error: expect.objectContaining({ name: "Fatal", message: "no such chat" }),
          attempt: 1,
        },
        payload: { text: "Sorry." },
      },
    ]);
  });

  test("is inserted in the commit that marks the job dead, and once however often it had failed", async () => {
    const followUp = uniqueName();
    const kind = makeKind({
      attempts: 3,
      backoff: ["0s"],
      run: () => {
        throw new Error("no");
      },
    });
    const { id } = await bench.hf.enqueue(kind, 1, { onDead: { kind: followUp, queue: "notices" } });
    await runDue(bench.hf, [kind]);
    const { jobs } = await bench.hf.jobs.list({ kind: followUp });
    expect(jobs).toMatchObject([{ state: "pending", queue: "notices", attempt: 0 }]);
    expect(await writtenBy(bench, [id, jobs[0]!.id])).toHaveProperty("size", 1);
    // Dying again after a retry is another death.
    await bench.hf.jobs.retry(id);
    await runDue(bench.hf, [kind]);
    expect((await bench.hf.jobs.list({ kind: followUp })).jobs).toHaveLength(2);
  });

  test("does not come when the job succeeds, is cancelled, or is gone", async () => {
    const followUp = uniqueName();
    const kind = makeKind();
    await bench.hf.enqueue(kind, 1, { onDead: { kind: followUp } });
    const { id } = await bench.hf.enqueue(kind, 2, { onDead: { kind: followUp } });
    await bench.hf.jobs.cancel(id);
    await runDue(bench.hf, [kind]);
    expect((await bench.hf.jobs.list({ kind: followUp })).jobs).toEqual([]);
  });

  test("comes once when the job is buried because it crashed its process too often", async () => {
    const followUp = uniqueName();
    const kind = defineJob(uniqueName("crasher"), { run: () => undefined });
    const { id } = await bench.hf.enqueue(kind, { n: 1 }, { onDead: { kind: followUp } });
    const holder = () => ({
      token: randomToken(),
      workerId: uuidv7(),
      leases: JSON.stringify([{ kind: kind.kind, lease_ms: 1_000 }]),
    });
    /** The worker dies: its lease runs out. */
    const crash = async (): Promise<void> => {
      await expireEverything(bench.store);
      await expireIfOverdue(bench.store, { limit: 100, atOnce: true, seenForMs: Infinity });
    };
    expect(await claimIds(bench.store, holder(), [id], [kind.kind], 1)).toHaveLength(1);
    await crash();
    for (let alone = 1; alone <= 3; alone += 1) {
      expect(await claimSuspect(bench.store, holder(), [kind.kind], true)).toHaveLength(1);
      await crash();
    }
    // Several janitors at once, the client's own perhaps among them.
    const ended = await Promise.all([1, 2, 3].map(() => endSetApart(bench.store, 100, null)));
    expect(ended.flat().length).toBeLessThanOrEqual(1);
    expect(await over(bench.hf, id)).toMatchObject({ state: "dead", attempt: 0, lastError: { reason: "crashed" } });
    const { jobs } = await bench.hf.jobs.list({ kind: followUp });
    expect(jobs).toMatchObject([{ payload: { job: { id, error: { reason: "crashed" } } } }]);
    expect(await writtenBy(bench, [id, jobs[0]!.id])).toHaveProperty("size", 1);
  });

  // As they could be stored before they were refused.
  test.each([
    ["many", 5],
    [2.5, 5],
    [99_999_999_999, 5],
    [0, 5],
    [null, 5],
    [3, 3],
  ])(
    "a job that was stored with %s attempts for the one that follows it dies, and is followed",
    async (said, given) => {
      const followUp = uniqueName();
      const kind = makeKind({
        run: () => {
          throw new Fatal("no");
        },
      });
      const { id } = await bench.hf.enqueue(kind, 1, { onDead: { kind: followUp } });
      await bench.db.query("update holdfast.jobs set on_dead = on_dead || $2::jsonb where id = $1", [
        id,
        JSON.stringify({ attempts: said }),
      ]);
      await runDue(bench.hf, [kind]);
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 1 });
      expect((await bench.hf.jobs.list({ kind: followUp })).jobs).toMatchObject([{ maxAttempts: given }]);
    },
  );
});
