// Fenced transactions: the job's row is locked from the first statement to the commit. Who meets it waits, skips it, or
// gives way. Two connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { completeInside, lockIfHeld } from "#src/store/jobs/fence.js";
import { settleRuns } from "#src/store/jobs/settle.js";
import { type Session, watch } from "../support/locks.ts";
import {
  type Arena,
  claimAll,
  ended,
  EXPIRE,
  type HeldRun,
  LEASE_MS,
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
const held = (run: HeldRun) => ({ id: run.id, token: run.token, leaseMs: LEASE_MS });

test("an expiry leaves a run alone while its fenced transaction is open, and takes it after a rollback", async () => {
  const run = await arena.overdue();
  await other.begin();
  expect(await lockIfHeld(other.store(SCHEMA), held(run))).toBe(true);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toEqual([]);
  await other.rollback();
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: run.id }]);
  expect(await lockIfHeld(arena.store, held(run))).toBe(false);
});

test("a fence that waited for an expiry finds that the lease is lost", async () => {
  const run = await arena.overdue();
  await other.begin();
  await expireIfOverdue(other.store(SCHEMA), EXPIRE);
  const fencing = watch(lockIfHeld(arena.store, held(run)));
  await arena.blocks(other);
  expect(fencing.isSettled).toBe(false);
  await other.commit();
  expect(await fencing.promise).toBe(false);
});

test("beats go on while a fenced transaction is open", async () => {
  const run = await arena.running();
  await other.begin();
  await lockIfHeld(other.store(SCHEMA), held(run));
  expect(await beatIfHeld(arena.store, [held(run)], [], 5_000)).toMatchObject([{ state: "renewed" }]);
  await other.rollback();
  await settleRuns(arena.store, [ended(run, "done")]);
});

test("a cancel and a completion that meet in a group do not wait for each other: the completion wins", async () => {
  await arena.insert([{ group: "meet" }, { group: "meet" }]);
  const [head] = await claimAll(arena.store);
  await other.begin();
  await lockIfHeld(other.store(SCHEMA), held(head!));
  // It has the group and waits for the row; the completion has the row and will want the group.
  const cancelling = await startBlocked(arena, other, () => cancelIfOpen(arena.store, [head!.id], DAY_MS), []);
  expect(await completeInside(other.store(SCHEMA), ended(head!, "done"))).toMatchObject({ verdict: "done" });
  await other.commit();
  // It gave up its wait, or found the job done.
  expect(await cancelling.result).toEqual([]);
  expect(await arena.history(head!.id)).toMatchObject([{ state: "done" }]);
  const [second] = await claimAll(arena.store);
  await settleRuns(arena.store, [ended(second!, "done")]);
  await arena.sound();
});
