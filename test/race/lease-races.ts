// Many races for a lease at its last moment, on real connections: the old run settles (or completes inside a transaction
// with a row of its own) while the lease runs out, janitors expire it and the next worker takes the job over. Exactly one
// of the two is heard, and there is one effect.
//
// Not every one is a meeting: where the settle is over before anybody may expire the lease, or comes when all is done, each
// is alone. They met where the settle found somebody else's lock, or was under way while an expiry was that may have looked
// at this lease: one that was sent when the lease had run out for certain, or that took it.
import { openPostgres } from "#src/db/postgres.js";
import type { Db, QueryOptions } from "#src/db/db.js";
import { isLockTimeout } from "#src/db/retryable.js";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { beatIfHeld } from "#src/store/jobs/beat.js";
import { claimIds, claimSuspect, type Holder } from "#src/store/jobs/claim.js";
import { completeInside, lockIfHeld } from "#src/store/jobs/fence.js";
import { insertJobs } from "#src/store/jobs/insert.js";
import { type EndedRun, settleDone, settleRuns, whyNotSettled } from "#src/store/jobs/settle.js";
import { makeStore } from "#src/store/sql.js";
import type { Random } from "../support/random.ts";
import { asDb } from "../model/simulation/database.ts";
import { newJob, SCHEMA } from "./arena.ts";

export interface Races {
  races: number;
  /** In so many of them the old run's settle and an expiry were at it at the same time. */
  met: number;
  /** Who was heard: the run whose lease ran out, or the one that took over. */
  oldRun: number;
  newRun: number;
  /** A beat in the last moment kept the lease. */
  kept: number;
  violations: string[];
}

/** When something was under way, by this process's clock. */
interface Span {
  from: number;
  to: number;
}
interface Expiry extends Span {
  took: ReadonlySet<string>;
}

const KEEP_MS = 86_400_000;
/** Races last for a second at most, but for those that wait for their turn on a slow machine. */
const KEPT_EXPIRIES_MS = 60_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

export async function raceForLeases(url: string, random: Random, count: number, atOnce = 24): Promise<Races> {
  const db = await openPostgres({ url, poolSize: 24 });
  // Two runs of each race may end at once.
  const speakers = await openPostgres({ url, poolSize: 2 * atOnce });
  await db.query("create table if not exists race_effects (job uuid, token text)");
  const result: Races = { races: 0, met: 0, oldRun: 0, newRun: 0, kept: 0, violations: [] };
  let expiries: Expiry[] = [];
  let begun = 0;
  const lane = async (): Promise<void> => {
    while (begun < count) {
      begun += 1;
      await race({ db, speakers, random, result, expiries: () => expiries });
    }
  };
  // Janitors of other processes, which expire whatever is overdue. On connections of their own: who waits for one is not
  // under way.
  const janitorDb = await openPostgres({ url, poolSize: 2 });
  const query: Db["query"] = async <Row>(text: string, values?: readonly unknown[], options?: QueryOptions) => {
    if (!text.includes("expire_leases")) return await janitorDb.query<Row>(text, values, options);
    const expiry: Expiry = { from: performance.now(), to: Infinity, took: new Set() };
    expiries.push(expiry);
    try {
      const answer = await janitorDb.query<Row>(text, values, options);
      expiry.took = new Set(answer.rows.map((row) => (row as { id: string }).id));
      return answer;
    } finally {
      expiry.to = performance.now();
    }
  };
  const house = makeStore(asDb({ query, transaction: (work) => janitorDb.transaction(work) }), SCHEMA);
  let isOver = false;
  const janitor = async (): Promise<void> => {
    while (!isOver) {
      await patiently(() => expireIfOverdue(house, { limit: 50, seenForMs: Infinity, atOnce: true }));
      const since = performance.now() - KEPT_EXPIRIES_MS;
      if (expiries[0]!.to < since - KEPT_EXPIRIES_MS) expiries = expiries.filter((each) => each.to > since);
      await sleep(random.whole(0, 6));
    }
  };
  const janitors = [janitor(), janitor()];
  try {
    await Promise.all(Array.from({ length: atOnce }, lane));
  } finally {
    isOver = true;
    await Promise.all(janitors);
  }
  const { rows } = await db.query<{ job: string; count: number; state: string | null; token: string | null }>(
    `select h.id as job, (select count(*) from race_effects e where e.job = h.id)::integer as count, h.state::text, h.token
     from ${SCHEMA}.job_history h where (select count(*) from race_effects e where e.job = h.id) <> 1`,
  );
  for (const row of rows) result.violations.push(`job ${row.job} is ${row.state} and has ${row.count} effects`);
  await Promise.all([db, speakers, janitorDb].map((each) => each.close()));
  return result;
}

interface Course {
  db: Db;
  /** For the runs' endings. */
  speakers: Db;
  random: Random;
  result: Races;
  expiries(): readonly Expiry[];
}

async function race({ db, speakers, random, result, expiries }: Course): Promise<void> {
  const store = makeStore(db, SCHEMA);
  const speaker = makeStore(speakers, SCHEMA);
  const kind = `race.${uuidv7()}`;
  const leaseMs = random.whole(15, 40);
  const id = (await insertJobs(store, [newJob({ kind })], null))[0]!.id;
  const holder = (ms: number): Holder => ({
    token: randomToken(),
    workerId: uuidv7(),
    leases: JSON.stringify([{ kind, lease_ms: ms }]),
  });
  const first = holder(leaseMs);
  const claimed = await patiently(() => claimIds(store, first, [id], [kind], 1));
  const claimedAt = performance.now();
  /** It has run out by then, however long the answer was on its way. */
  let goodUntil = claimedAt + leaseMs;
  // Under load even the claim can take as long as the lease: that is a race too.
  if (claimed.length !== 1) return void result.violations.push(`job ${id} could not be claimed`);
  const heard: string[] = [];
  /** The old run's settles, one for each time that it was sent. */
  const settles: Span[] = [];
  let foundLock = false;

  const finish = async (token: string): Promise<boolean> => {
    const run: EndedRun = {
      id,
      token,
      keepMs: KEEP_MS,
      keepEndedMs: KEEP_MS,
      outcome: "done",
      delayMs: 0,
      group: null,
    };
    const inside = random.chance(0.5);
    const quickly = random.chance(0.5);
    const isOld = token === first.token;
    const send = async (): Promise<boolean> =>
      inside
        ? await speakers.transaction(async (tx) => {
            const fenced = speaker.on(tx);
            if (!(await lockIfHeld(fenced, { id, token, leaseMs }))) return false;
            await tx.query("insert into race_effects values ($1, $2)", [id, token]);
            return (await completeInside(fenced, run))?.verdict === "done";
          })
        : quickly
          ? (await settleDone(speaker, [run], [])).has(id)
          : (await settleRuns(speaker, [run])).length === 1;
    const isLocked = async (): Promise<boolean> => (await whyNotSettled(store, [{ id, token }])).get(id) === "locked";
    const onLocked = (): void => void (foundLock ||= isOld);
    let done = false;
    do {
      const from = performance.now();
      done = await patiently(send, onLocked);
      if (isOld) settles.push({ from, to: performance.now() });
      // Somebody else is at the row right now: the product asks again, too.
    } while (!done && (await isLocked()) && (onLocked(), true));
    if (done && !inside) await db.query("insert into race_effects values ($1, $2)", [id, token]);
    if (done) heard.push(token);
    return done;
  };

  const old = async (): Promise<boolean> => {
    await sleep(leaseMs + random.whole(-10, 12) - (performance.now() - claimedAt));
    return await finish(first.token);
  };
  const beats = random.chance(0.2);
  const beat = async (): Promise<string | undefined> => {
    if (!beats) return undefined;
    await sleep(leaseMs + random.whole(-6, 4) - (performance.now() - claimedAt));
    const [beaten] = await patiently(() => beatIfHeld(store, [{ token: first.token, leaseMs }], [], 5_000));
    if (beaten!.state === "renewed") goodUntil = performance.now() + leaseMs;
    return beaten!.state;
  };
  const takeOver = async (): Promise<string | undefined> => {
    const until = performance.now() + 20_000;
    for (;;) {
      const second = holder(30_000);
      const taken = await patiently(() => claimSuspect(store, second, [kind], true));
      if (taken.length === 1) {
        // The old run may still speak meanwhile.
        if (random.chance(0.5)) await sleep(random.whole(0, 10));
        return (await finish(second.token)) ? second.token : undefined;
      }
      const { rows } = await db.query(`select 1 from ${SCHEMA}.jobs where id = $1`, [id]);
      if (rows.length === 0) return undefined;
      if (performance.now() > until) throw new Error(`Job ${id} was never taken over.`);
      await sleep(random.whole(0, 4));
    }
  };
  const [oldDone, beaten, takenBy] = await Promise.all([old(), beat(), takeOver()]);
  result.races += 1;
  if (oldDone) result.oldRun += 1;
  else result.newRun += 1;
  if (beaten === "renewed") result.kept += 1;
  // Whoever comes after the one that took it finds nothing to take.
  const taken = expiries().find((each) => each.took.has(id));
  const mayHaveLooked = expiries().filter(
    (each) => each === taken || (each.from >= goodUntil && each.from < (taken?.to ?? Infinity)),
  );
  const isMet = settles.some((settle) => mayHaveLooked.some(({ from, to }) => from < settle.to && settle.from < to));
  if (foundLock || isMet) result.met += 1;
  const fail = (what: string): void => void result.violations.push(`job ${id}: ${what}`);
  if (heard.length !== 1) fail(`${heard.length} runs were heard`);
  if (oldDone === (takenBy !== undefined)) fail(`old run ${oldDone}, new run ${takenBy}`);
  const { rows } = await db.query<{ token: string; state: string }>(
    `select token, state::text from ${SCHEMA}.job_history where id = $1`,
    [id],
  );
  if (rows.length !== 1 || rows[0]!.token !== heard[0]) fail(`settled as ${JSON.stringify(rows)}, heard ${heard[0]}`);
  const why = (await whyNotSettled(store, [{ id, token: first.token }])).get(id);
  if (why !== (oldDone ? "done" : "lost")) fail(`the old run was told "${why}"`);
}

/** Statements that give up after a short wait for a lock are sent again, as the product does. */
async function patiently<T>(work: () => Promise<T>, onLocked?: () => void): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      onLocked?.();
    }
  }
}
