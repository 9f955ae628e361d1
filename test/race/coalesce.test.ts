// A coalescing enqueue that was acknowledged is never lost: not to a settle, a release, a cancel, a crash or a retry
// that meets it. Two connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { claimLane } from "#src/store/jobs/claim.js";
import { insertJobs } from "#src/store/jobs/insert.js";
import { releaseIfRunning } from "#src/store/jobs/release.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { type EndedRun, settleDone, settleRuns } from "#src/store/jobs/settle.js";
import { readNote, savedKeys, saveKeys, writeNote } from "#src/store/notes/notes.js";
import type { Store } from "#src/store/sql.js";
import { type Session, watch } from "../support/locks.ts";
import {
  type Arena,
  claimAll,
  ended,
  EXPIRE,
  type HeldRun,
  holder,
  lane,
  newJob,
  openArena,
  SCHEMA,
  startBlocked,
} from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

const DAY_MS = 86_400_000;
let keys = 0;
const freshKey = (): string => `k${(keys += 1)}`;
const done = (run: { id: string; token: string }) => ({ id: run.id, token: run.token, keepMs: DAY_MS });

async function enqueue(key: string, payload: unknown, store: Store = arena.store) {
  const [result] = await insertJobs(store, [newJob({ coalesceKey: key, payload: JSON.stringify(payload) })], null);
  return result!;
}

/** Claims and finishes everything that is due, and says with which payloads. */
async function drain(): Promise<unknown[]> {
  const payloads: unknown[] = [];
  for (let runs = await claimAll(arena.store); runs.length > 0; runs = await claimAll(arena.store)) {
    payloads.push(...runs.map((run) => run.job.payload));
    await settleRuns(
      arena.store,
      runs.map((run) => ended(run, "done")),
    );
  }
  return payloads;
}

test("an enqueue that commits while the run is being settled makes it run again", async () => {
  const key = freshKey();
  const run = await arena.running({ coalesceKey: key, payload: '"old"' });
  await other.begin();
  expect(await enqueue(key, "new", other.store(SCHEMA))).toMatchObject({ id: run.id, coalesced: true });
  const settling = await startBlocked(arena, other, () => settleDone(arena.store, [done(run)], []), new Set<string>());
  // The careful settle does not wait: it leaves a locked row for later.
  expect(await settleRuns(arena.store, [ended(run, "done")])).toEqual([]);
  await other.commit();
  expect(await settling.result).toEqual(new Set());
  expect(await settleRuns(arena.store, [ended(run, "done")])).toMatchObject([{ verdict: "again" }]);
  expect(await drain()).toEqual(["new"]);
});

test("an enqueue that waited for the settle becomes a job of its own", async () => {
  const key = freshKey();
  const run = await arena.running({ coalesceKey: key, payload: '"old"' });
  await other.begin();
  await settleDone(other.store(SCHEMA), [done(run)], []);
  const enqueuing = watch(enqueue(key, "new"));
  await arena.blocks(other);
  expect(enqueuing.isSettled).toBe(false);
  await other.commit();
  expect(await enqueuing.promise).toMatchObject({ created: true, coalesced: false });
  expect(await drain()).toEqual(["new"]);
});

test("an enqueue that waited for a settle that was rolled back is run afterwards", async () => {
  const key = freshKey();
  const run = await arena.running({ coalesceKey: key, payload: '"old"' });
  await other.begin();
  await settleDone(other.store(SCHEMA), [done(run)], []);
  const enqueuing = enqueue(key, "new");
  await arena.blocks(other);
  await other.rollback();
  expect(await enqueuing).toMatchObject({ id: run.id, coalesced: true });
  expect(await settleDone(arena.store, [done(run)], [])).toEqual(new Set());
  await settleRuns(arena.store, [ended(run, "done")]);
  expect(await drain()).toEqual(["new"]);
});

test("an enqueue that waited for the claim is run after that run", async () => {
  const key = freshKey();
  await enqueue(key, "old");
  const by = holder();
  await other.begin();
  const [job] = await claimLane(other.store(SCHEMA), by, lane(), 5);
  const enqueuing = enqueue(key, "new");
  await arena.blocks(other);
  await other.commit();
  expect(await enqueuing).toMatchObject({ id: job!.id, coalesced: true });
  expect(job!.payload).toBe("old");
  await settleRuns(arena.store, [ended({ id: job!.id, token: by.token, job: job! }, "done")]);
  expect(await drain()).toEqual(["new"]);
});

const OUTCOMES: EndedRun["outcome"][] = ["done", "retry", "dead", "snooze", "release"];
for (const outcome of OUTCOMES) {
  test(`an enqueue during a run that ends as ${outcome} is run, with a full budget`, async () => {
    const key = freshKey();
    const run = await arena.running({ coalesceKey: key, payload: '"old"', attempts: 1 });
    await enqueue(key, "new");
    await settleRuns(arena.store, [ended(run, outcome, { delayMs: 0, error: { name: "Error", message: "no" } })]);
    expect(await arena.live(run.id)).toMatchObject({ state: "pending", payload: "new", rerun: null, attempt: 0 });
    expect(await drain()).toEqual(["new"]);
  });
}

for (const outcome of ["cancelled", "retry"] as const) {
  test(`an enqueue after a cancel outlives the cancelled run (${outcome})`, async () => {
    const key = freshKey();
    const run = await arena.running({ coalesceKey: key, payload: '"old"' });
    await cancelIfOpen(arena.store, [run.id], DAY_MS);
    await enqueue(key, "new");
    await settleRuns(arena.store, [ended(run, outcome)]);
    expect(await drain()).toEqual(["new"]);
    expect(await arena.history(run.id)).toHaveLength(1);
  });
}

test("a cancel takes with it what was waiting to run again", async () => {
  const key = freshKey();
  const run = await arena.running({ coalesceKey: key, payload: '"old"' });
  await enqueue(key, "never");
  await cancelIfOpen(arena.store, [run.id], DAY_MS);
  await settleRuns(arena.store, [ended(run, "cancelled")]);
  expect(await drain()).toEqual([]);
  expect(await arena.history(run.id)).toMatchObject([{ state: "cancelled" }]);
});

test("an enqueue during a run whose worker dies is run", async () => {
  const key = freshKey();
  const run = await arena.overdue({ coalesceKey: key, payload: '"old"' });
  await enqueue(key, "new");
  await expireIfOverdue(arena.store, EXPIRE);
  await other.query(`update ${SCHEMA}.jobs set hold = 0 where id = $1`, [run.id]);
  expect(await drain()).toContain("new");
});

test("an enqueue after a cancel outlives a worker that died meanwhile", async () => {
  const key = freshKey();
  const run = await arena.overdue({ coalesceKey: key, payload: '"old"' });
  await cancelIfOpen(arena.store, [run.id], DAY_MS);
  await enqueue(key, "new");
  await expireIfOverdue(arena.store, EXPIRE);
  await endSetApart(arena.store, 100, DAY_MS);
  expect(await drain()).toEqual(["new"]);
});

test("an enqueue between the third crash and the burial is a new life, not part of the dead job", async () => {
  const key = freshKey();
  const run = await arena.overdue({ coalesceKey: key, payload: '"old"' });
  await other.query(`update ${SCHEMA}.leases set alone = true where token = $1`, [run.token]);
  await other.query(`update ${SCHEMA}.jobs set crash_count = 2 where id = $1`, [run.id]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: run.id, hold: 4 }]);
  await enqueue(key, "new");
  await endSetApart(arena.store, 100, DAY_MS);
  expect(await drain()).toEqual(["new"]);
});

test("an enqueue that came before the third crash is run, not buried", async () => {
  const key = freshKey();
  const run = await arena.overdue({ coalesceKey: key, payload: '"old"' });
  await other.query(`update ${SCHEMA}.leases set alone = true where token = $1`, [run.token]);
  await other.query(`update ${SCHEMA}.jobs set crash_count = 2 where id = $1`, [run.id]);
  await enqueue(key, "new");
  await expireIfOverdue(arena.store, EXPIRE);
  await endSetApart(arena.store, 100, DAY_MS);
  expect(await drain()).toEqual(["new"]);
});

test("a retry of a dead job that waited for an enqueue with its key is superseded", async () => {
  const key = freshKey();
  const id = await arena.dead({ coalesceKey: key, payload: '"old"' });
  await other.begin();
  expect(await enqueue(key, "new", other.store(SCHEMA))).toMatchObject({ created: true });
  const retrying = watch(retryIfDead(arena.store, id));
  await arena.blocks(other);
  expect(retrying.isSettled).toBe(false);
  await other.commit();
  expect(await retrying.promise).toBe("superseded");
  expect(await arena.live(id)).toMatchObject({ state: "dead" });
  expect(await drain()).toEqual(["new"]);
  // Nothing is in its way any more.
  expect(await retryIfDead(arena.store, id)).toBe("retried");
  expect(await drain()).toEqual(["old"]);
});

test("a retry of a dead job that waited for an enqueue that was rolled back goes ahead", async () => {
  const key = freshKey();
  const id = await arena.dead({ coalesceKey: key, payload: '"old"' });
  await other.begin();
  await enqueue(key, "new", other.store(SCHEMA));
  const retrying = retryIfDead(arena.store, id);
  await arena.blocks(other);
  await other.rollback();
  expect(await retrying).toBe("retried");
  expect(await drain()).toEqual(["old"]);
});

test("an enqueue that waited for a retry of the dead job with its key joins it", async () => {
  const key = freshKey();
  const id = await arena.dead({ coalesceKey: key, payload: '"old"' });
  await other.begin();
  expect(await retryIfDead(other.store(SCHEMA), id)).toBe("retried");
  const enqueuing = enqueue(key, "new");
  await arena.blocks(other);
  await other.commit();
  expect(await enqueuing).toMatchObject({ id, coalesced: true });
  expect(await drain()).toEqual(["new"]);
});

test("of many enqueues with one key, during runs that end in every way, the last one is run", async () => {
  const key = freshKey();
  const outcomes: EndedRun["outcome"][] = ["done", "retry", "snooze", "release"];
  const ran: number[] = [];
  let isOver = false;
  const working = (async () => {
    for (
      let turn = 0;
      !isOver ||
      (await arena.watcher.query(`select 1 from ${SCHEMA}.jobs where coalesce_key = $1`, [key])).rowCount > 0;
      turn += 1
    ) {
      for (const run of await claimAll(arena.store)) {
        ran.push((run.job.payload as { n: number }).n);
        const outcome = isOver ? "done" : outcomes[turn % outcomes.length]!;
        for (let settled = false; !settled;)
          settled = (await settleRuns(arena.store, [ended(run, outcome)])).length > 0;
      }
    }
  })();
  for (let n = 0; n < 150; n += 1) await enqueue(key, { n });
  isOver = true;
  await working;
  expect(ran.at(-1)).toBe(149);
});

const ends: [how: string, isAgain: boolean, end: (run: HeldRun) => Promise<unknown>][] = [
  ["is done", true, (run) => settleRuns(arena.store, [ended(run, "done")])],
  ["fails", true, (run) => settleRuns(arena.store, [ended(run, "retry")])],
  ["is given back", true, (run) => settleRuns(arena.store, [ended(run, "release")])],
  ["is taken away", true, (run) => releaseIfRunning(arena.store, [run.id])],
  ["dies with its worker", true, () => expireIfOverdue(arena.store, EXPIRE)],
  ["fails", false, (run) => settleRuns(arena.store, [ended(run, "retry")])],
  ["is given back", false, (run) => settleRuns(arena.store, [ended(run, "release")])],
  ["is taken away", false, (run) => releaseIfRunning(arena.store, [run.id])],
  ["dies with its worker", false, () => expireIfOverdue(arena.store, EXPIRE)],
];
test.each(ends)("what a run noted that %s is forgotten if it was asked for again: %s", async (how, isAgain, end) => {
  const key = freshKey();
  const job = { coalesceKey: key, payload: '"same"' };
  const run = how === "dies with its worker" ? await arena.overdue(job) : await arena.running(job);
  await writeNote(arena.store, run.id, "step", "fetch", '"what there was"');
  await saveKeys(arena.store, run.id, "parts", ["a", "b"]);
  if (isAgain) expect(await enqueue(key, "same")).toMatchObject({ id: run.id, coalesced: true });
  await end(run);
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", rerun: null });
  const kept = {
    note: await readNote(arena.store, run.id, "step", "fetch"),
    keys: await savedKeys(arena.store, run.id, "parts"),
  };
  const all = { note: { value: "what there was" }, keys: new Set(["a", "b"]) };
  expect(kept).toEqual(isAgain ? { note: undefined, keys: new Set() } : all);
  await arena.watcher.query(`delete from ${SCHEMA}.jobs where id = $1`, [run.id]);
  await arena.watcher.query(`delete from ${SCHEMA}.job_notes`);
  await arena.watcher.query(`delete from ${SCHEMA}.job_saved_items`);
});
