// A lease ends with the last run that it is for, and not before: a run whose lease is gone is nobody's, and no expiry would
// ever find it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld, type LeaseId } from "#src/store/jobs/beat.js";
import { claimLanes, type Holder } from "#src/store/jobs/claim.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { settleClaim, settleDone, settleRuns } from "#src/store/jobs/settle.js";
import { type Arena, ended, EXPIRE, type HeldRun, holder, lane, LEASE_MS, openArena, SCHEMA } from "./arena.ts";

let arena: Arena;
beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena.close());

const leasesOf = async (token: string): Promise<string[][]> =>
  (await arena.leases()).filter((lease) => lease.token === token).map((lease) => lease.job_ids);

/** Two runs of one claim, of which the second cannot end yet: it was enqueued to meanwhile, and starts again. */
async function twoOfOneClaim(): Promise<{ plain: HeldRun; again: HeldRun; lease: LeaseId }> {
  const ids = await arena.insert([{}, { coalesceKey: "the same" }]);
  const runs = await arena.claim(ids);
  await arena.insert([{ coalesceKey: "the same", payload: '"newer"' }]);
  const [plain, again] = ids.map((id) => runs.find((run) => run.id === id)!);
  return { plain: plain!, again: again!, lease: { token: plain!.token, leaseMs: LEASE_MS } };
}

/** Whoever has it could die now, and it would be found. */
async function isFoundWhenItsWorkerDies({ again, lease }: { again: HeldRun; lease: LeaseId }): Promise<void> {
  expect(await leasesOf(lease.token)).toHaveLength(1);
  await arena.watcher.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second' where token = $1`, [
    lease.token,
  ]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: again.id }]);
  await arena.watcher.query(`update ${SCHEMA}.jobs set hold = 0 where id = $1`, [again.id]);
  const [run] = await arena.claim([again.id]);
  await settleDone(
    arena.store,
    [{ id: again.id, token: run!.token, keepMs: null }],
    [{ token: run!.token, leaseMs: LEASE_MS }],
  );
  await arena.drained();
}

const done = ({ id, token }: HeldRun) => ({ id, token, keepMs: null });

test("runs that end together keep their lease while one of them has not ended", async () => {
  const two = await twoOfOneClaim();
  expect(await settleDone(arena.store, [two.plain, two.again].map(done), [two.lease])).toEqual(new Set([two.plain.id]));
  await isFoundWhenItsWorkerDies(two);
});

test("the last runs of a claim that end together keep their lease while one of them has not ended", async () => {
  const two = await twoOfOneClaim();
  expect(await settleClaim(arena.store, two.lease, [two.plain.id, two.again.id], null, true)).toBe(false);
  await isFoundWhenItsWorkerDies(two);
});

test("runs that end together end their lease if they are its last", async () => {
  const runs = await arena.claim(await arena.insert([{}, {}]));
  const lease = { token: runs[0]!.token, leaseMs: LEASE_MS };
  expect((await settleDone(arena.store, runs.map(done), [lease])).size).toBe(2);
  expect(await leasesOf(lease.token)).toEqual([]);
});

test("a beat ends the lease that is over, and no other one of its claim", async () => {
  await arena.insert([{ kind: "short" }, { kind: "long" }]);
  const [short, long] = [1_000, 30_000];
  const by: Holder = {
    ...holder(),
    leases: JSON.stringify([
      { kind: "short", lease_ms: short },
      { kind: "long", lease_ms: long },
    ]),
  };
  const claimed = await claimLanes(arena.store, by, [lane("short"), lane("long")], 5, 10);
  expect(claimed).toHaveLength(2);
  const jobs = new Map(claimed.map((job) => [job.kind, { id: job.id, token: by.token, job }]));
  await settleDone(arena.store, [done(jobs.get("short")!)], []);
  await beatIfHeld(arena.store, [], [{ token: by.token, leaseMs: short }], 5_000);
  expect(await leasesOf(by.token)).toEqual([[jobs.get("long")!.id]]);
  expect(await beatIfHeld(arena.store, [{ token: by.token, leaseMs: long }], [], 5_000)).toMatchObject([
    { state: "renewed" },
  ]);
  await settleDone(arena.store, [done(jobs.get("long")!)], [{ token: by.token, leaseMs: long }]);
  await arena.drained();
});

test("a lease that is over takes what its own run still has, and not what somebody else runs by now", async () => {
  const ids = await arena.insert([{}, {}]);
  const [kept, given] = await arena.claim(ids);
  await settleRuns(arena.store, [ended(given!, "release")]);
  const [taken] = await arena.claim([given!.id]);
  await arena.watcher.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second' where token = $1`, [
    kept!.token,
  ]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: kept!.id }]);
  expect(await arena.live(given!.id)).toMatchObject({ state: "running", token: taken!.token });
  await settleDone(arena.store, [done(taken!)], [{ token: taken!.token, leaseMs: LEASE_MS }]);
});

test("a dead job that is run again has its full number of crashes before it", async () => {
  const run = await arena.running();
  await arena.watcher.query(`update ${SCHEMA}.jobs set crash_count = 2 where id = $1`, [run.id]);
  await settleRuns(arena.store, [ended(run, "dead")]);
  expect(await arena.live(run.id)).toMatchObject({ state: "dead", crash_count: 2 });
  expect(await retryIfDead(arena.store, run.id)).toBe("retried");
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", crash_count: 0 });
});
