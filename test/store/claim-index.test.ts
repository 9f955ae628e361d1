// The claim index has the hash of a kind, and two kinds may have the same one: nobody is given, told of or counted the
// other's jobs, and nobody overlooks his own.
import { describe, expect, test } from "vitest";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { type ClaimedJob, claimLane, claimLanes, type LanePosition } from "#src/store/jobs/claim.js";
import { claimLight } from "#src/store/jobs/claim-light.js";
import { lookAhead, lookBack } from "#src/store/jobs/look.js";
import { unservedKinds } from "#src/store/stats/unserved.js";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const [ONE, OTHER] = ["race.14026", "race.48467"];
const LEASE_MS = 30_000;
const NIL_ID = "00000000-0000-0000-0000-000000000000";
const NOW_US = (): string => String((Date.now() + 60_000) * 1_000);

const holder = () => ({
  token: randomToken(),
  workerId: uuidv7(),
  leases: JSON.stringify([ONE, OTHER].map((kind) => ({ kind, lease_ms: LEASE_MS }))),
});
const lane = (kind: string, fromUs = "0"): LanePosition => ({ kind, rank: 0, fromUs, fromId: NIL_ID });

describe.each(TIERS)("two kinds with one hash, %s", (tier) => {
  const bench = useHoldfast(tier);

  async function enqueued(): Promise<{ one: string[]; other: string[] }> {
    await bench.db.query("truncate holdfast.jobs, holdfast.leases");
    const of = async (kind: string): Promise<string[]> => {
      const jobs = await bench.hf.enqueueMany({ ...makeKind(), kind }, [{ payload: 1 }, { payload: 2 }]);
      return jobs.map(({ id }) => id);
    };
    // Of one kind before and after those of the other.
    return { one: [...(await of(ONE)), ...(await of(ONE))], other: await of(OTHER) };
  }

  test("have the same one", async () => {
    const { rows } = await bench.db.query("select hashtext($1::text) = hashtext($2::text) as same", [ONE, OTHER]);
    expect(rows).toEqual([{ same: true }]);
  });

  const ways: [string, (kind: string) => Promise<ClaimedJob[]>][] = [
    ["of one lane", (kind) => claimLane(bench.store, holder(), lane(kind), 10)],
    ["of one lane in a hurry", (kind) => claimLane(bench.store, holder(), lane(kind), 10, true)],
    ["of several lanes", (kind) => claimLanes(bench.store, holder(), [lane(kind), lane("none")], 10, 10)],
    [
      "that is light",
      async (kind) =>
        (await claimLight(bench.store, holder(), lane(kind), { leaseMs: LEASE_MS, attempts: 5, queue: "default" }, 10))
          .jobs,
    ],
  ];
  test.each(ways)("are told apart by a claim %s", async (_, claim) => {
    const { one, other } = await enqueued();
    expect((await claim(OTHER)).map(({ id }) => id)).toEqual(other);
    expect((await claim(ONE)).map(({ id }) => id)).toEqual(one);
  });

  test("are told apart by who looks ahead, in lanes and for new ranks, and by who looks back", async () => {
    const { one, other } = await enqueued();
    const ahead = await lookAhead(bench.store, [lane(OTHER)], [{ kind: ONE, lo: -101, hi: 101 }], []);
    expect(ahead.map(({ what, kind, id }) => ({ what, kind, id }))).toEqual([
      { what: "lane", kind: OTHER, id: other[0] },
      { what: "new", kind: ONE, id: one[0] },
    ]);
    const back = await lookBack(bench.store, [lane(OTHER, NOW_US())], 10);
    expect(back.map(({ id }) => id)).toEqual(other);
  });

  test("without a worker are told one after the other: the look goes from hash to hash", async () => {
    await enqueued();
    await bench.db.query("update holdfast.jobs set run_at = holdfast.clock() - interval '1 minute'");
    const first = await unservedKinds(bench.store, 10);
    expect(first).toHaveLength(1);
    await bench.db.query("delete from holdfast.jobs where kind = $1", [first[0]!.kind]);
    expect((await unservedKinds(bench.store, 10)).map(({ kind }) => kind)).toEqual(
      [ONE, OTHER].filter((kind) => kind !== first[0]!.kind),
    );
  });
});
