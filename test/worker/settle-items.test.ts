// The outcomes of items, when the database answers one question and not the next.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { claimLane, type ClaimedJob } from "#src/store/jobs/claim.js";
import type { Statement, Store } from "#src/store/sql.js";
import { NIL_ID } from "#src/worker/lanes.js";
import type { LeaseKeeper } from "#src/worker/lease-keeper.js";
import { makeRun, type Run } from "#src/worker/run.js";
import { makeItemSettler } from "#src/worker/settle-items.js";
import { uniqueName } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

/** Holds nothing: these runs have no lease that anybody looks after. */
const keeper = { onlyOf: () => new Set(), drop: () => {} } as unknown as LeaseKeeper;

/** The same store, which never says what became of a run that was not settled. */
function refusing(store: Store): Store {
  const asksWhy = (statement: Statement): boolean => statement.textIn("s").includes("'lost') as why");
  return {
    ...store,
    query: (statement, values, options) =>
      asksWhy(statement) ? Promise.reject(new Error("refused")) : store.query(statement, values, options),
  };
}

describe("items", () => {
  const bench = useHoldfast("embedded");

  test("an item that is settled is told of once, also when the next question about its batch is refused", async () => {
    const { hf, store } = bench;
    const kind = defineBatch(uniqueName("batch"), { run: () => "done" });
    const { id } = await hf.batches.create(kind, [1, 2, 3]);
    const holder = {
      token: randomToken(),
      workerId: uuidv7(),
      leases: JSON.stringify([{ kind: kind.kind, lease_ms: kind.leaseMs }]),
    };
    const lane = { kind: kind.kind, rank: 0, fromUs: "0", fromId: NIL_ID };
    const jobs: ClaimedJob[] = await claimLane(store, holder, lane, 10);
    expect(jobs).toHaveLength(3);
    // Of one of them another run has the job by now.
    const runs = jobs.map((job, index) => {
      const token = index === 1 ? randomToken() : holder.token;
      const run: Run = makeRun({ job, kind, token, alone: false, now: performance.now() });
      run.outcome = { type: "done", result: undefined };
      return run;
    });
    const told = new Map<Run, string[]>(runs.map((run) => [run, []]));
    const settler = makeItemSettler({
      store: refusing(store),
      keeper,
      onSettled: (run, { verdict }) => void told.get(run)!.push(verdict),
      onAdvanced: () => {},
      onTrouble: () => {},
    });
    for (const run of runs) settler.settle(run);
    await settler.idle();
    expect([...told.values()]).toEqual([["done"], ["abandoned"], ["done"]]);
    await hf.batches.cancel(id);
    await hf.jobs.release(jobs[1]!.id);
  });
});
