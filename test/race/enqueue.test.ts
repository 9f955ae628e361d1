// Accepting work while others hold the same keys, groups and rows. Real connections, real locks.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { defineJob, type Holdfast, open } from "#src/index.js";
import { insertJobs } from "#src/store/jobs/insert.js";
import { settleDone } from "#src/store/jobs/settle.js";
import { type Session, watch } from "../support/locks.ts";
import { type Arena, newJob, openArena, SCHEMA } from "./arena.ts";
import { purgeEarly, purgeKeys } from "../support/purge.ts";
import { makeRandom, seedFrom } from "../support/random.ts";

const SEED = seedFrom(process.env["RACE_SEED"]);

let arena: Arena;
let other: Session;
let hf: Holdfast;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
  hf = await open({ database: arena.url, schema: SCHEMA });
});
afterEach(() => other.rollback());
afterAll(async () => {
  await hf.close();
  await arena.close();
});

const kind = defineJob("race", { run: () => undefined });
let keys = 0;
const freshKey = (): string => `key${(keys += 1)}`;

async function jobsWithKey(key: string): Promise<string[]> {
  const { rows } = await arena.watcher.query<{ id: string }>(
    `select id from ${SCHEMA}.jobs where key = $1 union all select id from ${SCHEMA}.job_history where key = $1`,
    [key],
  );
  return rows.map((row) => row.id);
}

for (const end of ["commit", "rollback"] as const) {
  test(`an enqueue waits for the same key in an open transaction (${end}); its neighbours do not`, async () => {
    const key = freshKey();
    await other.begin();
    const first = await hf.enqueue(kind, 1, { key, tx: other.client });
    // In one turn of the event loop, so that they share a statement.
    const second = watch(hf.enqueue(kind, 1, { key }));
    const neighbours = Promise.all([
      ...Array.from({ length: 20 }, () => hf.enqueue(kind, 0)),
      ...Array.from({ length: 20 }, () => hf.enqueue(kind, 0, { key: freshKey() })),
      hf.enqueue(kind, 0, { group: "g" }),
      hf.enqueue(kind, 0, { coalesce: freshKey() }),
    ]);
    const startedAt = performance.now();
    await neighbours;
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    // Later ones, too.
    await Promise.all([hf.enqueue(kind, 0, { key: freshKey() }), hf.enqueue(kind, 0)]);
    expect(performance.now() - startedAt).toBeLessThan(3_500);
    expect(second.isSettled).toBe(false);
    await arena.blocks(other);
    await other[end]();
    const result = await second.promise;
    if (end === "commit") expect(result).toMatchObject({ id: first.id, created: false, conflict: false });
    else expect(result.created).toBe(true);
    expect(await jobsWithKey(key)).toEqual([result.id]);
  });
}

test("an enqueue with another payload that waited for the key is told of the conflict", async () => {
  const key = freshKey();
  await other.begin();
  const first = await hf.enqueue(kind, { v: 1 }, { key, tx: other.client });
  const second = hf.enqueue(kind, { v: 2 }, { key });
  await arena.blocks(other);
  await other.commit();
  expect(await second).toMatchObject({ id: first.id, created: false, conflict: true });
  expect(await arena.live(first.id)).toMatchObject({ payload: { v: 1 } });
});

test("many enqueues that wait for one key do not keep the process from anything else", async () => {
  const key = freshKey();
  await other.begin();
  await hf.enqueue(kind, 1, { key, tx: other.client });
  const waiting = Array.from({ length: 40 }, () => watch(hf.enqueue(kind, 1, { key })));
  await arena.blocks(other);
  // Past the short wait that they share: from here each waits for itself.
  await arena.watcher.query("select pg_sleep(0.5)");
  const startedAt = performance.now();
  await hf.enqueue(kind, 0);
  await hf.jobs.list({ limit: 1 });
  expect(performance.now() - startedAt).toBeLessThan(2_500);
  expect(waiting.some((call) => call.isSettled)).toBe(false);
  await other.commit();
  const ids = new Set((await Promise.all(waiting.map((call) => call.promise))).map((result) => result.id));
  expect(ids.size).toBe(1);
});

test("one key from sixteen connections at once is one job, and all are told the same id", async () => {
  for (let round = 0; round < 10; round += 1) {
    const key = freshKey();
    const results = await Promise.all(
      Array.from({ length: 16 }, () => insertJobs(arena.store, [newJob({ key, payload: "1" })], null)),
    );
    const all = results.flat();
    expect(all.filter((result) => result.created)).toHaveLength(1);
    expect(new Set(all.map((result) => result.id)).size).toBe(1);
    expect(await jobsWithKey(key)).toEqual([all[0]!.id]);
  }
});

async function finishedJob(key: string): Promise<string> {
  const run = await arena.running({ key, payload: "1" });
  await settleDone(arena.store, [{ ...run, keepMs: 0 }], []);
  return run.id;
}

test("a redelivery that comes while the finished job is purged, and after, is the same job", async () => {
  const key = freshKey();
  const id = await finishedJob(key);
  await other.begin();
  expect(await purgeEarly(other.store(SCHEMA), 1_000)).toBeGreaterThan(0);
  expect(await hf.enqueue(kind, 1, { key })).toMatchObject({ id, created: false, conflict: false });
  await other.commit();
  expect(await jobsWithKey(key)).toEqual([]);
  expect(await hf.enqueue(kind, 1, { key })).toMatchObject({ id, created: false, conflict: false });
  expect(await purgeKeys(arena.store, 1_000)).toBe(0);
  expect(await hf.enqueue(kind, 2, { key })).toMatchObject({ id, created: false, conflict: true });
  expect(await jobsWithKey(key)).toEqual([]);
});

async function endKeyLife(key: string, session: Session = arena.watcher): Promise<void> {
  await session.query(`update ${SCHEMA}.job_keys set expires_at = now() - interval '1 second' where key = $1`, [key]);
}

const fromSql = `select id, created from ${SCHEMA}.enqueue('race', '1', key => $1)`;
const askedBy = {
  "the client": async (key: string, session?: Session) =>
    (await insertJobs(session?.store(SCHEMA) ?? arena.store, [newJob({ key, payload: "1" })], null))[0]!,
  SQL: async (key: string, session?: Session) =>
    (await (session ?? (await arena.session())).query<{ id: string; created: boolean }>(fromSql, [key])).rows[0]!,
};

for (const [who, ask] of Object.entries(askedBy)) {
  for (const was of ["free", "over"]) {
    test(`a key that was ${was}, waited for longer than it is kept, is the job's of whoever took it (${who})`, async () => {
      const key = freshKey();
      if (was === "over") {
        await finishedJob(key);
        await endKeyLife(key);
      }
      await other.begin();
      const first = await ask(key, other);
      expect(first.created).toBe(true);
      // Its transaction stays open for so long.
      await endKeyLife(key, other);
      const asking = ask(key);
      await arena.blocks(other);
      await other.commit();
      expect(await asking).toMatchObject({ id: first.id, created: false });
      const { rows } = await arena.watcher.query(`select id from ${SCHEMA}.jobs where key = $1`, [key]);
      expect(rows).toEqual([{ id: first.id }]);
    });
  }
}

for (const end of ["commit", "rollback"] as const) {
  test(`a redelivery that meets the purge of its key's last moment is one new job (${end})`, async () => {
    const key = freshKey();
    const id = await finishedJob(key);
    await endKeyLife(key);
    await other.begin();
    expect(await purgeKeys(other.store(SCHEMA), 1_000)).toBe(1);
    const deliveries = [hf.enqueue(kind, 1, { key }), hf.enqueue(kind, 1, { key })];
    await arena.blocks(other);
    await other[end]();
    const results = await Promise.all(deliveries);
    expect(results.filter((result) => result.created)).toHaveLength(1);
    expect(new Set(results.map((result) => result.id)).size).toBe(1);
    expect(results[0]!.id).not.toBe(id);
    expect(await purgeKeys(arena.store, 1_000)).toBe(0);
  });
}

test("a purge does not take a key that an open enqueue has just renewed", async () => {
  const key = freshKey();
  await finishedJob(key);
  await endKeyLife(key);
  await other.begin();
  const renewed = await hf.enqueue(kind, 1, { key, tx: other.client });
  expect(renewed.created).toBe(true);
  expect(await purgeKeys(arena.store, 1_000)).toBe(0);
  await other.commit();
  expect(await purgeKeys(arena.store, 1_000)).toBe(0);
  expect(await hf.enqueue(kind, 1, { key })).toMatchObject({ id: renewed.id, created: false });
});

test("a key outlives its life while its job waits, runs or is dead", async () => {
  const pending = freshKey();
  const [id] = await arena.insert([{ key: pending, payload: "1" }]);
  const dead = freshKey();
  const deadId = await arena.dead({ key: dead, payload: "1" });
  await endKeyLife(pending);
  await endKeyLife(dead);
  expect(await purgeKeys(arena.store, 1_000)).toBe(0);
  expect(await hf.enqueue(kind, 1, { key: pending })).toMatchObject({ id, created: false });
  expect(await hf.enqueue(kind, 1, { key: dead })).toMatchObject({ id: deadId, created: false });
});

test("sixteen clients with shuffled, overlapping bulks of keys: no deadlock, one job for each key", async () => {
  const before = await deadlocks();
  const names = Array.from({ length: 200 }, () => freshKey());
  const clients = await Promise.all(
    Array.from({ length: 16 }, () => open({ database: arena.url, schema: SCHEMA, poolSize: 2, migrate: false })),
  );
  const ids = new Map<string, Set<string>>(names.map((name) => [name, new Set()]));
  let created = 0;
  const random = makeRandom(SEED);
  try {
    await Promise.all(
      clients.map(async (client) => {
        for (let round = 0; round < 10; round += 1) {
          const mine = random.shuffled(names).slice(0, 120);
          const results = await client.enqueueMany(
            kind,
            // Groups and coalesce keys are locked too, each in an order of their own.
            mine.map((key, n) =>
              n % 3 === 0
                ? { payload: 1, key, group: `g${n % 5}` }
                : n % 3 === 1
                  ? { payload: 1, key }
                  : { payload: 1, coalesce: key },
            ),
          );
          for (const [n, result] of results.entries()) {
            if (n % 3 === 2) continue;
            ids.get(mine[n]!)!.add(result.id);
            if (result.created) created += 1;
          }
        }
      }),
    );
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
  for (const [name, seen] of ids) expect([name, seen.size <= 1], `RACE_SEED=${SEED}`).toEqual([name, true]);
  expect(created).toBe([...ids.values()].filter((seen) => seen.size === 1).length);
  // A backend hands in its numbers at the latest when it ends.
  expect(await deadlocks(), `RACE_SEED=${SEED}`).toBe(before);
});

async function deadlocks(): Promise<number> {
  const { rows } = await arena.watcher.query<{ deadlocks: string }>(
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return Number(rows[0]!.deadlocks);
}
