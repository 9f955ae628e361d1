// Claimers that want the same rows never share a job and never wait for each other. Real connections, real locks.
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomToken } from "#src/shared/uuid.js";
import {
  type ClaimedJob,
  claimedByToken,
  claimIds,
  claimLane,
  claimLanes,
  claimSuspect,
  type Holder,
} from "#src/store/jobs/claim.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { settleDone } from "#src/store/jobs/settle.js";
import type { Store } from "#src/store/sql.js";
import type { Session } from "../support/locks.ts";
import { type Arena, EXPIRE, holder, lane, LEASE_MS, openArena, SCHEMA, unlessLocked } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

const KINDS = ["race", "race.two", "race.three"];
type Claim = (store: Store, by: Holder) => Promise<ClaimedJob[]>;

const ways: Record<string, Claim> = {
  "one lane": (store, by) => claimLane(store, by, lane(), 7),
  // Without row locks as long as nobody else hurries: the others pass by with theirs.
  "one lane in a hurry": (store, by) => unlessLocked(claimLane(store, by, lane(), 7, true), []),
  "several lanes": (store, by) =>
    claimLanes(
      store,
      by,
      KINDS.map((kind) => lane(kind)),
      7,
      7,
    ),
};

async function finish(claimed: readonly { id: string; token: string }[]): Promise<void> {
  const done = await settleDone(
    arena.store,
    claimed.map((job) => ({ ...job, keepMs: 86_400_000 })),
    [...new Set(claimed.map((job) => job.token))].map((token) => ({ token, leaseMs: LEASE_MS })),
  );
  expect(done.size).toBe(claimed.length);
  expect(await arena.leases()).toEqual([]);
}

for (const [name, claim] of Object.entries(ways)) {
  test(`twelve claimers of ${name} at once never share a job and leave none`, async () => {
    const kinds = name === "several lanes" ? KINDS : ["race"];
    const ids = await arena.insert(Array.from({ length: 420 }, (_, n) => ({ kind: kinds[n % kinds.length]! })));
    const claimed: { id: string; token: string }[] = [];
    const busy: number[] = [];
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        let mine = 0;
        // A claim in a hurry that met a lock comes back with nothing.
        for (let empty = 0; empty < 8;) {
          const by = holder(KINDS);
          const jobs = await claim(arena.store, by);
          mine += jobs.length;
          empty = jobs.length === 0 ? empty + 1 : 0;
          for (const job of jobs) claimed.push({ id: job.id, token: by.token });
        }
        busy.push(mine);
      }),
    );
    expect(claimed).toHaveLength(ids.length);
    expect(new Set(claimed.map((job) => job.id))).toEqual(new Set(ids));
    // Otherwise nobody raced.
    expect(busy.filter((count) => count > 0).length).toBeGreaterThan(1);
    await arena.sound();
    await finish(claimed);
  });

  test(`a claim of ${name} takes what is free while another claim is being committed`, async () => {
    const ids = await arena.insert(Array.from({ length: 12 }, () => ({})));
    const first = holder(KINDS);
    await other.begin();
    const theirs = await claim(other.store(SCHEMA), first);
    const second = holder(KINDS);
    const mine = await claim(arena.store, second);
    await other.commit();
    const all = [...theirs, ...mine].map((job) => job.id);
    expect(new Set(all).size).toBe(all.length);
    // What a claim of several lanes chose and could not get is for the next one.
    const third = holder(KINDS);
    const rest = await claim(arena.store, third);
    expect(new Set([...all, ...rest.map((job) => job.id)])).toEqual(new Set(ids));
    const held = (jobs: ClaimedJob[], { token }: Holder) => jobs.map((job) => ({ id: job.id, token }));
    await finish([...held(theirs, first), ...held(mine, second), ...held(rest, third)]);
  });

  test(`a claim of ${name} that is rolled back leaves its jobs claimable`, async () => {
    const ids = await arena.insert(Array.from({ length: 5 }, () => ({})));
    await other.begin();
    expect(await claim(other.store(SCHEMA), holder(KINDS))).toHaveLength(5);
    await other.rollback();
    expect(await arena.leases()).toEqual([]);
    const by = holder(KINDS);
    const jobs = await claim(arena.store, by);
    expect(jobs.map((job) => job.id).toSorted()).toEqual(ids.toSorted());
    expect(jobs.map((job) => job.attempt)).toEqual([1, 1, 1, 1, 1]);
    await finish(jobs.map((job) => ({ id: job.id, token: by.token })));
  });
}

test("claimers by id and by lane that want the same jobs never share one", async () => {
  const ids = await arena.insert(Array.from({ length: 200 }, () => ({})));
  const claimed: { id: string; token: string }[] = [];
  const take = async (claim: Claim): Promise<void> => {
    for (let empty = 0; empty < 8;) {
      const by = holder();
      const jobs = await claim(arena.store, by);
      empty = jobs.length === 0 ? empty + 1 : 0;
      for (const job of jobs) claimed.push({ id: job.id, token: by.token });
    }
  };
  await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      take((store, by) =>
        n % 2 === 0
          ? unlessLocked(claimLane(store, by, lane(), 5, n % 4 === 0), [])
          : claimIds(store, by, ids.toReversed(), ["race"], 5),
      ),
    ),
  );
  expect(claimed).toHaveLength(200);
  expect(new Set(claimed.map((job) => job.id)).size).toBe(200);
  await finish(claimed);
});

test("a suspect is claimed by one process only", async () => {
  const run = await arena.overdue();
  await expireIfOverdue(arena.store, EXPIRE);
  const tokens: string[] = [];
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      const by = holder();
      if ((await claimSuspect(arena.store, by, ["race"], true)).length > 0) tokens.push(by.token);
    }),
  );
  expect(tokens).toHaveLength(1);
  expect(await arena.live(run.id)).toMatchObject({ state: "running", token: tokens[0] });
  await finish([{ id: run.id, token: tokens[0]! }]);
});

test("a claim whose reply was lost is found by its token, while it is being committed and after", async () => {
  const [id] = await arena.insert([{}]);
  const by = holder();
  await other.begin();
  await claimLane(other.store(SCHEMA), by, lane(), 5);
  expect(await claimedByToken(arena.store, by.token)).toEqual([]);
  await other.commit();
  expect(await claimedByToken(arena.store, by.token)).toMatchObject([{ id, attempt: 1 }]);
  expect(await claimedByToken(arena.store, randomToken())).toEqual([]);
  await finish([{ id: id!, token: by.token }]);
  expect(await claimedByToken(arena.store, by.token)).toEqual([]);
});
