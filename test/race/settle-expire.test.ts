// Settle, expire, beat: who may still speak for a run. Two connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomToken } from "#src/shared/uuid.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { progressIfRunning } from "#src/store/jobs/progress.js";
import { settleClaim, settleDone, settleRuns, whyNotSettled } from "#src/store/jobs/settle.js";
import type { Store } from "#src/store/sql.js";
import type { Session } from "../support/locks.ts";
import { type Arena, ended, EXPIRE, LEASE_MS, openArena, SCHEMA, startBlocked } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

const done = (run: { id: string; token: string }) => ({ id: run.id, token: run.token, keepMs: 86_400_000 });
const lease = (run: { token: string }) => ({ token: run.token, leaseMs: LEASE_MS });

test("a settle that is being committed wins over an expiry that comes meanwhile", async () => {
  const run = await arena.overdue();
  await other.begin();
  expect(await settleDone(other.store(SCHEMA), [done(run)], [])).toEqual(new Set([run.id]));
  // Not blocked: it skips what somebody has locked, and leaves the lease for later.
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  expect(await arena.leases()).toHaveLength(1);
  await other.commit();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  expect(await arena.live(run.id)).toBeUndefined();
  expect(await arena.history(run.id)).toMatchObject([{ state: "done", token: run.token }]);
  expect(await arena.leases()).toEqual([]);
});

test("a settle that is rolled back leaves the job to the next expiry", async () => {
  const run = await arena.overdue();
  await other.begin();
  await settleDone(other.store(SCHEMA), [done(run)], [lease(run)]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  await other.rollback();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: run.id }]);
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", hold: 2, attempt: 0 });
});

test("a settle that waited for an expiry is refused, and told that the lease was lost", async () => {
  const run = await arena.overdue();
  await other.begin();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toMatchObject([{ id: run.id }]);
  const settling = await startBlocked(
    arena,
    other,
    () => settleDone(arena.store, [done(run)], [lease(run)]),
    new Set<string>(),
  );
  await other.commit();
  expect(await settling.result).toEqual(new Set());
  expect(await arena.history(run.id)).toEqual([]);
  // Nobody has taken the job yet; the old run is over all the same.
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", hold: 2 });
  expect(await whyNotSettled(arena.store, [run])).toEqual(new Map([[run.id, "lost"]]));
});

test("a claim that was lost cannot complete a job that somebody else runs by now", async () => {
  const run = await arena.running();
  const old = { ...lease(run), token: randomToken() };
  expect(await settleClaim(arena.store, old, [run.id], null, true)).toBe(false);
  expect(await arena.live(run.id)).toMatchObject({ state: "running", token: run.token });
  expect(await arena.history(run.id)).toEqual([]);
  expect(await settleClaim(arena.store, lease(run), [run.id], null, true)).toBe(true);
});

const ENDINGS = ["done", "retry", "dead", "snooze", "release", "cancelled"] as const;

test("a run that is not its owner any more ends nothing while somebody else runs the job, whichever way it ends", async () => {
  const run = await arena.running();
  const old = { ...run, token: randomToken() };
  const before = await arena.live(run.id);
  expect(await settleDone(arena.store, [done(old)], [])).toEqual(new Set());
  for (const outcome of ENDINGS) expect(await settleRuns(arena.store, [ended(old, outcome)])).toEqual([]);
  expect(await arena.live(run.id)).toEqual(before);
  expect(await arena.history(run.id)).toEqual([]);
  expect(await settleDone(arena.store, [done(run)], [lease(run)])).toEqual(new Set([run.id]));
});

test("an attempt is counted when it begins, and claims are counted for ever", async () => {
  const run = await arena.running();
  expect(await arena.live(run.id)).toMatchObject({ attempt: 1, claim_count: 1 });
  await settleRuns(arena.store, [ended(run, "retry")]);
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", attempt: 1, claim_count: 1 });
  const [second] = await arena.claim([run.id]);
  expect(await arena.live(run.id)).toMatchObject({ state: "running", attempt: 2, claim_count: 2 });
  await settleRuns(arena.store, [ended(second!, "snooze")]);
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", attempt: 1, claim_count: 2 });
  const [third] = await arena.claim([run.id]);
  expect(await settleDone(arena.store, [done(third!)], [lease(third!)])).toEqual(new Set([run.id]));
});

test("a beat renews the leases that it names, and no other one of the same length", async () => {
  const named = await arena.running();
  const silent = await arena.running();
  const endsAt = async (run: { token: string }): Promise<number> => {
    const { rows } = await arena.watcher.query<{ expires_at: Date }>(
      `select expires_at from ${SCHEMA}.leases where token = $1`,
      [run.token],
    );
    return rows[0]!.expires_at.getTime();
  };
  await arena.watcher.query(
    `update ${SCHEMA}.leases set expires_at = expires_at - interval '10 seconds' where token in ($1, $2)`,
    [named.token, silent.token],
  );
  const [first, second] = [await endsAt(named), await endsAt(silent)];
  expect(await beatIfHeld(arena.store, [lease(named)], [], 5_000)).toMatchObject([{ state: "renewed" }]);
  expect(await endsAt(named)).toBeGreaterThan(first);
  expect(await endsAt(silent)).toBe(second);
  expect(await settleDone(arena.store, [named, silent].map(done), [named, silent].map(lease))).toEqual(
    new Set([named.id, silent.id]),
  );
});

test("an expiry leaves a job alone that waits for its retry, though the lease of its run is still there", async () => {
  const run = await arena.overdue();
  await settleRuns(arena.store, [ended(run, "retry", { delayMs: 3_600_000 })]);
  const before = await arena.live(run.id);
  expect(before).toMatchObject({ state: "pending", hold: 0, attempt: 1 });
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  expect(await arena.live(run.id)).toEqual(before);
});

test("a crash beside others makes a suspect, and is not counted", async () => {
  const run = await arena.overdue();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: run.id, hold: 2 }]);
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", hold: 2, crash_count: 0, attempt: 0 });
});

test("after an expiry the old run can write nothing, whichever way it ends", async () => {
  const run = await arena.overdue();
  await expireIfOverdue(arena.store, EXPIRE);
  const before = await arena.live(run.id);
  for (const outcome of ENDINGS) {
    expect(await settleRuns(arena.store, [ended(run, outcome)])).toEqual([]);
    expect(await whyNotSettled(arena.store, [run])).toEqual(new Map([[run.id, "lost"]]));
  }
  const progress = await progressIfRunning(arena.store, [
    { id: run.id, token: run.token, done: 1, total: 2, note: null },
  ]);
  expect(progress).toEqual(new Set());
  expect(await beatIfHeld(arena.store, [lease(run)], [], 5_000)).toMatchObject([{ state: "lost" }]);
  expect(await arena.live(run.id)).toEqual(before);
});

test("a settle whose reply was lost is told that it was taken", async () => {
  const told = { done: "done", retry: "back", dead: "dead", snooze: "back", release: "back" } as const;
  for (const outcome of ["done", "retry", "dead", "snooze", "release"] as const) {
    const run = await arena.running();
    await settleRuns(arena.store, [ended(run, outcome, { delayMs: 3_600_000 })]);
    expect(await settleRuns(arena.store, [ended(run, "done")])).toEqual([]);
    expect(await whyNotSettled(arena.store, [run])).toEqual(new Map([[run.id, told[outcome]]]));
  }
});

test("a beat that is being committed wins over an expiry that comes meanwhile", async () => {
  const run = await arena.overdue();
  await other.begin();
  expect(await beatIfHeld(other.store(SCHEMA), [lease(run)], [], 5_000)).toMatchObject([{ state: "renewed" }]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  await other.commit();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  expect(await arena.live(run.id)).toMatchObject({ state: "running", token: run.token });
  expect(await settleDone(arena.store, [done(run)], [lease(run)])).toEqual(new Set([run.id]));
});

test("a beat during an expiry is unknown, not lost; afterwards it is what the expiry made of it", async () => {
  const taken = await arena.overdue();
  await other.begin();
  await expireIfOverdue(other.store(SCHEMA), EXPIRE);
  expect(await beatIfHeld(arena.store, [lease(taken)], [], 5_000)).toMatchObject([{ state: "unknown" }]);
  await other.commit();
  expect(await beatIfHeld(arena.store, [lease(taken)], [], 5_000)).toMatchObject([{ state: "lost" }]);

  const kept = await arena.overdue();
  await other.begin();
  await expireIfOverdue(other.store(SCHEMA), EXPIRE);
  expect(await beatIfHeld(arena.store, [lease(kept)], [], 5_000)).toMatchObject([{ state: "unknown" }]);
  await other.rollback();
  expect(await beatIfHeld(arena.store, [lease(kept)], [], 5_000)).toMatchObject([{ state: "renewed" }]);
  expect(await arena.live(kept.id)).toMatchObject({ state: "running" });
});

test("one lease that somebody has locked does not keep the others from being renewed", async () => {
  const locked = await arena.running();
  const free = await arena.running();
  await other.begin();
  await other.query("select 1 from hf_race.leases where token = $1 for update", [locked.token]);
  const results = await beatIfHeld(arena.store, [lease(locked), lease(free)], [], 5_000);
  await other.rollback();
  expect(new Map(results.map((result) => [result.token, result.state]))).toEqual(
    new Map([
      [locked.token, "unknown"],
      [free.token, "renewed"],
    ]),
  );
});

test("of two expirers each job has one, and a crash while alone is counted once", async () => {
  const run = await arena.overdue();
  await other.query("update hf_race.leases set alone = true where token = $1", [run.token]);
  await other.begin();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toMatchObject([{ id: run.id }]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  await other.commit();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  expect(await arena.live(run.id)).toMatchObject({ state: "pending", crash_count: 1, hold: 2 });
});

test("ten expirers at once recover sixty jobs once each", async () => {
  const ids = await arena.insert(Array.from({ length: 60 }, () => ({})));
  await Promise.all(ids.map((id) => arena.claim([id])));
  await other.query("update hf_race.leases set alone = true, expires_at = now() - interval '1 second'");
  const expired: string[] = [];
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (let round = 0; round < 20; round += 1) {
        for (const { id } of await expireIfOverdue(arena.store, { ...EXPIRE, limit: 3 })) expired.push(id);
      }
    }),
  );
  while (expired.length < 60) {
    const more = await expireIfOverdue(arena.store, EXPIRE);
    if (more.length === 0) break;
    for (const { id } of more) expired.push(id);
  }
  const ours = expired.filter((id) => ids.includes(id));
  expect(ours).toHaveLength(60);
  expect(new Set(ours).size).toBe(60);
  for (const id of ids) expect(await arena.live(id)).toMatchObject({ crash_count: 1 });
});

test("an expiry that arrives late judges nobody: those it would judge could not be heard either", async () => {
  const run = await arena.overdue();
  await other.query(`update ${SCHEMA}.leases set lease_ms = 1000 where token = $1`, [run.token]);
  const careful = { limit: 100, seenForMs: Infinity, atOnce: false };
  // The network holds the statement back.
  let statements = 0;
  const slow: Store = {
    ...arena.store,
    async query(...call) {
      statements += 1;
      if (statements > 1) await arena.watcher.query("select pg_sleep(1.5)");
      return await arena.store.query(...call);
    },
  };
  expect(await expireIfOverdue(slow, careful)).toEqual([]);
  expect(await arena.live(run.id)).toMatchObject({ state: "running" });
  expect(await expireIfOverdue(arena.store, careful)).toMatchObject([{ id: run.id }]);
});
