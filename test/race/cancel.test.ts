// Cancel meets settle, claim and expiry. Two connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { claimLane } from "#src/store/jobs/claim.js";
import { settleDone, settleRuns } from "#src/store/jobs/settle.js";
import { type Session, watch } from "../support/locks.ts";
import { type Arena, ended, EXPIRE, holder, lane, LEASE_MS, openArena, SCHEMA, startBlocked } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

const DAY_MS = 86_400_000;
const done = (run: { id: string; token: string }) => ({ id: run.id, token: run.token, keepMs: DAY_MS });

test("a cancel that waited for a settle finds nothing to cancel", async () => {
  const run = await arena.running();
  await other.begin();
  await settleDone(other.store(SCHEMA), [done(run)], []);
  const cancelling = watch(cancelIfOpen(arena.store, [run.id], DAY_MS));
  await arena.blocks(other);
  expect(cancelling.isSettled).toBe(false);
  await other.commit();
  expect(await cancelling.promise).toEqual([]);
  expect(await arena.history(run.id)).toMatchObject([{ state: "done" }]);
});

test("a cancel that waited for a settle that was rolled back asks the run to stop", async () => {
  const run = await arena.running();
  await other.begin();
  await settleDone(other.store(SCHEMA), [done(run)], []);
  const cancelling = cancelIfOpen(arena.store, [run.id], DAY_MS);
  await arena.blocks(other);
  await other.rollback();
  expect(await cancelling).toMatchObject([{ id: run.id, how: "requested" }]);
  expect(await settleRuns(arena.store, [ended(run, "retry", { delayMs: 1 })])).toMatchObject([
    { verdict: "cancelled" },
  ]);
  expect(await arena.history(run.id)).toMatchObject([{ state: "cancelled" }]);
});

test("a run that succeeds while its cancel is being committed is done", async () => {
  const run = await arena.running();
  await other.begin();
  expect(await cancelIfOpen(other.store(SCHEMA), [run.id], DAY_MS)).toMatchObject([{ how: "requested" }]);
  const settling = await startBlocked(arena, other, () => settleDone(arena.store, [done(run)], []), new Set<string>());
  await other.commit();
  const first = await settling.result;
  if (first.size === 0) await settleRuns(arena.store, [ended(run, "done")]);
  expect(await arena.history(run.id)).toMatchObject([{ state: "done" }]);
});

test("a run that fails after its cancel is not tried again", async () => {
  const run = await arena.running();
  await cancelIfOpen(arena.store, [run.id], DAY_MS);
  expect(await settleRuns(arena.store, [ended(run, "retry")])).toMatchObject([{ verdict: "cancelled" }]);
});

test("a cancel that waited for a claim reaches the lease of that claim", async () => {
  const [id] = await arena.insert([{}]);
  const by = holder();
  await other.begin();
  expect(await claimLane(other.store(SCHEMA), by, lane(), 10)).toHaveLength(1);
  const cancelling = watch(cancelIfOpen(arena.store, [id!], DAY_MS));
  await arena.blocks(other);
  expect(cancelling.isSettled).toBe(false);
  await other.commit();
  expect(await cancelling.promise).toMatchObject([{ id, how: "requested", token: by.token }]);
  // The next beat brings the request, whether or not any notification arrives.
  const beat = await beatIfHeld(arena.store, [{ token: by.token, leaseMs: LEASE_MS }], [], 5_000);
  expect(beat).toMatchObject([{ state: "renewed", cancel_ids: [id] }]);
  await settleRuns(arena.store, [
    { ...done({ id: id!, token: by.token }), keepEndedMs: DAY_MS, outcome: "cancelled", delayMs: 0, group: null },
  ]);
});

test("a cancel that waited for a claim that was rolled back cancels the waiting job", async () => {
  const [id] = await arena.insert([{}]);
  await other.begin();
  await claimLane(other.store(SCHEMA), holder(), lane(), 10);
  const cancelling = cancelIfOpen(arena.store, [id!], DAY_MS);
  await arena.blocks(other);
  await other.rollback();
  expect(await cancelling).toMatchObject([{ id, how: "cancelled" }]);
  expect(await arena.history(id!)).toMatchObject([{ state: "cancelled" }]);
});

test("a claim never takes a job whose cancel is being committed, and is not held up by it", async () => {
  const [cancelled, kept] = await arena.insert([{}, {}]);
  await other.begin();
  expect(await cancelIfOpen(other.store(SCHEMA), [cancelled!], DAY_MS)).toMatchObject([{ how: "cancelled" }]);
  const by = holder();
  const claimed = await claimLane(arena.store, by, lane(), 10);
  expect(claimed.map((job) => job.id)).toEqual([kept]);
  await other.commit();
  expect(await claimLane(arena.store, holder(), lane(), 10)).toEqual([]);
  await settleDone(arena.store, [done({ id: kept!, token: by.token })], []);

  const [again] = await arena.insert([{}]);
  await other.begin();
  await cancelIfOpen(other.store(SCHEMA), [again!], DAY_MS);
  expect(await claimLane(arena.store, holder(), lane(), 10)).toEqual([]);
  await other.rollback();
  const later = holder();
  expect(await claimLane(arena.store, later, lane(), 10)).toMatchObject([{ id: again }]);
  await settleDone(arena.store, [done({ id: again!, token: later.token })], []);
});

test("a cancel and a beat that meet on the lease lose neither the request nor the renewal", async () => {
  const run = await arena.running();
  const lease = [{ token: run.token, leaseMs: LEASE_MS }];
  await other.begin();
  await beatIfHeld(other.store(SCHEMA), lease, [], 5_000);
  const cancelling = cancelIfOpen(arena.store, [run.id], DAY_MS);
  await arena.blocks(other);
  await other.commit();
  expect(await cancelling).toMatchObject([{ how: "requested" }]);
  expect(await beatIfHeld(arena.store, lease, [], 5_000)).toMatchObject([{ state: "renewed", cancel_ids: [run.id] }]);

  const second = await arena.running();
  const secondLease = [{ token: second.token, leaseMs: LEASE_MS }];
  await other.begin();
  await cancelIfOpen(other.store(SCHEMA), [second.id], DAY_MS);
  expect(await beatIfHeld(arena.store, secondLease, [], 5_000)).toMatchObject([{ state: "unknown" }]);
  await other.commit();
  expect(await beatIfHeld(arena.store, secondLease, [], 5_000)).toMatchObject([
    { state: "renewed", cancel_ids: [second.id] },
  ]);
  for (const each of [run, second]) await settleRuns(arena.store, [ended(each, "cancelled")]);
});

test("a run that was asked to stop and whose worker died is cancelled, not run again", async () => {
  const run = await arena.overdue();
  await other.begin();
  await cancelIfOpen(other.store(SCHEMA), [run.id], DAY_MS);
  // Its row is locked: the expiry comes back later.
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  await other.commit();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: run.id, hold: 4 }]);
  expect(await claimLane(arena.store, holder(), lane(), 10)).toEqual([]);
  expect(await endSetApart(arena.store, 100, DAY_MS)).toMatchObject([{ id: run.id, verdict: "cancelled" }]);
  expect(await arena.history(run.id)).toMatchObject([{ state: "cancelled" }]);
});
