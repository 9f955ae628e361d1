// Two connections, real locks: a takeover either waits for a fenced transaction or wins cleanly against it. Store verbs
// only, so that the moment is arranged and not hoped for.
import { afterAll, beforeAll, expect, test } from "vitest";
import { lockIfHeld, lockIfHeldAndFree, renewInside } from "#src/store/jobs/fence.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { watch } from "../support/locks.ts";
import { type Arena, EXPIRE, type HeldRun, LEASE_MS, openArena, SCHEMA } from "../race/arena.ts";

let arena: Arena;
beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena.close());

const held = (run: HeldRun) => ({ id: run.id, token: run.token, leaseMs: LEASE_MS });

test("the takeover comes second: it skips the row, comes back after the commit, and the run is refused from then on", async () => {
  const run = await arena.overdue();
  const [mine, other] = [await arena.session(), await arena.session()];
  await mine.begin();
  expect(await lockIfHeld(mine.store(SCHEMA), held(run))).toBe(true);
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toEqual([]);
  expect(await arena.live(run.id)).toMatchObject({ state: "running", token: run.token });
  expect(await arena.leases()).toMatchObject([{ token: run.token }]);
  await mine.commit();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toMatchObject([{ id: run.id }]);
  await mine.begin();
  expect(await lockIfHeld(mine.store(SCHEMA), held(run))).toBe(false);
  await mine.rollback();
});

test("the takeover comes first and is not committed yet: the run waits for it, and is refused", async () => {
  const run = await arena.overdue();
  const [mine, other] = [await arena.session(), await arena.session()];
  await other.begin();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toMatchObject([{ id: run.id }]);
  await mine.begin();
  const locking = watch(lockIfHeld(mine.store(SCHEMA), held(run)));
  await arena.blocks(other);
  expect(locking.isSettled).toBe(false);
  await other.commit();
  expect(await locking.promise).toBe(false);
  await mine.rollback();
});

test("the takeover comes first and is rolled back: the run goes on", async () => {
  const run = await arena.overdue();
  const [mine, other] = [await arena.session(), await arena.session()];
  await other.begin();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toMatchObject([{ id: run.id }]);
  await mine.begin();
  const locking = watch(lockIfHeld(mine.store(SCHEMA), held(run)));
  await arena.blocks(other);
  await other.rollback();
  expect(await locking.promise).toBe(true);
  await renewInside(mine.store(SCHEMA), held(run));
  await mine.commit();
});

test("a transaction that renewed at its end is not taken over after it, even if it was overdue before", async () => {
  const run = await arena.overdue();
  const [mine, other] = [await arena.session(), await arena.session()];
  await mine.begin();
  expect(await lockIfHeld(mine.store(SCHEMA), held(run))).toBe(true);
  expect(await renewInside(mine.store(SCHEMA), held(run))).toBe(true);
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toEqual([]);
  await mine.commit();
  expect(await expireIfOverdue(other.store(SCHEMA), EXPIRE)).toEqual([]);
  expect(await arena.live(run.id)).toMatchObject({ state: "running", token: run.token });
});

test("a renewal counts from the moment it is made, not from the beginning of its transaction", async () => {
  const run = await arena.running();
  const mine = await arena.session();
  await mine.begin();
  await lockIfHeld(mine.store(SCHEMA), held(run));
  await mine.query("select pg_sleep(0.3)");
  await renewInside(mine.store(SCHEMA), held(run));
  const { rows } = await mine.query<{ ms: number }>(
    `select (extract(epoch from expires_at - now()) * 1000)::float8 as ms from ${SCHEMA}.leases where token = $1`,
    [run.token],
  );
  expect(rows[0]!.ms).toBeGreaterThan(LEASE_MS + 295);
  await mine.commit();
});

test("a renewal never makes a lease shorter, and does not wait for a beat", async () => {
  const run = await arena.running();
  const [mine, beat] = [await arena.session(), await arena.session()];
  await beat.begin();
  await beat.query(`update ${SCHEMA}.leases set expires_at = now() + interval '1 hour' where token = $1`, [run.token]);
  await mine.begin();
  expect(await renewInside(mine.store(SCHEMA), held(run))).toBe(false);
  await beat.commit();
  expect(await renewInside(mine.store(SCHEMA), held(run))).toBe(true);
  await mine.commit();
  const { rows } = await mine.query<{ left: number }>(
    `select extract(epoch from expires_at - now())::float8 as left from ${SCHEMA}.leases where token = $1`,
    [run.token],
  );
  expect(rows[0]!.left).toBeGreaterThan(3_500);
});

test("whoever knows that the lock would be its own does not wait for it", async () => {
  const run = await arena.running();
  const [mine, other] = [await arena.session(), await arena.session()];
  await mine.begin();
  expect(await lockIfHeld(mine.store(SCHEMA), held(run))).toBe(true);
  expect(await lockIfHeldAndFree(mine.store(SCHEMA), held(run))).toBe(true);
  await other.begin();
  expect(await lockIfHeldAndFree(other.store(SCHEMA), held(run))).toBe(false);
  await other.rollback();
  await mine.commit();
});

test("the token of another run, or of a run that is settled, locks nothing", async () => {
  const run = await arena.running();
  expect(await lockIfHeld(arena.store, { ...held(run), token: "1" })).toBe(false);
  expect(await lockIfHeld(arena.store, { ...held(run), id: "00000000-0000-7000-8000-000000000000" })).toBe(false);
  expect(await lockIfHeld(arena.store, held(run))).toBe(true);
});
