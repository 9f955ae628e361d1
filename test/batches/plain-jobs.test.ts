// A job that is no item and has the name of a batch's kind: from SQL, or because onDead or onDone names it. Nobody can run it,
// so it ends dead at once and says why; it must not disturb the worker, and no batch hears of it.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { Fatal } from "#src/job/outcome.js";
import type { Holdfast } from "#src/index.js";
import { collect } from "../support/events.ts";
import { makeKind, uniqueName } from "../support/make.ts";
import { soon } from "../support/soon.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);
  const sql = async (kind: string, more = ""): Promise<string> =>
    (await bench.hf.sql.query<{ id: string }>(`select id from :schema.enqueue($1${more})`, [kind])).rows[0]!.id;
  const dead = { state: "dead", claimCount: 1, lastError: { name: "Fatal", code: "HOLDFAST_KIND_UNKNOWN" } };

  test.each([
    ["no payload", ""],
    ["an object", `, '{"a": 1}'`],
    ["what an item's looks like", `, '{"batch": "01890000-0000-7000-8000-000000000000", "seq": 1, "item": 1}'`],
  ])("a plain enqueue of a batch kind from SQL, with %s, ends dead at once and says what to do", async (_, payload) => {
    const { hf } = bench;
    const batch = defineBatch<number>(uniqueName("batch"), { run: () => undefined });
    const heard = collect(hf, "job.dead");
    const worker = await hf.work([batch], { poll: "50ms" });
    const id = await sql(batch.kind, payload);
    await soon(() => hf.jobs.get(id)).toMatchObject(dead);
    expect((await hf.jobs.get(id))!.lastError!.message).toContain("hf.batches.create");
    expect(heard.events.map(({ jobId }) => jobId)).toEqual([id]);
    // The worker goes on, and a person may put it away.
    const made = await hf.batches.create(batch, [1, 2]);
    expect(await hf.batches.wait(made.id, { timeout: "20s" })).toMatchObject({ state: "done" });
    await hf.jobs.discard(id);
    await worker.stop();
  });

  test("a follower of a death, or of a batch, that is a batch's kind ends dead the same way", async () => {
    const { hf } = bench;
    const batch = defineBatch<number>(uniqueName("batch"), { run: () => undefined });
    const failing = makeKind({
      run() {
        throw new Fatal("no");
      },
    });
    const worker = await hf.work([batch, failing], { poll: "50ms" });
    await hf.enqueue(failing, 1, { onDead: { kind: batch.kind } });
    await hf.batches.create(batch, [1], { onDone: { kind: batch.kind } });
    await soon(() => followersOf(hf, batch.kind)).toMatchObject([dead, dead]);
    await worker.stop();
  });

  test("it ends dead also while its queue is paused and let in again", async () => {
    const { hf } = bench;
    const queue = uniqueName("queue");
    const batch = defineBatch<number>(uniqueName("batch"), { queue, run: () => undefined });
    await hf.queues.pause(queue);
    const worker = await hf.work([batch], { poll: "50ms" });
    const id = await sql(batch.kind, `, queue => '${queue}'`);
    await soon(async () => (await hf.jobs.get(id))!.claimCount).toBe(1);
    await soon(async () => (await hf.jobs.get(id))!.status).toBe("paused");
    await hf.queues.resume(queue);
    await soon(async () => (await hf.jobs.get(id))!.state).toBe("dead");
    await worker.stop();
  });
});

const followersOf = async (hf: Holdfast, kind: string): Promise<unknown[]> =>
  (await hf.jobs.list({ kind, status: "dead" })).jobs;
