// A group always moves on: whoever joins, ends or is cancelled meanwhile, exactly one member can run, in order. Two
// connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { type EndedRun, settleRuns } from "#src/store/jobs/settle.js";
import type { Store } from "#src/store/sql.js";
import { type Session, watch } from "../support/locks.ts";
import { type Arena, claimAll, ended, EXPIRE, type HeldRun, openArena, SCHEMA } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

const DAY_MS = 86_400_000;
let groups = 0;
const freshGroup = (): string => `g${(groups += 1)}`;

const join = async (group: string, store?: Store): Promise<string> => (await arena.insert([{ group }], store))[0]!;

/** Settles as the worker does: a lock in the way is a reason to come back. */
async function settle(run: HeldRun, outcome: EndedRun["outcome"] = "done"): Promise<void> {
  for (;;) {
    try {
      if ((await settleRuns(arena.store, [ended(run, outcome)])).length > 0) return;
    } catch (error) {
      expect(error).toMatchObject({ code: "55P03" });
    }
  }
}

/** Runs what can run until nothing can; the ids in the order in which they ran. */
async function drain(): Promise<string[]> {
  const order: string[] = [];
  for (let runs = await claimAll(arena.store); runs.length > 0; runs = await claimAll(arena.store)) {
    for (const run of runs) {
      order.push(run.id);
      await settle(run);
    }
  }
  await arena.drained();
  return order;
}

for (const end of ["commit", "rollback"] as const) {
  test(`the head is settled while somebody joins in an open transaction that ends with ${end}`, async () => {
    const group = freshGroup();
    await join(group);
    const [head] = await claimAll(arena.store);
    await other.begin();
    const joined = await join(group, other.store(SCHEMA));
    const settling = watch(settle(head!));
    await arena.blocks(other);
    expect(settling.isSettled).toBe(false);
    await other[end]();
    await settling.promise;
    expect(await drain()).toEqual(end === "commit" ? [joined] : []);
  });

  test(`somebody joins while the settle of the last member is open and ends with ${end}`, async () => {
    const group = freshGroup();
    await join(group);
    const [head] = await claimAll(arena.store);
    await other.begin();
    expect(await settleRuns(other.store(SCHEMA), [ended(head!, "done")])).toMatchObject([{ verdict: "done" }]);
    const joining = watch(join(group));
    await arena.blocks(other);
    expect(joining.isSettled).toBe(false);
    await other[end]();
    const joined = await joining.promise;
    if (end === "rollback") {
      expect(await claimAll(arena.store)).toEqual([]);
      await settle(head!);
    }
    expect(await drain()).toEqual([joined]);
  });
}

test("the head is cancelled while somebody joins", async () => {
  const group = freshGroup();
  const head = await join(group);
  await other.begin();
  await cancelIfOpen(other.store(SCHEMA), [head], DAY_MS);
  const joining = join(group);
  await arena.blocks(other);
  await other.commit();
  expect(await drain()).toEqual([await joining]);
});

test("the head and its successor are cancelled together: the third runs", async () => {
  const group = freshGroup();
  const [first, second, third] = [await join(group), await join(group), await join(group)];
  await cancelIfOpen(arena.store, [second, first], DAY_MS);
  expect(await drain()).toEqual([third]);
});

test("a member is cancelled while the head's settle is about to admit it", async () => {
  const group = freshGroup();
  await join(group);
  const [second, third] = [await join(group), await join(group)];
  const [head] = await claimAll(arena.store);
  await other.begin();
  await cancelIfOpen(other.store(SCHEMA), [second], DAY_MS);
  const settling = settle(head!);
  await arena.blocks(other);
  await other.commit();
  await settling;
  expect(await drain()).toEqual([third]);
});

test("a dead member joins at the end when it is retried, whoever joins meanwhile", async () => {
  const group = freshGroup();
  await join(group);
  const [victim] = await claimAll(arena.store);
  await settle(victim!, "dead");
  const first = await join(group);
  await other.begin();
  expect(await retryIfDead(other.store(SCHEMA), victim!.id)).toBe("retried");
  const joining = join(group);
  await arena.blocks(other);
  await other.commit();
  expect(await drain()).toEqual([first, victim!.id, await joining]);
});

test("a dead member that is retried while the last member's settle is open is not forgotten", async () => {
  const group = freshGroup();
  await join(group);
  const [victim] = await claimAll(arena.store);
  await settle(victim!, "dead");
  await join(group);
  const [last] = await claimAll(arena.store);
  await other.begin();
  await settleRuns(other.store(SCHEMA), [ended(last!, "done")]);
  const retrying = retryIfDead(arena.store, victim!.id);
  await arena.blocks(other);
  await other.commit();
  expect(await retrying).toBe("retried");
  expect(await drain()).toEqual([victim!.id]);
});

test("a head whose worker died keeps its place; one that crashed too often does not keep its group", async () => {
  const group = freshGroup();
  const head = await join(group);
  const second = await join(group);
  const [run] = await claimAll(arena.store);
  await other.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second', alone = true`);
  await other.query(`update ${SCHEMA}.jobs set crash_count = 2 where id = $1`, [head]);
  expect(await claimAll(arena.store)).toEqual([]);
  expect(await expireIfOverdue(arena.store, EXPIRE)).toMatchObject([{ id: run!.id, hold: 4 }]);
  expect(await claimAll(arena.store)).toEqual([]);
  await arena.sound();
  await endSetApart(arena.store, 100, DAY_MS);
  expect(await drain()).toEqual([second]);
});

test("one group that somebody holds open does not keep other jobs from being buried", async () => {
  const held = freshGroup();
  const heldId = await join(held);
  const freeId = await join(freshGroup());
  await claimAll(arena.store);
  await other.query(`update ${SCHEMA}.leases set expires_at = now() - interval '1 second', alone = true`);
  await other.query(`update ${SCHEMA}.jobs set crash_count = 2`);
  await expireIfOverdue(arena.store, EXPIRE);
  await other.begin();
  const joined = await join(held, other.store(SCHEMA));
  await endSetApart(arena.store, 100, DAY_MS);
  expect(await arena.live(freeId)).toMatchObject({ state: "dead" });
  expect(await arena.live(heldId)).toMatchObject({ state: "pending", hold: 4 });
  await other.commit();
  await endSetApart(arena.store, 100, DAY_MS);
  expect(await drain()).toEqual([joined]);
});

test("joins, settles, retries and cancels of three groups from all sides: serial, in order, nobody forgotten", async () => {
  const names = [freshGroup(), freshGroup(), freshGroup()];
  const accepted = new Map<string, { id: string; at: bigint }[]>(names.map((name) => [name, []]));
  const started: HeldRun[] = [];
  const runningNow = new Set<string>();
  const overlaps: string[] = [];
  let joiners = 6;
  const cancelled = new Set<string>();
  const joined = async (seed: number): Promise<void> => {
    for (let n = 0; n < 20; n += 1) {
      const name = names[(n + seed) % names.length]!;
      const id = await join(name);
      accepted.get(name)!.push({ id, at: BigInt((await arena.live(id))?.group_seq ?? 0) });
      if (n % 7 === 3) {
        const [result] = await cancelIfOpen(arena.store, [id], DAY_MS).catch((error: unknown) => {
          expect(error).toMatchObject({ code: "55P03" });
          return [];
        });
        if (result?.how === "cancelled") cancelled.add(id);
      }
    }
    joiners -= 1;
  };
  const work = async (seed: number): Promise<void> => {
    for (let empty = 0; joiners > 0 || empty < 5;) {
      const runs = await claimAll(arena.store, 2);
      empty = runs.length === 0 ? empty + 1 : 0;
      for (const run of runs) {
        started.push(run);
        if (runningNow.has(run.job.group_key!)) overlaps.push(run.id);
        runningNow.add(run.job.group_key!);
      }
      for (const [n, run] of runs.entries()) {
        const isFirst = run.job.attempt === 1;
        runningNow.delete(run.job.group_key!);
        await settle(run, isFirst && (n + seed) % 3 === 0 ? "retry" : "done");
      }
    }
  };
  await Promise.all([...[0, 1, 2, 3, 4, 5].map(joined), ...[0, 1, 2, 3].map(work)]);
  await drain();
  expect(overlaps).toEqual([]);
  const ids = new Set(started.map((run) => run.id));
  for (const members of accepted.values()) {
    for (const { id } of members) expect(ids.has(id) || cancelled.has(id)).toBe(true);
  }
});
