// Every hot statement uses its index and visits a bounded number of rows: on an empty table, on one that grew after its
// plan was made and never was analysed, and with many finished and a hundred thousand waiting rows; with 1, 20 and 200
// kinds. The plans are those that really ran, also inside the routines: auto_explain hands them over as notices.
// PLANS_FINISHED=500000 is what `npm run test:faults` has.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { claimIds, claimLane, claimLanes, claimSuspect, type LanePosition } from "#src/store/jobs/claim.js";
import { claimLight } from "#src/store/jobs/claim-light.js";
import { markTokens } from "#src/store/jobs/mark.js";
import { findExisting, insertJobs } from "#src/store/jobs/insert.js";
import { countJobs, findJobs } from "#src/store/jobs/find.js";
import { lookAhead, lookBack } from "#src/store/jobs/look.js";
import { progressIfRunning } from "#src/store/jobs/progress.js";
import { readAttempts, readJob } from "#src/store/jobs/read.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { settleClaim, settleDone, settleLightClaim, settleRuns, whyNotSettled } from "#src/store/jobs/settle.js";
import { listDeadGroups, listErrors } from "#src/store/errors/list.js";
import { listNotes } from "#src/store/notes/list.js";
import { unservedKinds } from "#src/store/stats/unserved.js";
import type { Store } from "#src/store/sql.js";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { Session } from "../support/explain.ts";
import { useHoldfast } from "../support/open-test.ts";
import { purgeEarly, purgeKeys } from "../support/purge.ts";

const FINISHED = Number(process.env["PLANS_FINISHED"] ?? 200_000);
const WAITING = 100_000;
const GROUPED = 10_000;
/** The biggest tables; nothing hot may walk them. */
const WATCHED = /^(jobs|job_history(_\d+)?|job_keys|leases|job_groups|attempts)$/;

const NIL_ID = "00000000-0000-0000-0000-000000000000";
const KINDS = { 1: ["one"], 20: names("twenty", 20), 200: names("many", 200) } as const;

function names(stem: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${stem}.${n}`);
}

const holder = (kinds: readonly string[]) => ({
  token: randomToken(),
  workerId: uuidv7(),
  leases: JSON.stringify(kinds.map((kind) => ({ kind, lease_ms: 30_000 }))),
});

const lanesOf = (kinds: readonly string[], fromUs = "0"): LanePosition[] =>
  kinds.map((kind) => ({ kind, rank: 0, fromUs, fromId: NIL_ID }));

const gapsOf = (kinds: readonly string[]): { kind: string; lo: number; hi: number }[] =>
  kinds.flatMap((kind) => [
    { kind, lo: -101, hi: 0 },
    { kind, lo: 0, hi: 101 },
  ]);

/** What each claim of `claimed` and `claimedLightly` took since it was emptied. */
const took: number[] = [];

/** Claims some, and hands over what a settle needs. */
async function claimed(store: Store, limit: number): Promise<{ token: string; ids: string[] }> {
  const held = holder(KINDS[1]);
  const jobs = await claimLane(store, held, lanesOf(KINDS[1])[0]!, limit);
  took.push(jobs.length);
  return { token: held.token, ids: jobs.map(({ id }) => id) };
}

async function claimedLightly(store: Store, limit: number): Promise<{ token: string; ids: string[] }> {
  const held = holder(KINDS[1]);
  const kind = { leaseMs: 30_000, attempts: 5, queue: "default" };
  const { jobs } = await claimLight(store, held, lanesOf(KINDS[1])[0]!, kind, limit);
  took.push(jobs.length);
  return { token: held.token, ids: jobs.map(({ id }) => id) };
}

/** `ends`: its plan is one that writes into this table, besides that of the claim before it. */
type Verb = [name: string, most: number, run: (store: Store) => Promise<unknown>, ends?: string];

const AT_ONCE = 100;
/** Microseconds of a time when everything that waits is already due. */
const middle = (): string => String((Date.now() - 1_800_000) * 1_000);

const VERBS: Verb[] = [
  ["claim of one lane", 10 * AT_ONCE, (store) => claimLane(store, holder(KINDS[1]), lanesOf(KINDS[1])[0]!, AT_ONCE)],
  [
    "claim of one lane in a hurry",
    10 * AT_ONCE,
    (store) => claimLane(store, holder(KINDS[1]), lanesOf(KINDS[1])[0]!, AT_ONCE, true),
  ],
  [
    "claim of one lane from the middle",
    10 * AT_ONCE,
    (store) => claimLane(store, holder(KINDS[1]), lanesOf(KINDS[1], middle())[0]!, AT_ONCE),
  ],
  ...([20, 200] as const).map((count): Verb => [
    `claim of ${count} lanes`,
    count * 16 + 10 * AT_ONCE,
    (store) => claimLanes(store, holder(KINDS[count]), lanesOf(KINDS[count]), 16, AT_ONCE),
  ]),
  [
    "claim by id",
    1_000,
    (store) =>
      claimIds(
        store,
        holder(KINDS[1]),
        Array.from({ length: 64 }, (_, n) => jobId(n * 97)),
        [...KINDS[1]],
        64,
      ),
  ],
  ...([1, 20, 200] as const).flatMap((count): Verb[] => [
    [
      `claim of a suspect of ${count} kinds`,
      20 * count + 100,
      (store) => claimSuspect(store, holder(KINDS[count]), [...KINDS[count]], true),
    ],
    [
      `look ahead with ${count} kinds`,
      10 * count + 100,
      (store) => lookAhead(store, lanesOf(KINDS[count]), gapsOf(KINDS[count]), [...KINDS[count]]),
    ],
    [
      `look ahead with ${count} kinds, of which no lane is known`,
      10 * count + 100,
      (store) =>
        lookAhead(
          store,
          [],
          KINDS[count].map((kind) => ({ kind, lo: -101, hi: 101 })),
          [...KINDS[count]],
        ),
    ],
    [
      `look back with ${count} kinds, where nothing is`,
      10 * count + 100,
      (store) => lookBack(store, lanesOf(KINDS[count]), 64),
    ],
    [
      `look back with ${count} kinds, where much is`,
      64 * count + 100,
      (store) => lookBack(store, lanesOf(KINDS[count], middle()), 64),
    ],
  ]),
  ["insert", 100, (store) => insertJobs(store, [newJob({}), newJob({})], null)],
  [
    "insert with keys, groups and coalescing",
    200,
    (store) =>
      insertJobs(
        store,
        [newJob({ key: "key 7", keepKeyMs: 1 }), newJob({ group: "g" }), newJob({ coalesceKey: "c" })],
        null,
      ),
  ],
  ["looking for ids that are there already", 300, (store) => findExisting(store, [jobId(1), historyId(7), uuidv7()])],
  [
    "settle of one claim",
    20 * AT_ONCE,
    async (store) => {
      const { token, ids } = await claimed(store, AT_ONCE);
      expect(await settleClaim(store, { token, leaseMs: 30_000 }, ids, 604_800_000, true)).toBe(true);
    },
    "job_history",
  ],
  [
    "a light claim and its settle",
    20 * AT_ONCE,
    async (store) => {
      const { token, ids } = await claimedLightly(store, AT_ONCE);
      expect(await settleClaim(store, { token, leaseMs: 30_000 }, ids, 604_800_000, true)).toBe(true);
    },
    "job_history",
  ],
  [
    "a light claim beside others",
    40 * AT_ONCE,
    async (store) => {
      await claimedLightly(store, AT_ONCE);
      await claimedLightly(store, AT_ONCE);
      await lookBack(store, lanesOf(KINDS[1]), 64);
    },
  ],
  [
    "settle of a whole light claim",
    30 * AT_ONCE,
    async (store) => {
      const { token, ids } = await claimedLightly(store, AT_ONCE);
      expect(await settleLightClaim(store, { token, leaseMs: 30_000 }, ids.length, 604_800_000)).toBe(true);
    },
    "job_history",
  ],
  [
    "marking a light claim",
    30 * AT_ONCE,
    async (store) => {
      const { token } = await claimedLightly(store, AT_ONCE);
      await markTokens(store, [token]);
    },
  ],
  [
    "settle of runs of several claims",
    20 * AT_ONCE,
    async (store) => {
      const { token, ids } = await claimed(store, AT_ONCE);
      const done = await settleDone(
        store,
        ids.map((id) => ({ id, token, keepMs: 604_800_000 })),
        [{ token, leaseMs: 30_000 }],
      );
      expect(done.size).toBe(ids.length);
    },
    "job_history",
  ],
  [
    "settle of failures",
    30 * AT_ONCE,
    async (store) => {
      const { token, ids } = await claimed(store, AT_ONCE);
      const outcomes = ["retry", "dead", "snooze", "release", "cancelled"] as const;
      const ended = ids.map((id, n) => ({
        id,
        token,
        keepMs: null,
        keepEndedMs: null,
        outcome: outcomes[n % outcomes.length]!,
        delayMs: 1_000,
        error: { name: "Error", message: "no" },
        group: null,
      }));
      expect(await settleRuns(store, ended)).toHaveLength(ids.length);
      await whyNotSettled(store, [...ended.slice(0, 20), { id: historyId(5), token: "7" }]);
    },
    "attempts",
  ],
  [
    "progress",
    20 * AT_ONCE,
    async (store) => {
      const { token, ids } = await claimed(store, AT_ONCE);
      const heard = await progressIfRunning(
        store,
        ids.map((id) => ({ id, token, done: 1, total: 2, note: null })),
      );
      expect(heard.size).toBe(ids.length);
    },
  ],
  [
    "beat",
    20 * AT_ONCE,
    async (store) => {
      const { token } = await claimed(store, AT_ONCE);
      await beatIfHeld(store, [{ token, leaseMs: 30_000 }], [], 1_000);
    },
  ],
  ["expire", 5_000, (store) => expireIfOverdue(store, { limit: AT_ONCE, atOnce: true, seenForMs: Infinity })],
  ["burying what crashed too often", 500, (store) => endSetApart(store, 100, null)],
  ["cancel", 200, (store) => cancelIfOpen(store, [jobId(3)], null)],
  ["cancel of the head of a group", 300, (store) => cancelIfOpen(store, [groupedId(40)], null)],
  ["retry", 100, (store) => retryIfDead(store, jobId(4))],
  [
    "reading a job and its attempts",
    100,
    async (store) => [await readJob(store, historyId(9)), await readAttempts(store, jobId(9))],
  ],
  // Screens. A search looks at a window of the newest, whatever it looks for.
  ["a page of the newest jobs", 2_000, (store) => findJobs(store, {}, null, 50)],
  ["a page from the middle", 2_000, (store) => findJobs(store, {}, historyId(500_000), 50)],
  ["a search that finds nothing", 100_000, (store) => findJobs(store, { kind: "nobody's" }, null, 50)],
  ["dead jobs", 2_000, (store) => findJobs(store, { statuses: ["dead"] }, null, 50)],
  [
    "dead jobs of one error",
    2_000,
    (store) => findJobs(store, { statuses: ["dead"], kind: "one", fingerprint: "unknown" }, null, 50),
  ],
  ["running jobs", 10_000, (store) => findJobs(store, { statuses: ["running", "stuck"] }, null, 50)],
  ["counting what waits in a queue", 250_000, (store) => countJobs(store, { statuses: ["ready"], queue: "default" })],
  ["dead jobs by what killed them", 5_000, (store) => listDeadGroups(store, 100)],
  ["errors", 1_000, (store) => listErrors(store, { kind: null, queue: null, limit: 100 })],
  ["kinds without a worker", 10_000, (store) => unservedKinds(store, 20)],
  ["what a job has finished", 100, (store) => listNotes(store, jobId(9))],
  ["purge of finished jobs", 5_000, (store) => purgeEarly(store, 1_000)],
  ["purge of keys", 5_000, (store) => purgeKeys(store, 1_000)],
];

function newJob(more: Partial<Parameters<typeof insertJobs>[1][number]>) {
  return { id: uuidv7(), kind: "one", queue: "default", rank: 0, attempts: 5, payload: "{}", ...more };
}

const hexId = (letter: string, n: number): string =>
  `0000000${letter}-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
const jobId = (n: number): string => hexId("a", n);
const historyId = (n: number): string => hexId("b", n);
const groupedId = (n: number): string => hexId("c", n);

/** Rows as a busy system has them; the ids as hexId() writes them. */
const GROW = `
  insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, hold, state)
  select ('0000000a-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
    now() - interval '1 hour' + n * interval '30 milliseconds', now(), 5, 0,
    case n % 10 when 0 then 'twenty.' || n / 10 % 20 when 1 then 'many.' || n / 10 % 200 else 'one' end,
    'default', '{}', case when n % 5000 = 9 then 2 when n % 5000 = 8 then 3 when n % 5000 = 7 then 4 else 0 end,
    case when n % 5000 = 8 then 'dead'::holdfast.job_state else 'pending' end
  from generate_series(1, ${WAITING}) as n;

  insert into holdfast.job_history (id, finished_at, created_at, run_at, started_at, purge_at, purge_early, token, attempt,
    max_attempts, claim_count, rank, state, kind, queue, payload)
  select ('0000000b-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
    date_trunc('day', now(), 'UTC') + (n % 5) * interval '1 day' + n * interval '1 millisecond', now(), now(), now(),
    now() + (n % 700 - 10) * interval '1 hour', n % 20 = 0, n, 1, 5, 1, 0, 'done', 'one', 'default', '{}'
  from generate_series(1, ${FINISHED}) as n;

  insert into holdfast.job_keys (kind, key, job_id, payload_hash, created_at, expires_at)
  select 'one', 'key ' || n, ('0000000b-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), now(),
    now() + (n % 700 - 10) * interval '1 hour'
  from generate_series(1, 100000) as n;

  insert into holdfast.attempts (job_id, claim_count, attempt, started_at, failed_at, outcome, error)
  select ('0000000a-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 1, now(), now(), 'retry', '{}'
  from generate_series(1, 50000) as n;

  insert into holdfast.job_groups (name, head, tail)
  select 'group ' || n, ('0000000c-0000-7000-8000-' || lpad(to_hex(2 * n), 12, '0'))::uuid, 2
  from generate_series(1, ${GROUPED / 2}) as n;

  insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, hold, group_key, group_seq)
  select ('0000000c-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), 5, 0, 'grouped', 'default', '{}',
    n % 2, 'group ' || n / 2, 1 + n % 2
  from generate_series(2, ${GROUPED + 1}) as n;

  insert into holdfast.leases (token, lease_ms, expires_at, worker_id, job_ids)
  select n, 30000, now() + (n - 50) * interval '1 second', gen_random_uuid(), array[gen_random_uuid()]
  from generate_series(1, 2000) as n;`;

describe("plans", () => {
  const bench = useHoldfast("server");
  const sessions: Session[] = [];
  let early: Session;

  async function openSession(): Promise<Session> {
    const session = await Session.open(bench.url, bench.store, WATCHED);
    sessions.push(session);
    return session;
  }

  beforeAll(async () => {
    early = await openSession();
    // Analysed while there is nothing: the planner believes that there never will be.
    await bench.db.script("analyze");
  });
  afterAll(async () => {
    await Promise.all(sessions.map((session) => session.client.end()));
    // Made up, and not what a real run would leave.
    await bench.db.script(
      "truncate holdfast.jobs, holdfast.job_history, holdfast.job_groups, holdfast.leases, holdfast.attempts",
    );
  });

  async function check(session: Session, [name, most, run]: Verb): Promise<string> {
    took.length = 0;
    const { plans, seqScans, visited, detail } = await session.explain(run);
    expect(plans, name).toBeGreaterThan(0);
    expect(seqScans, `${name}: ${detail}`).toEqual([]);
    expect(visited, `${name}: ${detail}`).toBeLessThanOrEqual(most);
    return detail;
  }

  test.each([[], [1]])(
    "the explaining itself works: a walk through a table is seen, with parameters %j",
    async (...values) => {
      const where = values.length === 0 ? "" : "where attempt = $1";
      const seen = await early.explain((store) =>
        store.query({ textIn: (schema) => `select count(*) from ${schema}.jobs ${where}` }, values),
      );
      expect(seen.plans).toBe(1);
      expect(seen.detail).toContain("on jobs");
    },
  );

  describe("on empty tables", () => {
    test.each(VERBS)("%s", async (...verb) => void (await check(early, verb)));
  });

  /** The same where something waits: a verb that claims has claimed. */
  async function checkFull(session: Session, verb: Verb): Promise<void> {
    const detail = await check(session, verb);
    const [name, , , ends] = verb;
    expect(took, name).not.toContain(0);
    if (ends !== undefined) expect(detail, name).toContain(`ModifyTable on ${ends}:`);
  }

  describe("on tables that grew after the plans were made, and were not analysed", () => {
    beforeAll(async () => {
      await bench.db.script(
        `alter table holdfast.jobs set (autovacuum_enabled = off); set synchronous_commit = off; ${GROW}`,
        { timeoutMs: 120_000 },
      );
    }, 150_000);
    test.each(VERBS)("%s", (...verb) => checkFull(early, verb));

    test("and in a session that makes its plans now", async () => {
      const late = await openSession();
      for (const verb of VERBS) await checkFull(late, verb);
    });
  });

  describe(`with ${FINISHED} finished and ${WAITING} waiting rows, analysed`, () => {
    beforeAll(() => bench.db.script("vacuum analyze", { timeoutMs: 120_000 }), 150_000);
    test.each(VERBS)("%s", (...verb) => checkFull(early, verb));

    test("and in a session that makes its plans now", async () => {
      const late = await openSession();
      for (const verb of VERBS) await checkFull(late, verb);
    });

    test("there really are as many rows", async () => {
      const { rows } = await bench.db.query(
        `select (select count(*) from holdfast.jobs) as waiting, (select count(*) from holdfast.job_history) as finished`,
      );
      expect(rows).toEqual([{ waiting: String(WAITING + GROUPED), finished: String(FINISHED) }]);
      expect(await readJob(bench.store, historyId(77))).toMatchObject({ state: "done" });
      expect(await readJob(bench.store, randomUUID())).toBeUndefined();
    });
  });
});
