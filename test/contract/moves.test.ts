// The table of moves (src/job/states.ts) against the database: each verb is sent about a job in each state. A move that is in
// the table is made, and gives that state; where none is, the row stays as it was.
import { describe, expect, test } from "vitest";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { JOB_STATES, type JobState, TRANSITIONS } from "#src/job/states.js";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { claimIds, claimLane, claimSuspect } from "#src/store/jobs/claim.js";
import { claimLight } from "#src/store/jobs/claim-light.js";
import { discardIfDead } from "#src/store/jobs/discard.js";
import { insertJobs } from "#src/store/jobs/insert.js";
import { markTokens } from "#src/store/jobs/mark.js";
import { releaseIfRunning } from "#src/store/jobs/release.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { retryPlain } from "#src/store/jobs/retry-many.js";
import { type EndedRun, settleClaim, settleDone, settleRuns } from "#src/store/jobs/settle.js";
import type { Store } from "#src/store/sql.js";
import { uniqueName } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";

const LEASE_MS = 30_000;
const DAY_MS = 86_400_000;
const EXPIRE = { limit: 100, seenForMs: Infinity, atOnce: true };

/** A job as it stands. Every one has a token by which it was, or might have been, claimed. */
interface Subject {
  id: string;
  kind: string;
  token: string;
}

type Verb = (typeof TRANSITIONS)[number]["by"];
interface Way {
  by: Verb;
  name: string;
  /** What it makes of a job that it may move. */
  to: JobState;
  /** What has to be so before it can do that: a lease that ran out, a row that is set apart. Not a change of state. */
  prepare?: string;
  send(store: Store, job: Subject): Promise<unknown>;
}

/** Somebody who wants to have it, and is not the one who may have it. */
const holderOf = ({ kind }: Subject) => ({
  token: randomToken(),
  workerId: uuidv7(),
  leases: JSON.stringify([{ kind, lease_ms: LEASE_MS }]),
});
const laneOf = ({ kind }: Subject) => ({ kind, rank: 0, fromUs: "0", fromId: "00000000-0000-0000-0000-000000000000" });

function settling(outcome: EndedRun["outcome"], to: JobState, prepare?: string): Way {
  return {
    by: "settle",
    name: `settle as ${outcome}${prepare === undefined ? "" : ` (${prepare})`}`,
    to,
    ...(prepare === undefined ? {} : { prepare }),
    send: (store, { id, token }) =>
      settleRuns(store, [
        {
          id,
          token,
          keepMs: DAY_MS,
          keepEndedMs: DAY_MS,
          outcome,
          delayMs: 0,
          group: null,
          ...(outcome === "retry" || outcome === "dead"
            ? { error: { name: "Error", message: "as the test wants" } }
            : {}),
        },
      ]),
  };
}

const OVERDUE = "expires_at = expires_at - interval '1 hour'";
const ASKED = "cancel_requested_at = now()";
const WAYS: Way[] = [
  {
    by: "claim",
    name: "claim of a lane",
    to: "running",
    send: (store, job) => claimLane(store, holderOf(job), laneOf(job), 10),
  },
  {
    by: "claim",
    name: "claim by id",
    to: "running",
    send: (store, job) => claimIds(store, holderOf(job), [job.id], [job.kind], 1),
  },
  {
    by: "claim",
    name: "claim of a suspect",
    to: "running",
    prepare: "hold = 2",
    send: (store, job) => claimSuspect(store, holderOf(job), [job.kind], true),
  },
  {
    by: "claim",
    name: "light claim, marked",
    to: "running",
    async send(store, job) {
      const by = holderOf(job);
      await claimLight(store, by, laneOf(job), { leaseMs: LEASE_MS, attempts: 5, queue: "default" }, 10);
      await markTokens(store, [by.token]);
    },
  },
  settling("done", "done"),
  settling("retry", "pending"),
  settling("retry", "dead", "attempt = max_attempts, claim_count = max_attempts"),
  settling("retry", "cancelled", ASKED),
  settling("snooze", "pending"),
  settling("release", "pending"),
  settling("dead", "dead"),
  settling("cancelled", "cancelled"),
  settling("done", "pending", "rerun = '{}'"),
  {
    by: "settle",
    name: "settle of several",
    to: "done",
    send: (store, { id, token }) => settleDone(store, [{ id, token, keepMs: DAY_MS }], []),
  },
  {
    by: "settle",
    name: "settle of a claim",
    to: "done",
    send: (store, { id, token }) => settleClaim(store, { token, leaseMs: LEASE_MS }, [id], DAY_MS, true),
  },
  { by: "expire", name: "expiry", to: "pending", prepare: OVERDUE, send: (store) => expireIfOverdue(store, EXPIRE) },
  { by: "release", name: "release", to: "pending", send: (store, { id }) => releaseIfRunning(store, [id]) },
  {
    by: "bury",
    name: "burial of what is set apart",
    to: "dead",
    prepare: `hold = 4, crash_count = 3, claim_count = 3, started_at = now(), last_error = '{"name": "Crashed", "message": "thrice"}'`,
    send: (store) => endSetApart(store, 100, DAY_MS),
  },
  { by: "cancel", name: "cancel", to: "cancelled", send: (store, { id }) => cancelIfOpen(store, [id], DAY_MS) },
  {
    by: "cancel",
    name: "end of a cancel whose worker died",
    to: "cancelled",
    prepare: `hold = 4, ${ASKED}`,
    send: (store) => endSetApart(store, 100, DAY_MS),
  },
  { by: "retry", name: "retry", to: "pending", send: (store, { id }) => retryIfDead(store, id) },
  { by: "retry", name: "retry of many", to: "pending", send: (store, { id }) => retryPlain(store, [id]) },
  { by: "discard", name: "discard", to: "dead", send: (store, { id }) => discardIfDead(store, id, DAY_MS) },
];

const PENDING_FIRST = new Set<Verb>(["claim", "bury", "cancel"]);

/** One of a kind of its own, in this state, made by the verbs that lead there. */
async function make(store: Store, state: JobState): Promise<Subject> {
  const job: Subject = { id: uuidv7(), kind: uniqueName("moves"), token: randomToken() };
  const { id, kind, token } = job;
  await insertJobs(store, [{ id, kind, queue: "default", rank: 0, attempts: 5, payload: "{}" }], null);
  if (state === "pending") return job;
  if (state === "cancelled") {
    await cancelIfOpen(store, [id], DAY_MS);
    return job;
  }
  await claimIds(store, { ...holderOf(job), token }, [id], [kind], 1);
  if (state === "done") await settleDone(store, [{ id, token, keepMs: DAY_MS }], []);
  if (state === "dead") await settling("dead", "dead").send(store, job);
  return job;
}

async function makeReady({ db }: Bench, { by, prepare: change }: Way, { id, token }: Subject): Promise<void> {
  if (change === undefined) return;
  if (change === OVERDUE) await db.query(`update holdfast.leases set ${change} where token = $1::bigint`, [token]);
  else {
    const state = PENDING_FIRST.has(by) ? "pending" : "running";
    await db.query(`update holdfast.jobs set ${change} where id = $1::uuid and state = '${state}'`, [id]);
  }
}

interface Standing {
  place: "jobs" | "history";
  state: JobState;
  row: unknown;
}

/** All of its row, but for a cancel that a running job was asked for. */
async function standing({ db }: Bench, { id }: Subject): Promise<Standing[]> {
  const { rows } = await db.query<Standing>(
    `select 'jobs' as place, state::text, to_jsonb(j) - 'cancel_requested_at' as row from holdfast.jobs j where id = $1::uuid
     union all select 'history', state::text, to_jsonb(h) from holdfast.job_history h where id = $1::uuid`,
    [id],
  );
  return rows;
}

test("every move of the table is tried", () => {
  const tried = ({ to, by }: { to: JobState; by: Verb }): boolean => WAYS.some((way) => way.by === by && way.to === to);
  expect(TRANSITIONS.filter((move) => !tried(move))).toEqual([]);
});

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  const cases = WAYS.flatMap((way) => JOB_STATES.map((state) => [state, way.name, way] as const));

  test.each(cases)("a job that is %s: %s does what the table says", async (state, _, way) => {
    const { store } = bench;
    const job = await make(store, state);
    await makeReady(bench, way, job);
    const before = await standing(bench, job);
    expect(before).toMatchObject([{ state }]);
    await way.send(store, job);
    const after = await standing(bench, job);
    const isMove = TRANSITIONS.some((move) => move.from === state && move.by === way.by && move.to === way.to);
    if (!isMove) return expect(after).toEqual(before);
    const isOver = way.to === "done" || way.to === "cancelled" || way.by === "discard";
    expect(after).toMatchObject([{ state: way.to, place: isOver ? "history" : "jobs" }]);
    expect(after).not.toEqual(before);
    // Sent again it moves nothing: it is not there any more.
    if (way.by === "settle" || way.by === "discard") {
      await way.send(store, job);
      expect(await standing(bench, job)).toEqual(after);
    }
  });
});
