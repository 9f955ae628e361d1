// The model's commands: each sends a statement of the store, asks the model what should have come of it, and compares
// answers and tables. `lost`: it is executed, the caller is told that it timed out, and does what the product does then.
import fc from "fast-check";
import { expect } from "vitest";
import { uuidv7 } from "#src/shared/uuid.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { claimedByToken, claimLane, claimSuspect, type Holder } from "#src/store/jobs/claim.js";
import { claimLight } from "#src/store/jobs/claim-light.js";
import { discardIfDead } from "#src/store/jobs/discard.js";
import { lockIfHeld } from "#src/store/jobs/fence.js";
import { findExisting, insertJobs, insertTaken, type NewJob } from "#src/store/jobs/insert.js";
import { markTokens } from "#src/store/jobs/mark.js";
import { progressIfRunning } from "#src/store/jobs/progress.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import {
  type EndedRun,
  settleClaim,
  settleDone,
  settleLightClaim,
  settleRuns,
  whyNotSettled,
} from "#src/store/jobs/settle.js";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { expireKeys } from "#src/store/janitor/purge.js";
import { makeStore, type Store } from "#src/store/sql.js";
import { type Ending, Model, type ModelRun } from "./model.ts";
import { asDb, SCHEMA, type SimDatabase } from "./simulation/database.ts";

export interface Real {
  database: SimDatabase;
  store: Store;
}

type Command = fc.AsyncCommand<Model, Real>;
const KIND = "model.work";
const KEEP_KEY_MS = 600_000;
const DAY_MS = 86_400_000;
const NIL = "00000000-0000-0000-0000-000000000000";
let tokens = 0;
const holder = (leaseMs: number): Holder => ({
  token: String((tokens += 1)),
  workerId: uuidv7(),
  leases: JSON.stringify([{ kind: KIND, lease_ms: leaseMs }]),
});
const lane = (rank: number) => ({ kind: KIND, rank, fromUs: "0", fromId: NIL });
const sorted = (ids: Iterable<string>): string[] => [...ids].toSorted();

/** One that always can be sent. */
const command = (name: string, run: (model: Model, real: Real) => Promise<unknown>): Command => ({
  check: () => true,
  async run(model, real) {
    await run(model, real);
    await compare(model, real);
  },
  toString: () => name,
});
const pickFrom = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(1, list.length)];

// ---- jobs come

const enqueue = fc
  .record({
    special: fc.oneof(
      { weight: 3, arbitrary: fc.constant({}) },
      { weight: 2, arbitrary: fc.record({ key: fc.constantFrom("a", "b") }) },
      { weight: 2, arbitrary: fc.record({ group: fc.constantFrom("g", "h") }) },
      { weight: 2, arbitrary: fc.record({ coalesce: fc.constantFrom("c", "d") }) },
    ),
    payload: fc.nat(2),
    rank: fc.constantFrom(0, 0, 0, -1),
    delay: fc.constantFrom(0, 0, 0, 700),
    lost: fc.boolean(),
  })
  .map(({ special, payload, rank, delay, lost }) => {
    const { key = null, group = null, coalesce = null } = special as Record<string, string | undefined>;
    return command(
      `enqueue(${JSON.stringify({ key, group, coalesce, payload, rank, delay, lost })})`,
      async (model, { store }) => {
        const id = uuidv7();
        const job: NewJob = {
          id,
          kind: KIND,
          queue: "default",
          rank,
          attempts: 3,
          payload: String(payload),
          ...(delay > 0 ? { delayMs: delay } : {}),
          ...(key === null ? {} : { key, keepKeyMs: KEEP_KEY_MS }),
          ...(group === null ? {} : { group }),
          ...(coalesce === null ? {} : { coalesceKey: coalesce }),
        };
        const wanted = model.enqueue({ id, rank, payload, key, coalesce, group, delay, keepKeyMs: KEEP_KEY_MS });
        const [first] = await insertJobs(store, [job], null);
        let answer = first!;
        // The reply is lost: the product looks for the id, and sends what is not there under the same one.
        if (lost && !(await findExisting(store, [id])).has(id)) {
          const again = model.enqueue({ id, rank, payload, key, coalesce, group, delay, keepKeyMs: KEEP_KEY_MS });
          [answer] = (await insertJobs(store, [job], null)) as [typeof answer];
          expect(again.id).toBe(wanted.id);
        }
        expect({ id: answer.id, created: answer.created, conflict: answer.conflict }).toEqual(wanted);
      },
    );
  });

const handOver = fc
  .record({ count: fc.integer({ min: 1, max: 3 }), leaseMs: fc.constantFrom(1_000, 5_000) })
  .map(({ count, leaseMs }) =>
    command(`handOver(${count})`, async (model, { store }) => {
      const by = holder(leaseMs);
      const jobs = Array.from({ length: count }, () => ({
        id: uuidv7(),
        kind: KIND,
        queue: "default",
        rank: 0,
        attempts: 3,
        payload: "0",
      }));
      for (const { id } of jobs) {
        model.enqueue({ id, rank: 0, payload: 0, key: null, coalesce: null, group: null, delay: 0, keepKeyMs: 0 });
      }
      model.take(
        jobs.map((job) => job.id),
        by.token,
        leaseMs,
        { light: true },
      );
      const taken = await insertTaken(store, jobs, { token: by.token, workerId: by.workerId, leaseMs });
      expect(sorted(taken.map((job) => job.id))).toEqual(sorted(jobs.map((job) => job.id)));
    }),
  );

// ---- jobs are taken

const claim = fc
  .record({
    rank: fc.constantFrom(0, 0, -1),
    limit: fc.integer({ min: 1, max: 4 }),
    leaseMs: fc.constantFrom(1_000, 5_000),
    how: fc.constantFrom("lane", "lane", "hurry", "light"),
    lost: fc.boolean(),
  })
  .map(({ rank, limit, leaseMs, how, lost }) =>
    command(`claim(${JSON.stringify({ rank, limit, leaseMs, how, lost })})`, async (model, { store }) => {
      const by = holder(leaseMs);
      let wanted = model.claimable(rank, limit);
      const isLight = how === "light";
      const isPlain = wanted.every((id) => {
        const { group, coalesce } = model.jobs.get(id)!;
        return group === null && coalesce === null;
      });
      if (isLight && !isPlain) wanted = [];
      model.take(wanted, by.token, leaseMs, { light: isLight });
      const jobs = isLight
        ? (await claimLight(store, by, lane(rank), { leaseMs, attempts: 3, queue: "default" }, limit)).jobs
        : await claimLane(store, by, lane(rank), limit, how === "hurry");
      expect(sorted(jobs.map((job) => job.id))).toEqual(sorted(wanted));
      if (!lost) return;
      // The reply is lost: the product asks what the token took.
      model.mark(by.token);
      const found = await claimedByToken(store, by.token);
      expect(sorted(found.map((job) => job.id))).toEqual(sorted(wanted));
    }),
  );

const suspect = fc.boolean().map((alone) =>
  command(`claimSuspect(${alone})`, async (model, { store }) => {
    const by = holder(1_000);
    const candidates = model.suspects(alone);
    const jobs = await claimSuspect(store, by, [KIND], alone);
    expect(jobs).toHaveLength(Math.min(1, candidates.length));
    if (jobs[0]) expect(candidates).toContain(jobs[0].id);
    model.take(
      jobs.map((job) => job.id),
      by.token,
      1_000,
      { alone },
    );
  }),
);

// ---- runs speak, those that are over included

const beat = fc.nat().map((at) =>
  command(`beat(${at})`, async (model, { store }) => {
    const run = pickFrom(model.runs, at);
    if (!run) return;
    const { token, leaseMs } = run;
    // With a beat goes word of a lease that nobody needs any more.
    const over = [...model.leases.values()].find((lease) => lease.token !== token && model.isOver(lease.token));
    const [result] = await beatIfHeld(store, [{ token, leaseMs }], over ? [over] : [], 5_000);
    if (over) model.leases.delete(over.token);
    // A lease whose jobs have all ended may still be there, and may be renewed: it is nobody's.
    const wanted = model.beat(token);
    expect(result!.state).toBe(wanted);
  }),
);

const ENDINGS: Ending[] = ["done", "done", "retry", "dead", "snooze", "release", "cancelled"];
const settle = fc
  .record({
    at: fc.nat(),
    ending: fc.constantFrom(...ENDINGS),
    delay: fc.constantFrom(0, 900),
    quick: fc.boolean(),
    lost: fc.boolean(),
  })
  .map(({ at, ending, delay, quick, lost }) =>
    command(`settle(${JSON.stringify({ at, ending, delay, quick, lost })})`, async (model, { store }) => {
      const run = pickFrom(model.runs, at);
      if (!run) return;
      const sent = asEnded(model, run, ending, delay);
      // As the worker that runs them knows: of this claim there is no other one that has not ended.
      const isLast = !model.runs.some(
        (other) => other.token === run.token && other.id !== run.id && model.isOpen(other),
      );
      if (quick && ending === "done" && model.isLight(run)) return await settleLight(model, store, run, isLast);
      // Before anything but plain success is written about a run, its claim is marked.
      model.mark(run.token);
      await markTokens(store, [run.token]);
      if (quick && ending === "done") {
        const job = model.jobs.get(run.id)!;
        const suits = model.holds(run) && job.group === null && job.rerun === null;
        const done = await settleDone(store, [sent], isLast ? [run] : []);
        expect(sorted(done)).toEqual(suits ? [run.id] : []);
        if (suits) model.settle(run, "done", 0);
        if (suits && isLast) model.leases.delete(run.token);
        return;
      }
      const verdict = model.settle(run, ending, delay);
      const settled = await settleRuns(store, [sent]);
      expect(settled.map((each) => each.verdict)).toEqual(verdict === undefined ? [] : [verdict]);
      if (!lost || verdict === undefined) return;
      // The reply is lost: sent again it is refused, and the product asks what became of it.
      expect(await settleRuns(store, [sent])).toEqual([]);
      const why = (await whyNotSettled(store, [run])).get(run.id);
      const told = { done: "done", dead: "dead", cancelled: "cancelled" }[verdict] ?? "back";
      expect(why).toBe(told);
    }),
  );

async function settleLight(model: Model, store: Store, run: ModelRun, isLast: boolean): Promise<void> {
  const done = await settleClaim(store, run, [run.id], DAY_MS, isLast);
  expect(done).toBe(true);
  const job = model.jobs.get(run.id)!;
  Object.assign(job, { state: "done", token: run.token, attempt: job.attempt + 1, claims: job.claims + 1 });
  if (isLast) model.leases.delete(run.token);
}

/** All that is left of a claim ends at once, and its lease with it, unless one of them cannot end yet. */
const settleRest = fc.record({ at: fc.nat(), byClaim: fc.boolean() }).map(({ at, byClaim }) =>
  command(`settleRest(${JSON.stringify({ at, byClaim })})`, async (model, { store }) => {
    const one = pickFrom(
      model.runs.filter((run) => model.isOpen(run)),
      at,
    );
    if (!one) return;
    model.mark(one.token);
    await markTokens(store, [one.token]);
    const runs = model.runs.filter((run) => run.token === one.token && model.holds(run));
    const ids = runs.map(({ id }) => id);
    const suiting = runs.filter(({ id }) => {
      const { group, rerun } = model.jobs.get(id)!;
      return group === null && rerun === null;
    });
    if (byClaim) {
      expect(await settleClaim(store, one, ids, DAY_MS, true)).toBe(suiting.length === runs.length);
    } else {
      const sent = runs.map((run) => asEnded(model, run, "done", 0));
      expect(sorted(await settleDone(store, sent, [one]))).toEqual(sorted(suiting.map(({ id }) => id)));
    }
    for (const run of suiting) model.settle(run, "done", 0);
    if (suiting.length === runs.length) model.leases.delete(one.token);
  }),
);

/** Where some of them ended one by one before, nothing is done either: the product takes that for a lock in its way. */
async function sendWhole(store: Store, run: ModelRun, runs: number): Promise<boolean> {
  try {
    return await settleLightClaim(store, run, runs, DAY_MS);
  } catch (error) {
    expect(error).toMatchObject({ code: "55P03" });
    return false;
  }
}

/** All runs of a claim at once, as a worker sends it that believes its claim to be light and whole. `short`: some have gone. */
const settleWhole = fc
  .record({ at: fc.nat(), short: fc.constantFrom(0, 0, 0, 1), lost: fc.boolean() })
  .map(({ at, short, lost }) =>
    command(`settleWhole(${JSON.stringify({ at, short, lost })})`, async (model, { store }) => {
      // Those that took light claims, over or not: others are never sent it.
      const run = pickFrom(
        model.runs.filter(({ token }) => model.tookLightly.has(token)),
        at,
      );
      if (!run) return;
      const runs = model.runs.filter(({ token }) => token === run.token).length - short;
      if (runs === 0) return;
      const wanted = model.settleWhole(run.token, runs);
      expect(await sendWhole(store, run, runs)).toBe(wanted !== undefined);
      if (!lost || wanted === undefined) return;
      // The reply is lost: sent again it does nothing, and the product asks what became of each.
      expect(await sendWhole(store, run, runs)).toBe(false);
      const why = await whyNotSettled(
        store,
        wanted.map((id) => ({ id, token: run.token })),
      );
      expect([...why.values()]).toEqual(wanted.map(() => "done"));
    }),
  );

function asEnded(model: Model, run: ModelRun, outcome: Ending, delayMs: number): EndedRun {
  return {
    id: run.id,
    token: run.token,
    keepMs: DAY_MS,
    keepEndedMs: DAY_MS,
    outcome,
    delayMs,
    group: model.jobs.get(run.id)?.group ?? null,
    ...(outcome === "retry" || outcome === "dead"
      ? { error: { name: "Error", message: "as the model wants it" } }
      : {}),
  };
}

const speak = fc.nat().map((at) =>
  command(`progress and fence(${at})`, async (model, { store }) => {
    const run = pickFrom(model.runs, at);
    if (!run) return;
    const holds = model.holds(run);
    const taken = await progressIfRunning(store, [{ id: run.id, token: run.token, done: 1, total: 2, note: null }]);
    expect(taken.has(run.id)).toBe(holds);
    expect(await lockIfHeld(store, run)).toBe(holds);
  }),
);

// ---- others act

const byId = (name: string, act: (model: Model, store: Store, id: string) => Promise<void>): fc.Arbitrary<Command> =>
  fc.nat().map((at) =>
    command(`${name}(${at})`, async (model, { store }) => {
      const id = pickFrom([...model.jobs.keys()], at);
      if (id !== undefined) await act(model, store, id);
    }),
  );

const cancel = byId("cancel", async (model, store, id) => {
  const wanted = model.cancel(id);
  expect((await cancelIfOpen(store, [id], DAY_MS))[0]?.how).toBe(wanted);
});
const retry = byId("retry", async (model, store, id) => {
  const wanted = model.retry(id);
  expect(await retryIfDead(store, id)).toBe(wanted);
});
const discard = byId("discard", async (model, store, id) => {
  const wanted = model.discard(id);
  expect(await discardIfDead(store, id, DAY_MS)).toBe(wanted);
});

const expire = fc.constant(
  command("expire", async (model, { store }) => {
    const wanted = model.expire();
    const expired = await expireIfOverdue(store, { limit: 100, seenForMs: Infinity, atOnce: true });
    expect(sorted(expired.map((job) => job.id))).toEqual(sorted(wanted));
  }),
);
const bury = fc.constant(
  command("endSetApart", async (model, { store }) => {
    const wanted = model.endSetApart();
    const ended = await endSetApart(store, 100, DAY_MS);
    expect(sorted(ended.map((job) => job.id))).toEqual(sorted(wanted));
  }),
);
const purgeKeys = fc.constant(
  command("expireKeys", async (model, { store }) => {
    model.purgeKeys();
    await expireKeys(store, 1_000);
  }),
);
const advance = fc.constantFrom(1, 300, 1_100, 5_100, 301_000, 700_000).map((ms) =>
  command(`advance(${ms})`, async (model, { database }) => {
    model.now += ms;
    await database.setClock(model.now);
  }),
);

// ---- comparing

interface Row {
  id: string;
  state: string;
  hold: number;
  attempt: number;
  crashes: number;
  claims: number;
  token: string | null;
  payload: number;
  rerun: number | null;
  run_at: Date;
  asked: boolean;
}

async function compare(model: Model, { database }: Real): Promise<void> {
  const { rows } = await database.query<Row>(
    `select id, state::text, hold, attempt, crash_count as crashes, claim_count as claims, token, payload, rerun, run_at,
       cancel_requested_at is not null as asked from ${SCHEMA}.jobs
     union all
     select id, state::text, 0, attempt, 0, claim_count, token, payload, null, run_at, false from ${SCHEMA}.job_history`,
  );
  const seen = rows.map((row) => {
    const isLive = row.state === "pending" || row.state === "running" || row.state === "dead";
    return isLive && row.state !== "dead"
      ? { ...row, run_at: row.run_at.getTime(), token: row.state === "running" ? row.token : null }
      : { id: row.id, state: row.state, attempt: row.attempt, claims: row.claims, payload: row.payload };
  });
  const wanted = [...model.jobs.values()].map((job) =>
    job.state === "pending" || job.state === "running"
      ? {
          id: job.id,
          state: job.state,
          hold: job.hold,
          attempt: job.attempt,
          crashes: job.crashes,
          claims: job.claims,
          token: job.state === "running" ? job.token : null,
          payload: job.payload,
          rerun: job.rerun,
          run_at: job.runAt,
          asked: job.cancelAsked,
        }
      : { id: job.id, state: job.state, attempt: job.attempt, claims: job.claims, payload: job.payload },
  );
  const order = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
  // What was discarded is in the history, dead.
  const known = new Set(model.jobs.keys());
  expect(seen.filter((row) => known.has(row.id)).toSorted(order)).toEqual(wanted.toSorted(order));
  const leases = await database.query<{ token: string; light: boolean; ids: string[] }>(
    `select token, light, job_ids as ids from ${SCHEMA}.leases`,
  );
  const byToken = (a: { token: string }, b: { token: string }): number => Number(a.token) - Number(b.token);
  expect(leases.rows.map((row) => ({ ...row, ids: sorted(row.ids) })).toSorted(byToken)).toEqual(
    [...model.leases.values()].map(({ token, light, jobs }) => ({ token, light, ids: sorted(jobs) })).toSorted(byToken),
  );
}

/** After the last command: the ledger, the attempts, and everything that must hold at any moment. */
export async function compareAll(model: Model, { database }: Real): Promise<void> {
  const keys = await database.query<{ key: string; id: string }>(`select key, job_id as id from ${SCHEMA}.job_keys`);
  expect(Object.fromEntries(keys.rows.map((row) => [row.key, row.id]))).toEqual(
    Object.fromEntries([...model.keys].map(([key, { id }]) => [key, id])),
  );
  const charged = await database.query<{ id: string; count: number }>(
    `select job_id as id, count(*)::integer as count from ${SCHEMA}.attempts group by job_id`,
  );
  expect(Object.fromEntries(charged.rows.map((row) => [row.id, row.count]))).toEqual(Object.fromEntries(model.charged));
  expect(await database.unsound()).toBeUndefined();
}

const COMMANDS = [
  enqueue,
  enqueue,
  claim,
  claim,
  claim,
  settle,
  settle,
  settle,
  settleWhole,
  settleRest,
  beat,
  speak,
  advance,
  advance,
  expire,
  suspect,
  bury,
  cancel,
  retry,
  discard,
  purgeKeys,
  handOver,
];

export interface ModelRunOptions {
  runs: number;
  seed: number;
  size?: number;
  path?: string;
}

/** Throws with the seed and the shortest list of commands on which product and model differ. */
export async function checkModel(database: SimDatabase, startMs: number, options: ModelRunOptions): Promise<void> {
  const { runs, seed, size = 60, path } = options;
  const store = makeStore(asDb(database), SCHEMA);
  await fc.assert(
    fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: size, size: "max" }), async (commands) => {
      await database.empty();
      await database.setClock(startMs);
      const model = new Model(startMs);
      const real = { database, store };
      await fc.asyncModelRun(() => ({ model, real }), commands);
      await compareAll(model, real);
    }),
    {
      numRuns: runs,
      seed,
      endOnFailure: process.env["MODEL_SHRINK"] === undefined,
      ...(path === undefined ? {} : { path }),
    },
  );
}
