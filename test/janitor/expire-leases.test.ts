// Recovery goes on beside what the database refuses: one job, or one step of the chore, never keeps the others from their turn.
import { afterEach, describe, expect, test } from "vitest";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { endSetApart } from "#src/store/janitor/expire-leases.js";
import { claimIds } from "#src/store/jobs/claim.js";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

describe.each(TIERS)("expire-leases (%s)", (tier) => {
  const bench = useHoldfast(tier);
  const stateOf = async (id: string): Promise<string | undefined> => (await bench.hf.jobs.get(id))?.state;
  /** As an expiry leaves it after the third crash alone, or of a job that was to be cancelled. */
  const setApart = (id: string, why: "crashed" | "cancelled"): Promise<unknown> =>
    bench.db.query(
      why === "crashed"
        ? `update holdfast.jobs set hold = 4, crash_count = 3, claim_count = 4, started_at = now(),
             last_error = '{"name": "Crashed", "message": "It crashed."}' where id = $1`
        : "update holdfast.jobs set hold = 4, cancel_requested_at = now() where id = $1",
      [id],
    );
  /** The row of the job that would follow it has no kind. */
  const makeRefused = async (kind = makeKind()): Promise<string> => {
    const { id } = await bench.hf.enqueue(kind, 0, { onDead: { kind: "follows" } });
    await bench.db.query(`update holdfast.jobs set on_dead = '{}' where id = $1`, [id]);
    await setApart(id, "crashed");
    return id;
  };
  afterEach(() => bench.db.query("delete from holdfast.jobs"));

  test("one job whose burial is refused keeps no other from being buried or cancelled", async () => {
    const bad = await makeRefused();
    const kind = makeKind();
    const [crashed, cancelled] = [await bench.hf.enqueue(kind, 1), await bench.hf.enqueue(kind, 2)];
    await setApart(crashed.id, "crashed");
    await setApart(cancelled.id, "cancelled");
    const [result] = await bench.hf.janitor.run("expire-leases");
    expect(await stateOf(crashed.id)).toBe("dead");
    expect(await stateOf(cancelled.id)).toBe("cancelled");
    expect(await stateOf(bad)).toBe("pending");
    expect(result).toMatchObject({ ran: true, error: expect.stringContaining("kind") as string });
  });

  test("a batch full of them does not either", async () => {
    const kind = makeKind();
    const bad = new Set<string>();
    for (let n = 0; n < 3; n += 1) bad.add(await makeRefused(kind));
    const { id } = await bench.hf.enqueue(kind, 1, { delay: "1h" });
    await setApart(id, "crashed");
    const refused = new Map<string, unknown>();
    expect(await endSetApart(bench.store, 3, null, refused)).toEqual([]);
    expect(new Set(refused.keys())).toEqual(bad);
    expect(await endSetApart(bench.store, 3, null, refused)).toMatchObject([{ id, verdict: "dead" }]);
  });

  test("an expiry that is refused keeps nobody from being buried", async () => {
    const kind = makeKind();
    const lost = await bench.hf.enqueue(kind, 1);
    const leases = JSON.stringify([{ kind: kind.kind, lease_ms: 1_000 }]);
    await claimIds(bench.store, { token: randomToken(), workerId: uuidv7(), leases }, [lost.id], [kind.kind], 1);
    await bench.db.query("update holdfast.leases set expires_at = now() - interval '1 day'");
    const { id } = await bench.hf.enqueue(kind, 2);
    await setApart(id, "crashed");
    await bench.db.query("create function refuse() returns trigger language plpgsql as $$ begin raise 'No.'; end $$");
    await bench.db.query("create trigger refuse before delete on holdfast.leases execute function refuse()");
    const [result] = await bench.hf.janitor.run("expire-leases");
    await bench.db.query("drop function refuse cascade");
    expect(result).toMatchObject({ ran: true, error: expect.stringContaining("No.") as string });
    expect(await stateOf(id)).toBe("dead");
    await bench.db.query("delete from holdfast.leases");
  });
});
