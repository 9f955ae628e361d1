// One process has an embedded database, so its own workers are alive, however late their beats: a computer that slept, or a
// neighbour that computed for minutes, costs no run. Those of processes that are gone are not spared.
import { afterEach, expect, test } from "vitest";
import type { Worker } from "#src/worker/worker.js";
import { ended } from "../support/events.ts";
import { makeHeldKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

const bench = useHoldfast("embedded");
const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

async function running() {
  // Long enough that no beat comes in between.
  const held = makeHeldKind({ lease: "60s", then: () => "ran" });
  workers.push(await bench.hf.work([held.kind]));
  const { id } = await bench.hf.enqueue(held.kind, null);
  await held.started();
  return { held, id };
}

const stateOf = async (id: string): Promise<string | undefined> =>
  (await bench.db.query<{ state: string }>("select state::text from holdfast.jobs where id = $1", [id])).rows[0]?.state;

test("leases of workers that are gone are taken away when they are over, and those of this process's workers are not", async () => {
  const gone = await running();
  const here = await running();
  await bench.db.query(
    `update holdfast.leases set expires_at = now() - interval '1 second',
       worker_id = case when $1 = any(job_ids) then gen_random_uuid() else worker_id end`,
    [gone.id],
  );
  // More than once: the round that is asked for may be one that had begun before.
  const look = async (): Promise<string | undefined> => {
    await bench.hf.janitor.run("expire-leases");
    return await stateOf(gone.id);
  };
  await expect.poll(look).toBe("pending");
  expect(await stateOf(here.id)).toBe("running");
  // Both: what was taken away is run alone, when the other one has ended.
  for (const { held } of [gone, here]) held.release();
  for (const { id } of [gone, here]) expect(await ended(bench.hf, id)).toMatchObject({ state: "done", result: "ran" });
  expect(here.held.runs).toHaveLength(1);
});
