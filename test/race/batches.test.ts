// Two connections, real locks: who is last in a batch, who comes first to it, and that nothing is lost between them.
import { afterEach, beforeEach, expect, test } from "vitest";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { addItems } from "#src/store/batches/add.js";
import { cancelBatch } from "#src/store/batches/cancel.js";
import { feedEnds, readChanges, sequenceChanges } from "#src/store/batches/changes.js";
import { createBatch } from "#src/store/batches/create.js";
import { endHanded } from "#src/store/batches/end-handed.js";
import { endItemsSetApart } from "#src/store/batches/end-items.js";
import { pauseBatch } from "#src/store/batches/pause.js";
import { nextPurgeable, purgeItems, purgeRest, purgeReturns } from "#src/store/batches/purge.js";
import { readBatch } from "#src/store/batches/read.js";
import { resumeBatch } from "#src/store/batches/resume.js";
import { retryFailedStep } from "#src/store/batches/retry-failed.js";
import { type ItemRun, settleItems } from "#src/store/batches/settle.js";
import { startBatch } from "#src/store/batches/start.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { claimIds, claimLane } from "#src/store/jobs/claim.js";
import type { Store } from "#src/store/sql.js";
import { type Arena, holder, lane, LEASE_MS, openArena, SCHEMA } from "./arena.ts";

let arena: Arena;
beforeEach(async () => {
  arena = await openArena();
});
afterEach(() => arena.close());

const KIND = "race.batch";

async function makeBatch(
  items: number,
  more: { concurrency?: number; total?: number; open?: boolean } = {},
): Promise<string> {
  const id = uuidv7();
  await createBatch(arena.store, {
    id,
    kind: KIND,
    queue: "default",
    rank: 0,
    attempts: 2,
    concurrency: more.concurrency ?? 10,
    outcomes: '{"done":{}}',
    onDone: '{"kind":"race.after"}',
    fields: "{}",
    owner: "ada",
    key: null,
    total: more.total ?? null,
    keepMs: null,
    keepKeyMs: null,
    openMs: 86_400_000,
    handMs: 86_400_000,
    handTries: 1,
    ackedAs: "done",
  });
  await add(id, items, more.total === undefined && !more.open);
  return id;
}

let writers = 0;
const add = (batchId: string, items: number, close = false, store: Store = arena.store) =>
  addItems(store, {
    batchId,
    writer: `w${++writers}`,
    from: 0,
    items: Array.from({ length: items }, (_, index) => String(index)),
    close,
  });

interface Held {
  id: string;
  token: string;
}

/** The items that have a slot, claimed. */
async function claimed(batchId: string): Promise<Held[]> {
  const { rows } = await arena.watcher.query<{ id: string }>(
    `select id from ${SCHEMA}.jobs where batch_id = $1 and hold = 0 and state = 'pending' order by batch_seq`,
    [batchId],
  );
  const by = holder([KIND]);
  const ids = rows.map((row) => row.id);
  const jobs = await claimIds(arena.store, by, ids, [KIND], ids.length);
  expect(jobs).toHaveLength(ids.length);
  return ids.map((id) => ({ id, token: by.token }));
}

const ending = (run: Held, outcome: ItemRun["outcome"] = "done"): ItemRun => ({
  ...run,
  outcome,
  delayMs: 0,
  label: "done",
  ...(outcome === "dead" ? { error: { name: "Error", message: "no" }, fingerprint: "f" } : {}),
});

const stateOf = async (id: string) => (await readBatch(arena.store, id))!;
const followUps = async (): Promise<number> =>
  (await arena.watcher.query(`select 1 from ${SCHEMA}.jobs where kind = 'race.after'`)).rows.length;

test("two last items are settled by two processes at once: one completion, one follow-up", async () => {
  const id = await makeBatch(2);
  const [first, second] = await claimed(id);
  const session = await arena.session();
  await session.begin();
  expect((await settleItems(session.store(SCHEMA), id, [ending(first!)])).advanced).toMatchObject({ finished: false });
  const other = settleItems(arena.store, id, [ending(second!)]);
  await arena.blocks(session);
  await session.commit();
  expect((await other).advanced).toMatchObject({ finished: true, state: "done" });
  expect(await stateOf(id)).toMatchObject({ state: "done", completions: 1, counts: { done: 2 } });
  expect(await followUps()).toBe(1);
});

test("the first of two last settles is rolled back: the batch is not done until that item has ended too", async () => {
  const id = await makeBatch(2);
  const [first, second] = await claimed(id);
  const session = await arena.session();
  await session.begin();
  await settleItems(session.store(SCHEMA), id, [ending(first!)]);
  const other = settleItems(arena.store, id, [ending(second!)]);
  await arena.blocks(session);
  await session.rollback();
  expect((await other).advanced).toMatchObject({ finished: false });
  expect(await stateOf(id)).toMatchObject({ state: "running", counts: { running: 1, done: 1 } });
  await settleItems(arena.store, id, [ending(first!)]);
  expect(await stateOf(id)).toMatchObject({ state: "done", completions: 1 });
  expect(await followUps()).toBe(1);
});

test("a run of an item that is not its owner any more ends nothing, whichever way it ends", async () => {
  const id = await makeBatch(3);
  const [first] = await claimed(id);
  const before = (await stateOf(id)).version;
  for (const outcome of ["done", "dead", "retry", "release"] as const) {
    const old = { ...ending(first!, outcome), token: randomToken() };
    expect(await settleItems(arena.store, id, [old])).toEqual({ items: [], advanced: undefined });
  }
  expect((await stateOf(id)).version).toBe(before);
  expect((await settleItems(arena.store, id, [ending(first!)])).items).toHaveLength(1);
});

test("a settle that is sent again after a lost answer changes nothing", async () => {
  const id = await makeBatch(3);
  const [first] = await claimed(id);
  expect((await settleItems(arena.store, id, [ending(first!)])).items).toHaveLength(1);
  const before = (await stateOf(id)).version;
  expect(await settleItems(arena.store, id, [ending(first!)])).toEqual({ items: [], advanced: undefined });
  expect((await stateOf(id)).version).toBe(before);
});

test.each(["commit", "rollback"] as const)(
  "a late writer adds the next item while the last one is settled (%s)",
  async (how) => {
    const id = await makeBatch(1, { open: true });
    const [only] = await claimed(id);
    const session = await arena.session();
    await session.begin();
    await add(id, 1, true, session.store(SCHEMA));
    const settling = settleItems(arena.store, id, [ending(only!)]);
    await arena.blocks(session);
    await session[how]();
    expect((await settling).advanced).toMatchObject({ finished: false });
    const batch = await stateOf(id);
    expect(batch).toMatchObject(how === "commit" ? { added: 2, closed: true } : { added: 1, closed: false });
    expect(batch.state).toBe("running");
  },
);

test("the last declared item arrives while another is settled: it has a slot, and the batch is not done", async () => {
  const id = await makeBatch(1, { total: 2, concurrency: 1 });
  const [first] = await claimed(id);
  const session = await arena.session();
  await session.begin();
  await settleItems(session.store(SCHEMA), id, [ending(first!)]);
  const adding = add(id, 1);
  await arena.blocks(session);
  await session.commit();
  expect((await adding).advanced).toMatchObject({ given: 1, finished: false });
  const [second] = await claimed(id);
  await settleItems(arena.store, id, [ending(second!)]);
  expect(await stateOf(id)).toMatchObject({ state: "done", completions: 1 });
});

test("a cancel comes before a result: the result is not published; it comes after: the result stays", async () => {
  for (const isFirst of [true, false]) {
    const id = await makeBatch(5, { concurrency: 2 });
    const [first, second] = await claimed(id);
    const session = await arena.session();
    await session.begin();
    const inside = session.store(SCHEMA);
    const settle = (store: Store) => settleItems(store, id, [ending(first!)]);
    if (isFirst) await cancelBatch(inside, id, null);
    else await settle(inside);
    const other = isFirst ? settle(arena.store) : cancelBatch(arena.store, id, null);
    await arena.blocks(session);
    await session.commit();
    await other;
    const batch = await stateOf(id);
    expect(batch).toMatchObject({ state: "cancelled", counts: { done: isFirst ? 0 : 1 } });
    // What else ran, or was given a slot by the settle, has ended or is told.
    const told = await arena.leases();
    if (isFirst) expect(told.flatMap((lease) => lease.cancel_ids)).toEqual(expect.arrayContaining([second!.id]));
    await settleItems(arena.store, id, [ending(second!)]);
    expect((await stateOf(id)).finishedAt).not.toBeNull();
    expect(await followUps()).toBe(0);
  }
});

test("a claim that meets a pause takes nothing that the pause has parked", async () => {
  const id = await makeBatch(3);
  const session = await arena.session();
  await session.begin();
  await pauseBatch(session.store(SCHEMA), id, null);
  // In a hurry it does not lock before it updates: it waits for the pause, or gives up.
  const claiming = claimLane(arena.store, holder([KIND]), lane(KIND), 10, true).catch(() => []);
  await new Promise((resolve) => setTimeout(resolve, 10));
  await session.commit();
  expect(await claiming).toEqual([]);
  expect(await claimLane(arena.store, holder([KIND]), lane(KIND), 10)).toEqual([]);
  await resumeBatch(arena.store, id, null);
  expect(await claimLane(arena.store, holder([KIND]), lane(KIND), 10)).toHaveLength(3);
});

test("a retry of what failed meets the settle of the last item: the batch is done once, and goes on", async () => {
  const id = await makeBatch(2);
  const [first, second] = await claimed(id);
  await settleItems(arena.store, id, [ending(first!, "dead")]);
  const session = await arena.session();
  await session.begin();
  expect((await settleItems(session.store(SCHEMA), id, [ending(second!)])).advanced).toMatchObject({ finished: true });
  const retrying = retryFailedStep(arena.store, id, null, true);
  await arena.blocks(session);
  await session.commit();
  expect(await retrying).toMatchObject({ was: "done", retried: 1 });
  expect(await stateOf(id)).toMatchObject({ state: "running", completions: 1, counts: { error: 0, done: 1 } });
  const [again] = await claimed(id);
  await settleItems(arena.store, id, [ending(again!)]);
  expect(await stateOf(id)).toMatchObject({ state: "done", completions: 2 });
});

/** A batch of failed items whose retention is over in so many milliseconds. */
async function failedBatch(items: number, purgeInMs: number): Promise<string> {
  const id = await makeBatch(items);
  await settleItems(
    arena.store,
    id,
    (await claimed(id)).map((run) => ending(run, "dead")),
  );
  await arena.watcher.query(
    `update ${SCHEMA}.batches set purge_at = clock_timestamp() + $2 * interval '1 millisecond' where id = $1`,
    [id, purgeInMs],
  );
  return id;
}

test("a retry of what failed comes before a purge of its batch: nothing of it is purged, and the items run", async () => {
  const id = await failedBatch(3, 500);
  const session = await arena.session();
  await session.begin();
  expect(await retryFailedStep(session.store(SCHEMA), id, null, true)).toMatchObject({ retried: 3, isOver: false });
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(await nextPurgeable(arena.store)).toEqual({ id, most: 3 });
  const purging = purgeItems(arena.store, id, 3, 1_000);
  await arena.blocks(session);
  await session.commit();
  expect(await purging).toBe(0);
  expect(await purgeReturns(arena.store, id, 1_000)).toBe(0);
  expect(await purgeRest(arena.store, id)).toBe(false);
  await settleItems(
    arena.store,
    id,
    (await claimed(id)).map((run) => ending(run)),
  );
  expect(await stateOf(id)).toMatchObject({ state: "done", total: 3, counts: { done: 3, error: 0 } });
});

test("a retry of what failed that waits for a purge of a part of its batch is refused", async () => {
  // Not over yet when the retry is sent.
  const id = await failedBatch(3, 500);
  const session = await arena.session();
  await session.begin();
  await session.query(`select 1 from ${SCHEMA}.batches where id = $1 for update`, [id]);
  const retrying = retryFailedStep(arena.store, id, null, true);
  await arena.blocks(session);
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(await purgeItems(session.store(SCHEMA), id, 3, 2)).toBe(2);
  await session.commit();
  expect(await retrying).toMatchObject({ isOver: true, retried: 0, advanced: undefined });
  expect(await purgeItems(arena.store, id, 1, 2)).toBe(1);
  expect(await purgeRest(arena.store, id)).toBe(true);
  expect(await purgeRest(arena.store, id)).toBe(false);
});

test("a settle of items ends its lease only if no run of it is left", async () => {
  const id = await makeBatch(3, { concurrency: 2 });
  const [first, second] = await claimed(id);
  const lease = { token: first!.token, leaseMs: LEASE_MS };
  const session = await arena.session();
  await session.begin();
  // Its handler's own transaction has its row.
  await session.query(`select 1 from ${SCHEMA}.jobs where id = $1 for update`, [second!.id]);
  const settled = await settleItems(arena.store, id, [ending(first!), ending(second!)], [lease]);
  expect(settled.items.map((item) => item.id)).toEqual([first!.id]);
  expect((await arena.leases()).map(({ token }) => token)).toEqual([first!.token]);
  await session.rollback();
  await settleItems(arena.store, id, [ending(second!)], [lease]);
  expect(await arena.leases()).toEqual([]);
});

test.each(["running", "paused"] as const)(
  "items whose lease ran out while PostgreSQL was away go back to their batch, which is %s: unsuspected, uncharged, and counted",
  async (state) => {
    const id = await makeBatch(3, { concurrency: 2 });
    await arena.watcher.query(`update ${SCHEMA}.batches set keep_ms = 1000 where id = $1`, [id]);
    const [first] = await claimed(id);
    await startBatch(arena.store, id);
    if (state === "paused") await pauseBatch(arena.store, id, null);
    await arena.watcher.query(
      `update ${SCHEMA}.leases set lease_ms = 1000, expires_at = pg_postmaster_start_time() - interval '1 second'`,
    );
    const careful = { limit: 100, seenForMs: Infinity, atOnce: false };
    expect(await expireIfOverdue(arena.store, careful)).toHaveLength(2);
    await endItemsSetApart(arena.store, 100);
    const hold = state === "paused" ? 7 : 0;
    expect(await arena.live(first!.id)).toMatchObject({
      state: "pending",
      token: null,
      hold,
      attempt: 0,
      crash_count: 0,
    });
    expect(await stateOf(id)).toMatchObject({ state, counts: { pending: 3, running: 0 } });
    await arena.sound();
    if (state === "paused") await resumeBatch(arena.store, id, null);
    for (let left = 3; left > 0;) {
      const runs = await claimed(id);
      left -= runs.length;
      await settleItems(
        arena.store,
        id,
        runs.map((run) => ending(run)),
      );
    }
    expect(await stateOf(id)).toMatchObject({ state: "done", counts: { done: 3 } });
  },
);

test("two devices ack one item: the second is told what the first said", async () => {
  const id = await makeBatch(1);
  const [only] = await claimed(id);
  await settleItems(arena.store, id, [{ ...ending(only!), outcome: "handed", parcelId: uuidv7() }]);
  const session = await arena.session();
  const ack = (store: Store, outcome: string) => endHanded(store, { batchId: id, seq: 1, outcome, by: null });
  await session.begin();
  expect(await ack(session.store(SCHEMA), "done")).toMatchObject({ outcome: "done", changed: true });
  const other = ack(arena.store, "error");
  await arena.blocks(session);
  await session.commit();
  expect(await other).toMatchObject({ outcome: "done", changed: false });
  expect(await stateOf(id)).toMatchObject({ state: "done", counts: { done: 1, error: 0 } });
});

test("the feed: what commits late comes later, and is not skipped", async () => {
  const [slow, quick] = [await makeBatch(1), await makeBatch(1)];
  await sequenceChanges(arena.store);
  const { last } = await feedEnds(arena.store);
  const session = await arena.session();
  await session.begin();
  await pauseBatch(session.store(SCHEMA), slow, null);
  await pauseBatch(arena.store, quick, null);
  await sequenceChanges(arena.store);
  const first = await readChanges(arena.store, last!, 10, undefined);
  expect(first.map((change) => change.batchId)).toEqual([quick]);
  await session.commit();
  await sequenceChanges(arena.store);
  const later = await readChanges(arena.store, first.at(-1)!.seq, 10, undefined);
  expect(later.map((change) => change.batchId)).toEqual([slow]);
});

test("twelve settlers, pausers and resumers of one batch at once: every item ends once", async () => {
  const id = await makeBatch(300, { concurrency: 12 });
  const isDone = async (): Promise<boolean> => (await stateOf(id)).state === "done";
  const work = async (): Promise<void> => {
    while (!(await isDone())) {
      const by = holder([KIND]);
      const jobs = await claimLane(arena.store, by, lane(KIND), 3);
      if (jobs.length > 0) {
        await settleItems(
          arena.store,
          id,
          jobs.map((job) => ending({ id: job.id, token: by.token })),
        );
      }
    }
  };
  const disturb = async (): Promise<void> => {
    while (!(await isDone())) {
      await pauseBatch(arena.store, id, null);
      await resumeBatch(arena.store, id, null);
    }
  };
  await Promise.all([...Array.from({ length: 10 }, work), disturb(), disturb()]);
  expect(await stateOf(id)).toMatchObject({ ended: 300, counts: { done: 300 }, completions: 1 });
  expect(await followUps()).toBe(1);
});
