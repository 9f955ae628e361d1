// A dead job meets a retry, a discard, and its group. Two connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { discardIfDead } from "#src/store/jobs/discard.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { settleDone } from "#src/store/jobs/settle.js";
import { type Session, watch } from "../support/locks.ts";
import { type Arena, claimAll, openArena, SCHEMA } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

async function drain(): Promise<string[]> {
  const runs = await claimAll(arena.store);
  await settleDone(
    arena.store,
    runs.map((run) => ({ ...run, keepMs: null })),
    [],
  );
  return runs.map((run) => run.id);
}

test("a retry that waited for a discard finds nothing to retry", async () => {
  const id = await arena.dead();
  await other.begin();
  expect(await discardIfDead(other.store(SCHEMA), id, null)).toBe(true);
  const retrying = watch(retryIfDead(arena.store, id));
  await arena.blocks(other);
  expect(retrying.isSettled).toBe(false);
  await other.commit();
  expect(await retrying.promise).toBe("not-dead");
  expect(await arena.live(id)).toBeUndefined();
  expect(await arena.history(id)).toMatchObject([{ state: "dead" }]);
  expect(await drain()).toEqual([]);
});

test("a discard that waited for a retry leaves the revived job alone", async () => {
  const id = await arena.dead();
  await other.begin();
  expect(await retryIfDead(other.store(SCHEMA), id)).toBe("retried");
  const discarding = discardIfDead(arena.store, id, null);
  await arena.blocks(other);
  await other.commit();
  expect(await discarding).toBe(false);
  expect(await arena.history(id)).toEqual([]);
  expect(await drain()).toEqual([id]);
});

test("a discard that waited for a retry that was rolled back goes ahead", async () => {
  const id = await arena.dead();
  await other.begin();
  await retryIfDead(other.store(SCHEMA), id);
  const discarding = discardIfDead(arena.store, id, null);
  await arena.blocks(other);
  await other.rollback();
  expect(await discarding).toBe(true);
  expect(await arena.history(id)).toMatchObject([{ state: "dead" }]);
});

test("of two retries one is the retry, and the job runs once", async () => {
  const id = await arena.dead();
  await other.begin();
  expect(await retryIfDead(other.store(SCHEMA), id)).toBe("retried");
  const second = retryIfDead(arena.store, id);
  await arena.blocks(other);
  await other.commit();
  expect(await second).toBe("not-dead");
  expect(await drain()).toEqual([id]);
  expect(await drain()).toEqual([]);
});
