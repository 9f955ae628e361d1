// Light claims, which are written in their lease row only, against everything else that wants their jobs. Real
// connections, real locks.
import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import {
  type ClaimedJob,
  claimedByToken,
  claimIds,
  claimLane,
  claimLanes,
  type Holder,
} from "#src/store/jobs/claim.js";
import { claimLight, LIGHT_BYTES } from "#src/store/jobs/claim-light.js";
import { lockIfHeld } from "#src/store/jobs/fence.js";
import { findJobs } from "#src/store/jobs/find.js";
import { lookAhead, lookBack } from "#src/store/jobs/look.js";
import { markTokens } from "#src/store/jobs/mark.js";
import { progressIfRunning } from "#src/store/jobs/progress.js";
import { readJob } from "#src/store/jobs/read.js";
import { settleClaim, settleDone, settleLightClaim, settleRuns, whyNotSettled } from "#src/store/jobs/settle.js";
import type { Store } from "#src/store/sql.js";
import { countDepths } from "#src/store/stats/depths.js";
import { type Session, watch } from "../support/locks.ts";
import { type Arena, EXPIRE, holder, lane, LEASE_MS, openArena, SCHEMA, startBlocked, unlessLocked } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterEach(async () => {
  try {
    await arena.sound();
  } finally {
    await arena.watcher.query(
      `truncate ${SCHEMA}.jobs, ${SCHEMA}.leases, ${SCHEMA}.job_history, ${SCHEMA}.job_groups, ${SCHEMA}.attempts`,
    );
  }
});
afterAll(() => arena.close());

const KIND = { leaseMs: LEASE_MS, attempts: 5, queue: "default" };
const DAY_MS = 86_400_000;
const lease = (token: string) => ({ token, leaseMs: LEASE_MS });
const light = async (store: Store, by: Holder, limit = 100, from = lane()): Promise<ClaimedJob[]> =>
  (await claimLight(store, by, from, KIND, limit)).jobs;
const plain = (count: number): object[] => Array.from({ length: count }, () => ({}));
const idsOf = (jobs: readonly { id: string }[]): string[] => jobs.map((job) => job.id).toSorted();

interface Taken {
  by: Holder;
  ids: string[];
}

async function taken(count: number): Promise<Taken> {
  const ids = await arena.insert(plain(count));
  const by = holder();
  expect(idsOf(await light(arena.store, by))).toEqual(ids.toSorted());
  return { by, ids };
}

test("claimers of every sort at once never share a job and leave none", async () => {
  const ids = await arena.insert(plain(900));
  const claims: Taken[] = [];
  const ways: ((by: Holder) => Promise<ClaimedJob[]>)[] = [
    (by) => light(arena.store, by, 9),
    (by) => light(arena.store, by, 5),
    (by) => light(arena.store, by, 17),
    (by) => unlessLocked(claimLane(arena.store, by, lane(), 7, true), []),
    (by) => claimLane(arena.store, by, lane(), 7),
    (by) => claimLanes(arena.store, by, [lane(), lane("race.two")], 7, 7),
    (by) => claimIds(arena.store, by, ids.toReversed().slice(0, 400), ["race"], 3),
  ];
  let takenLightly = 0;
  let takenInAll = 0;
  await Promise.all(
    Array.from({ length: 14 }, async (_, n) => {
      // Claimers that share jobs would never find the lane empty.
      for (let empty = 0; empty < 12 && takenInAll <= ids.length;) {
        const by = holder();
        const jobs = await ways[n % ways.length]!(by);
        empty = jobs.length === 0 ? empty + 1 : 0;
        takenInAll += jobs.length;
        if (jobs.length > 0) claims.push({ by, ids: jobs.map((job) => job.id) });
        if (n % ways.length < 3) takenLightly += jobs.length;
        for (const job of jobs) expect(job).toMatchObject({ attempt: 1, max_attempts: 5, kind: "race", rank: 0 });
      }
    }),
  );
  // The light ones give way to the others; what those that ask for certain ids left is for one more of them.
  const last = holder();
  const rest = await claimLane(arena.store, last, lane(), 1_000);
  claims.push({ by: last, ids: rest.map((job) => job.id) });
  const all = claims.flatMap((claim) => claim.ids);
  expect(all.toSorted()).toEqual(ids.toSorted());
  expect(takenLightly).toBeGreaterThan(0);
  await arena.sound();
  for (const claim of claims) {
    if (claim.ids.length === 0) continue;
    expect(await settleClaim(arena.store, lease(claim.by.token), claim.ids, DAY_MS, true)).toBe(true);
  }
  await arena.drained();
  expect(await arena.leases()).toEqual([]);
  const { rows } = await arena.watcher.query(
    `select count(*)::integer as jobs from ${SCHEMA}.job_history
     where state = 'done' and attempt = 1 and claim_count = 1 and started_at is not null`,
  );
  expect(rows).toEqual([{ jobs: 900 }]);
});

test("two light claims one after the other take different jobs, from any place", async () => {
  const ids = await arena.insert(plain(10));
  const first = await light(arena.store, holder(), 4);
  const second = await light(arena.store, holder(), 4);
  const third = await light(arena.store, holder(), 4, {
    ...lane(),
    fromUs: first.at(-1)!.run_us,
    fromId: first.at(-1)!.id,
  });
  expect(idsOf([...first, ...second, ...third])).toEqual(ids.toSorted());
  expect(first.map((job) => job.id)).toEqual(ids.slice(0, 4));
});

test("a light claim takes nothing while another claim, or a cancel, is being committed in its lane", async () => {
  const ids = await arena.insert(plain(3));
  for (const busy of [
    () => light(other.store(SCHEMA), holder()),
    () => claimLane(other.store(SCHEMA), holder(), lane(), 1),
    () => claimIds(other.store(SCHEMA), holder(), ids.slice(0, 1), ["race"], 1),
    () => cancelIfOpen(other.store(SCHEMA), ids.slice(0, 1), DAY_MS),
  ]) {
    await other.begin();
    await busy();
    expect(await light(arena.store, holder())).toEqual([]);
    await other.rollback();
  }
  expect(await light(arena.store, holder())).toHaveLength(3);
});

test("a light claim takes nothing if one of the jobs has a group or a coalesce key", async () => {
  for (const special of [{ group: "g" }, { coalesceKey: "c" }]) {
    await arena.insert([{}, special, {}]);
    expect(await light(arena.store, holder())).toEqual([]);
    expect(await arena.leases()).toEqual([]);
    // Nothing special among the first.
    expect(await light(arena.store, holder(), 1)).toHaveLength(1);
    await arena.watcher.query(`truncate ${SCHEMA}.jobs, ${SCHEMA}.leases, ${SCHEMA}.job_groups`);
  }
});

test("a light claim takes as many as its answer has room for, and none if they are too big", async () => {
  const payload = (length: number): string => JSON.stringify(randomBytes(length / 2).toString("hex"));
  const ids = await arena.insert(Array.from({ length: 100 }, () => ({ payload: payload(1_600) })));
  const first = await claimLight(arena.store, holder(), lane(), KIND, 100);
  expect(first.isFull).toBe(true);
  expect(first.jobs.length).toBeGreaterThan(20);
  expect(first.jobs.length * 1_600).toBeLessThan(LIGHT_BYTES);
  // What to ask for next: an answer that is made once.
  expect(first.fits).toBeGreaterThan(20);
  expect(first.fits).toBeLessThanOrEqual(first.jobs.length);
  expect(first.jobs.map((job) => job.id)).toEqual(ids.slice(0, first.jobs.length));
  const second = await light(arena.store, holder(), 50);
  expect(second[0]!.id).toBe(ids[first.jobs.length]);
  // Long, and long but stored in few bytes.
  for (const [rank, text] of [payload(3_000_000), JSON.stringify("a".repeat(50_000))].entries()) {
    await arena.insert([{ payload: text, rank: rank + 5 }]);
    const none = await claimLight(arena.store, holder(), lane("race", rank + 5), KIND, 50);
    expect(none).toMatchObject({ jobs: [], isFull: false });
  }
});

test("an ordinary claim that comes during a light one waits for it and takes the others", async () => {
  const ids = await arena.insert(plain(6));
  await other.begin();
  const theirs = await light(other.store(SCHEMA), holder(), 4);
  const claiming = watch(claimLane(arena.store, holder(), lane(), 10));
  await arena.blocks(other);
  expect(claiming.isSettled).toBe(false);
  await other.commit();
  const mine = await claiming.promise;
  expect(mine).toHaveLength(2);
  expect(idsOf([...theirs, ...mine])).toEqual(ids.toSorted());
});

test("a cancel that comes during a light claim waits for it, and reaches the run", async () => {
  const [id] = await arena.insert(plain(3));
  const by = holder();
  await other.begin();
  expect(await light(other.store(SCHEMA), by)).toHaveLength(3);
  const cancelling = watch(cancelIfOpen(arena.store, [id!], DAY_MS));
  await arena.blocks(other);
  expect(cancelling.isSettled).toBe(false);
  await other.commit();
  expect(await cancelling.promise).toMatchObject([{ id, how: "requested", token: by.token }]);
  expect(await arena.leases()).toMatchObject([{ token: by.token, cancel_ids: [id] }]);
});

test("a job cancelled in time is not in the light claim that follows", async () => {
  const ids = await arena.insert(plain(3));
  expect(await cancelIfOpen(arena.store, [ids[1]!], DAY_MS)).toMatchObject([{ how: "cancelled" }]);
  expect(idsOf(await light(arena.store, holder()))).toEqual(ids.toSpliced(1, 1).toSorted());
});

test("a settle of a light claim keeps others from marking it; afterwards there is nothing to mark", async () => {
  const { by, ids } = await taken(3);
  await other.begin();
  expect(await settleClaim(other.store(SCHEMA), lease(by.token), ids, DAY_MS, true)).toBe(true);
  const marking = await startBlocked(arena, other, () => markTokens(arena.store, [by.token]), undefined);
  const cancelling = watch(cancelIfOpen(arena.store, [ids[0]!], DAY_MS));
  await other.commit();
  await marking.result;
  expect(await cancelling.promise).toEqual([]);
  expect(await arena.history(ids[0]!)).toMatchObject([{ state: "done", token: by.token }]);
});

test("a settle of some of a light claim keeps others from marking the rest meanwhile", async () => {
  const { by, ids } = await taken(3);
  await other.begin();
  expect(await settleClaim(other.store(SCHEMA), lease(by.token), ids.slice(0, 1), DAY_MS, false)).toBe(true);
  const marking = await startBlocked(arena, other, () => markTokens(arena.store, [by.token]), undefined);
  await other.commit();
  await marking.result;
  await markTokens(arena.store, [by.token]);
  expect(await arena.live(ids[1]!)).toMatchObject({ state: "running", attempt: 1 });
});

test("a settle that waited for the marking settles the ordinary way", async () => {
  const { by, ids } = await taken(3);
  await other.begin();
  await markTokens(other.store(SCHEMA), [by.token]);
  const settling = await startBlocked(
    arena,
    other,
    () => settleClaim(arena.store, lease(by.token), ids, DAY_MS, true),
    false,
  );
  await other.commit();
  if (!(await settling.result)) expect(await settleClaim(arena.store, lease(by.token), ids, DAY_MS, true)).toBe(true);
  const { rows } = await arena.watcher.query(`select attempt, claim_count from ${SCHEMA}.job_history`);
  expect(rows).toEqual(Array.from({ length: 3 }, () => ({ attempt: 1, claim_count: 1 })));
});

test("a light claim that somebody keeps out for longer than a moment takes nothing, and says why", async () => {
  await arena.insert(plain(3));
  await other.begin();
  const by = holder();
  const { jobs } = await claimLight(other.store(SCHEMA), by, lane(), KIND, 2);
  expect(jobs).toHaveLength(2);
  expect(await claimLight(arena.store, holder(), lane(), KIND, 2)).toMatchObject({ jobs: [], isBlocked: true });
  await other.commit();
  expect(await claimLight(arena.store, holder(), lane(), KIND, 2)).toMatchObject({ jobs: [{}], isBlocked: false });
  expect(await claimLight(arena.store, holder(), lane(), KIND, 2)).toMatchObject({ jobs: [], isBlocked: false });
});

test("a settle of a whole light claim ends just what its lease names, once", async () => {
  const [{ by, ids }, later] = [await taken(3), await taken(2)];
  expect(await settleLightClaim(arena.store, lease(by.token), 3, DAY_MS)).toBe(true);
  expect(await arena.leases()).toMatchObject([{ token: later.by.token }]);
  for (const id of ids) expect(await arena.history(id)).toMatchObject([{ state: "done", token: by.token }]);
  for (const id of later.ids) expect(await arena.live(id)).toMatchObject({ state: "pending" });
  expect(await settleLightClaim(arena.store, lease(by.token), 3, DAY_MS)).toBe(false);
});

test("a settle of a whole light claim ends that of its own token, whatever others of the same size there are", async () => {
  const [older, mine, younger] = [await taken(3), await taken(3), await taken(3)];
  expect(await settleLightClaim(arena.store, lease(mine.by.token), 3, DAY_MS)).toBe(true);
  for (const id of mine.ids) expect(await arena.history(id)).toMatchObject([{ state: "done", token: mine.by.token }]);
  // It is over: sent again, or by somebody whose lease was lost, it ends nothing of the others.
  expect(await settleLightClaim(arena.store, lease(mine.by.token), 3, DAY_MS)).toBe(false);
  expect((await arena.leases()).map(({ token }) => token).toSorted()).toEqual(
    [older.by.token, younger.by.token].toSorted(),
  );
  for (const id of [...older.ids, ...younger.ids]) {
    expect(await arena.live(id)).toMatchObject({ state: "pending" });
    expect(await arena.history(id)).toEqual([]);
  }
});

test.each([2, 4])("a settle of a whole light claim that names 3 does nothing for somebody who ran %i", async (runs) => {
  const { by, ids } = await taken(3);
  expect(await settleLightClaim(arena.store, lease(by.token), runs, DAY_MS)).toBe(false);
  expect(await arena.leases()).toHaveLength(1);
  for (const id of ids) expect(await arena.live(id)).toMatchObject({ state: "pending" });
});

test("a settle of a whole light claim does nothing when it has been marked: one of its jobs may be somebody else's", async () => {
  const { by, ids } = await taken(3);
  await markTokens(arena.store, [by.token]);
  expect(await settleLightClaim(arena.store, lease(by.token), 3, DAY_MS)).toBe(false);
  for (const id of ids) expect(await arena.live(id)).toMatchObject({ state: "running", token: by.token });
});

test("a settle of some leaves the others under the lease", async () => {
  const { by, ids } = await taken(4);
  expect(await settleClaim(arena.store, lease(by.token), ids.slice(0, 2), DAY_MS, false)).toBe(true);
  await arena.sound();
  expect(await light(arena.store, holder())).toEqual([]);
  expect(await claimLane(arena.store, holder(), lane(), 10)).toEqual([]);
  expect(await claimLanes(arena.store, holder(), [lane(), lane("race.two")], 10, 10)).toEqual([]);
  expect(await claimIds(arena.store, holder(), ids, ["race"], 10)).toEqual([]);
  expect(await settleClaim(arena.store, lease(by.token), ids.slice(2), DAY_MS, true)).toBe(true);
});

test("a settle sent twice settles once, and is told so", async () => {
  const { by, ids } = await taken(2);
  expect(await settleClaim(arena.store, lease(by.token), ids, DAY_MS, true)).toBe(true);
  expect(await settleClaim(arena.store, lease(by.token), ids, DAY_MS, true)).toBe(false);
  const why = await whyNotSettled(
    arena.store,
    ids.map((id) => ({ id, token: by.token })),
  );
  expect([...why.values()]).toEqual(["done", "done"]);
});

test("nothing but plain success is accepted of a light claim before it is marked", async () => {
  const { by, ids } = await taken(1);
  const [id] = ids;
  const run = { id: id!, token: by.token, keepMs: DAY_MS };
  const failed = {
    ...run,
    keepEndedMs: DAY_MS,
    outcome: "retry" as const,
    delayMs: 0,
    group: null,
    error: { name: "Error", message: "no" },
  };
  expect(await settleDone(arena.store, [run], [])).toEqual(new Set());
  expect(await settleRuns(arena.store, [failed])).toEqual([]);
  const progress = [{ id: id!, token: by.token, done: 1, total: null, note: null }];
  expect(await progressIfRunning(arena.store, progress)).toEqual(new Set());
  expect(await lockIfHeld(arena.store, { ...run, leaseMs: LEASE_MS })).toBe(false);
  await markTokens(arena.store, [by.token]);
  await markTokens(arena.store, [by.token]);
  expect(await progressIfRunning(arena.store, progress)).toEqual(new Set([id]));
  expect(await lockIfHeld(arena.store, { ...run, leaseMs: LEASE_MS })).toBe(true);
  expect(await settleRuns(arena.store, [failed])).toMatchObject([{ verdict: "retry" }]);
});

test("a light claim that ran out is recovered, and its run is refused from then on", async () => {
  const { by, ids } = await taken(3);
  await arena.watcher.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second'`);
  const expired = await expireIfOverdue(arena.store, EXPIRE);
  expect(idsOf(expired)).toEqual(ids.toSorted());
  expect(await arena.leases()).toEqual([]);
  expect(await arena.live(ids[0]!)).toMatchObject({ state: "pending", hold: 2, attempt: 0, claim_count: 1 });
  expect(await settleClaim(arena.store, lease(by.token), ids, DAY_MS, true)).toBe(false);
  expect(await arena.history(ids[0]!)).toEqual([]);
});

test("a settle that waited for the recovery of its light claim is refused", async () => {
  const { by, ids } = await taken(2);
  await arena.watcher.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second'`);
  await other.begin();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toHaveLength(2);
  const settling = await startBlocked(
    arena,
    other,
    () => settleClaim(arena.store, lease(by.token), ids, DAY_MS, true),
    false,
  );
  await other.commit();
  expect(await settling.result).toBe(false);
  expect(await arena.live(ids[0]!)).toMatchObject({ state: "pending", hold: 2 });
  expect(await arena.history(ids[0]!)).toEqual([]);
});

test("expiry leaves a light claim that is being settled alone", async () => {
  const { by, ids } = await taken(2);
  await arena.watcher.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second'`);
  await other.begin();
  expect(await settleClaim(other.store(SCHEMA), lease(by.token), ids, DAY_MS, true)).toBe(true);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  await other.commit();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  expect(await arena.history(ids[1]!)).toMatchObject([{ state: "done" }]);
});

test("a light claim whose reply was lost can be asked for", async () => {
  const { by, ids } = await taken(3);
  const jobs = await claimedByToken(arena.store, by.token);
  expect(idsOf(jobs)).toEqual(ids.toSorted());
  expect(jobs.map((job) => job.attempt)).toEqual([1, 1, 1]);
});

test("what a light claim took is seen as running, and not seen as waiting", async () => {
  const { by, ids } = await taken(3);
  expect(await readJob(arena.store, ids[0]!)).toMatchObject({ state: "running", attempt: 1, claimCount: 1 });
  expect((await readJob(arena.store, ids[0]!))!.startedAt).toBeInstanceOf(Date);
  expect(idsOf((await findJobs(arena.store, { statuses: ["running"] }, null, 10)).jobs)).toEqual(ids.toSorted());
  const { jobs } = await findJobs(arena.store, { statuses: ["ready", "scheduled"] }, null, 10);
  expect(jobs).toEqual([]);
  const from = { ...lane(), fromUs: String((Date.now() + 60_000) * 1_000) };
  expect(await lookBack(arena.store, [from], 10)).toEqual([]);
  expect(await lookAhead(arena.store, [lane()], [], ["race"])).toEqual([]);
  await markTokens(arena.store, [by.token]);
  expect(await readJob(arena.store, ids[0]!)).toMatchObject({ state: "running", attempt: 1, claimCount: 1 });
});

test("what a light claim took counts as running, and only the rest as ready", async () => {
  await arena.insert(plain(5));
  expect(await light(arena.store, holder(), 4)).toHaveLength(4);
  expect(await countDepths(arena.store)).toMatchObject([{ queue: "default", ready: 1, running: 4 }]);
});
