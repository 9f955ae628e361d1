// A claim in a hurry locks no rows before it updates them: one that somebody else has taken while it waited is not its own.
// PostgreSQL up to the minors of late 2025 follows a row to where it was moved meanwhile, and then only the conditions of
// that update keep it out; later ones leave such a row alone by themselves.
import { afterAll, beforeAll, expect, test } from "vitest";
import { claimIds, claimLane } from "#src/store/jobs/claim.js";
import { settleDone } from "#src/store/jobs/settle.js";
import type { Session } from "../support/locks.ts";
import { type Arena, holder, lane, LEASE_MS, openArena, SCHEMA, startBlocked, unlessLocked } from "./arena.ts";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

test("a claim in a hurry leaves a row that it waited for to whoever has claimed it meanwhile", async () => {
  // It waits for a few milliseconds only, and may have given up before it was let go: not ten times in a row.
  for (let tries = 0; tries < 10; tries += 1) {
    const [id] = await arena.insert([{}]);
    const first = holder();
    await other.begin();
    expect(await claimIds(other.store(SCHEMA), first, [id!], ["race"], 1)).toHaveLength(1);
    const second = await startBlocked(
      arena,
      other,
      () => unlessLocked(claimLane(arena.store, holder(), lane(), 5, true), []),
      [],
    );
    await other.commit();
    expect(await second.result).toEqual([]);
    expect(await arena.live(id!)).toMatchObject({ state: "running", token: first.token, claim_count: 1 });
    const run = { id: id!, token: first.token, keepMs: null };
    await settleDone(arena.store, [run], [{ token: first.token, leaseMs: LEASE_MS }]);
  }
  await arena.drained();
});
