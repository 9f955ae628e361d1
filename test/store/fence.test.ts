// Every write about a run needs the run's token: whoever lost its lease changes nothing, whatever it tries.
import { describe, expect, test } from "vitest";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { expireEverything, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { claimIds, claimSuspect } from "#src/store/jobs/claim.js";
import { progressIfRunning } from "#src/store/jobs/progress.js";
import { settleClaim, settleDone, settleRuns, whyNotSettled } from "#src/store/jobs/settle.js";
import { makeKind } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";

const LEASE_MS = 30_000;
const OUTCOMES = ["done", "retry", "dead", "snooze", "release", "cancelled"] as const;

const holderOf = (kind: string) => ({
  token: randomToken(),
  workerId: uuidv7(),
  leases: JSON.stringify([{ kind, lease_ms: LEASE_MS }]),
});

/** Claimed by one, lost, claimed by another. */
async function takenOver(bench: Bench, options: { group?: string } = {}) {
  const kind = makeKind();
  const { id } = await bench.hf.enqueue(kind, { n: 1 }, options);
  const [first, second] = [holderOf(kind.kind), holderOf(kind.kind)];
  expect(await claimIds(bench.store, first, [id], [kind.kind], 1)).toHaveLength(1);
  await expireEverything(bench.store);
  await expireIfOverdue(bench.store, { limit: 100, atOnce: true, seenForMs: Infinity });
  expect(await claimSuspect(bench.store, second, [kind.kind], true)).toHaveLength(1);
  return { id, lost: first.token, held: second.token };
}

async function rowOf(bench: Bench, id: string): Promise<unknown> {
  const { rows } = await bench.db.query("select * from holdfast.jobs where id = $1", [id]);
  return rows[0];
}

describe.each(TIERS)("a run that lost its lease, %s", (tier) => {
  const bench = useHoldfast(tier);

  test.each(OUTCOMES)("cannot settle its job as %s", async (outcome) => {
    const { id, lost, held } = await takenOver(bench);
    const before = await rowOf(bench, id);
    const ended = {
      id,
      token: lost,
      keepMs: null,
      keepEndedMs: null,
      outcome,
      delayMs: 0,
      error: { name: "E", message: "m" },
      group: null,
    };
    expect(await settleRuns(bench.store, [ended])).toEqual([]);
    expect(await whyNotSettled(bench.store, [{ id, token: lost }])).toEqual(new Map([[id, "lost"]]));
    expect(await rowOf(bench, id)).toEqual(before);
    expect(await bench.hf.jobs.attempts(id)).toEqual([]);
    // Who holds it can.
    expect(await settleRuns(bench.store, [{ ...ended, token: held }])).toMatchObject([{ id }]);
    // Once.
    expect(await settleRuns(bench.store, [{ ...ended, token: held }])).toEqual([]);
    expect((await whyNotSettled(bench.store, [{ id, token: held }])).get(id)).not.toBe("lost");
  });

  test("cannot settle its job as done, alone or among others", async () => {
    const { id, lost, held } = await takenOver(bench);
    const before = await rowOf(bench, id);
    expect(await settleDone(bench.store, [{ id, token: lost, keepMs: null }], [])).toEqual(new Set());
    expect(await settleClaim(bench.store, { token: lost, leaseMs: LEASE_MS }, [id], null, true)).toBe(false);
    expect(await rowOf(bench, id)).toEqual(before);
    expect(await settleClaim(bench.store, { token: held, leaseMs: LEASE_MS }, [id], null, true)).toBe(true);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done" });
  });

  test("does not take down those that settle with it", async () => {
    const mine = await takenOver(bench);
    const kind = makeKind();
    const other = await bench.hf.enqueue(kind, 1);
    const holder = holderOf(kind.kind);
    await claimIds(bench.store, holder, [other.id], [kind.kind], 1);
    const runs = [
      { id: mine.id, token: mine.lost, keepMs: null },
      { id: other.id, token: holder.token, keepMs: null },
    ];
    const lease = { token: holder.token, leaseMs: LEASE_MS };
    expect(await settleDone(bench.store, runs, [lease])).toEqual(new Set([other.id]));
    expect(await bench.hf.jobs.get(mine.id)).toMatchObject({ state: "running" });
    await settleClaim(bench.store, { token: mine.held, leaseMs: LEASE_MS }, [mine.id], null, true);
  });

  test("cannot report progress", async () => {
    const { id, lost, held } = await takenOver(bench);
    const row = { id, done: 1, total: 2, note: null };
    expect(await progressIfRunning(bench.store, [{ ...row, token: lost }])).toEqual(new Set());
    expect((await bench.hf.jobs.get(id))?.progress).toBeNull();
    expect(await progressIfRunning(bench.store, [{ ...row, token: held }])).toEqual(new Set([id]));
    await settleClaim(bench.store, { token: held, leaseMs: LEASE_MS }, [id], null, true);
  });

  test("hears from its next beat that it is lost; the other's is renewed", async () => {
    const { id, lost, held } = await takenOver(bench);
    const leases = [lost, held].map((token) => ({ token, leaseMs: LEASE_MS }));
    const results = await beatIfHeld(bench.store, leases, [], 5_000);
    expect(new Map(results.map(({ token, state }) => [token, state]))).toEqual(
      new Map([
        [lost, "lost"],
        [held, "renewed"],
      ]),
    );
    await settleClaim(bench.store, { token: held, leaseMs: LEASE_MS }, [id], null, true);
  });

  test("cannot let the next of its group in", async () => {
    const group = `fence ${tier}`;
    const { id, lost, held } = await takenOver(bench, { group });
    const next = await bench.hf.enqueue(makeKind(), 2, { group });
    const ended = { id, token: lost, keepMs: null, keepEndedMs: null, outcome: "done" as const, delayMs: 0, group };
    expect(await settleRuns(bench.store, [ended])).toEqual([]);
    expect(await rowOf(bench, next.id)).toMatchObject({ hold: 1 });
    expect(await settleRuns(bench.store, [{ ...ended, token: held }])).toMatchObject([{ id, heir: next.id }]);
    expect(await rowOf(bench, next.id)).toMatchObject({ hold: 0 });
  });

  test("whose job was not taken over yet is refused as well", async () => {
    const kind = makeKind();
    const { id } = await bench.hf.enqueue(kind, 1);
    const first = holderOf(kind.kind);
    await claimIds(bench.store, first, [id], [kind.kind], 1);
    await expireEverything(bench.store);
    await expireIfOverdue(bench.store, { limit: 100, atOnce: true, seenForMs: Infinity });
    expect(await settleDone(bench.store, [{ id, token: first.token, keepMs: null }], [])).toEqual(new Set());
    expect((await whyNotSettled(bench.store, [{ id, token: first.token }])).get(id)).toBe("lost");
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 0 });
  });
});
