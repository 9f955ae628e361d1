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
import { type EndedRun, settleClaim, settleDone, settleLightClaim, settleRuns } from "#src/store/jobs/settle.js";
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
  /** What has to be so before it can do anything: a lease that ran out, a row that is set apart. Not a change of state. */
  prepare?: string;
  send(store: Store, job: Subject): Promise<unknown>;
}

const holderOf = ({ kind, token }: Subject) => ({
  token,
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
          ...{ id, token, keepMs: DAY_MS, keepEndedMs: DAY_MS, outcome, delayMs: 0, group: null },
          ...(outcome === "retry" || outcome === "dead" ? { error: { name: "Error", message: "as the test wants" } } : {}),
        },
      ]),
  };
}

const OVERDUE = "expires_at = expires_at - interval '1 hour'";
const ASKED = "cancel_requested_at = now()";
const WAYS: Way[] = [
  { by: "claim", name: "claim of a lane", to: "running", send: (store, job) => claimLane(store, holderOf(job), laneOf(job), 10) },
  { by: "claim", name: "claim by id", to: "running", send: (store, job) => claimIds(store, holderOf(job), [job.id], [job.kind], 1) },
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
      await claimLight(store, holderOf(job), laneOf(job), { leaseMs: LEASE_MS, attempts: 5, queue: "default" }, 10);
      await markTokens(store, [job.token]);
    },
  },
  settling("done", "done"),
  settling("retry", "pending"),
  settling("retry", "dead", "attempt = max_attempts"),
  settling("retry", "cancelled", ASKED),
  settling("snooze", "pending"),
  settling("release", "pending"),
  settling("dead", "dead"),
  settling("cancelled", "cancelled"),
  settling("done", "pending", "rerun = '{}'"),
  { by: "settle", name: "settle of several", to: "done", send: (store, { id, token }) => settleDone(store, [{ id, token, keepMs: DAY_MS }], []) },
  { by: "settle", name: "settle of a claim", to: "done", send: (store, { id, token }) => settleClaim(store, { token, leaseMs: LEASE_MS }, [id], DAY_MS, true) },
  { by: "expire", name: "expiry", to: "pending", prepare: OVERDUE, send: (store) => expireIfOverdue(store, EXPIRE) },
  { by: "release", name: "release", to: "pending", send: (store, { id }) => releaseIfRunning(store, [id]) },
  { by: "bury", name: "burial of what is set apart", to: "dead", prepare: "hold = 4", send: (store) => endSetApart(store, 100, DAY_MS) },
  { by: "cancel", name: "cancel", to: "cancelled", send: (store, { id }) => cancelIfOpen(store, [id], DAY_MS) },
  { by: "cancel", name: "end of a cancel whose worker died", to: "cancelled", prepare: `hold = 4, ${ASKED}`, send: (store) => endSetApart(store, 100, DAY_MS) },
  { by: "retry", name: "retry", to: "pending", send: (store, { id }) => retryIfDead(store, id) },
  { by: "retry", name: "retry of many", to: "pending", send: (store, { id }) => retryPlain(store, [id]) },
  { by: "discard", name: "discard", to: "dead", send: (store, { id }) => discardIfDead(store, id, DAY_MS) },
];
