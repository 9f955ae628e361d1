// Batches under kill -9. FAULT_ITEMS=50000 FAULT_KILLS=10 for the long one (npm run test:faults).
import { afterEach, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { saveResult } from "../support/history/save-result.ts";
import { supervise } from "../support/processes.ts";
import { openScene, SCHEMA, type Scene } from "./scene.ts";

let scene: Scene;
afterEach(() => scene.close());

const ITEMS = Number(process.env["FAULT_ITEMS"] ?? 3_000);
const KILLS = Number(process.env["FAULT_KILLS"] ?? 4);

interface Work {
  n: number;
  ms?: number;
  die?: boolean;
}

/** Only created here: the handler is the children's. */
const kind = defineBatch<Work, Work, "saved" | "duplicate">("crash.batch", {
  concurrency: 60,
  attempts: 3,
  outcomes: { saved: {}, duplicate: {} },
  run: () => undefined,
});

function* items(count: number): Generator<{ n: number; ms: number }> {
  for (let n = 1; n <= count; n += 1) yield { n, ms: n % 3 };
}

const effectsTable = async (): Promise<void> => {
  await scene.sql.query("create table effects (batch uuid, seq bigint, primary key (batch, seq))");
};

const workers = (count: number, more: Record<string, unknown> = {}) =>
  Array.from({ length: count }, (_, index) =>
    supervise("batch-worker.mjs", { name: `w${index}`, url: scene.url, schema: SCHEMA, ...more }),
  );

test(
  `${ITEMS} items, 4 processes, ${KILLS} kills: every item ends once, the counters are exact, there is one completion`,
  async () => {
    scene = await openScene();
    await effectsTable();
    const startedAt = performance.now();
    const after = "crash.after";
    const { id } = await scene.hf.batches.create(kind, items(ITEMS), { onDone: { kind: after } });
    const fleet = workers(4, { concurrency: 20 });
    let kills = 0;
    while (kills < KILLS) {
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 700));
      if ((await scene.hf.batches.get(id))!.finishedAt !== null) break;
      await scene.forgiven();
      const { child } = fleet[kills % fleet.length]!;
      if (!child.isRunning || !child.said.some((said) => said.what === "started")) continue;
      if (child.kill("SIGKILL")) kills += 1;
    }
    const batch = await scene.hf.batches.wait(id, { timeout: `${120 + ITEMS / 50}s` });
    await Promise.all(fleet.map((worker) => worker.stop()));
    // Otherwise the batch was over before the storm was.
    expect(kills).toBe(KILLS);
    const saved = Array.from({ length: ITEMS }, (_, index) => index + 1).filter(
      (n) => n % 10 === 0 || n % 7 !== 0,
    ).length;
    expect(batch).toMatchObject({
      state: "done",
      total: ITEMS,
      ended: ITEMS,
      completions: 1,
      counts: { saved, duplicate: ITEMS - saved, error: 0, cancelled: 0, pending: 0, running: 0, "handed-over": 0 },
    });
    const { rows } = await scene.sql.query<{
      outcomes: number;
      effects: number;
      follow: number;
      open: number;
      log: number;
    }>(
      `select (select count(*) from ${SCHEMA}.batch_outcomes)::integer as outcomes,
         (select count(*) from effects)::integer as effects,
         (select count(*) from ${SCHEMA}.jobs where kind = '${after}')::integer as follow,
         (select count(*) from ${SCHEMA}.jobs where kind <> '${after}')::integer as open,
         (select count(*) from ${SCHEMA}.batch_log where what = 'healed')::integer as log`,
    );
    expect(rows).toEqual([{ outcomes: ITEMS, effects: Math.floor(ITEMS / 10), follow: 1, open: 0, log: 0 }]);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    await saveResult("batches", 0, { seconds, items: ITEMS, faults: { "kill -9": kills }, violations: [] });
  },
  300_000 + ITEMS * 20,
);

test("an item that kills its process ends as an error, and takes nobody along", async () => {
  scene = await openScene();
  await effectsTable();
  const list = [1, 2, 3, 4, 5, 6].map((n) => ({ n, ...(n === 3 && { die: true }) }));
  const { id } = await scene.hf.batches.create(kind, list, { concurrency: 3 });
  const [worker] = workers(1, { concurrency: 3 });
  const batch = await scene.hf.batches.wait(id, { timeout: "60s" });
  await worker!.stop();
  expect(batch).toMatchObject({ state: "done", completions: 1, counts: { saved: 5, error: 1 } });
  const { items: ended } = await scene.hf.batches.items(id);
  expect(ended.map((item) => [item.state, item.error?.reason])).toEqual([
    ["saved", undefined],
    ["saved", undefined],
    ["error", "crashed"],
    ["saved", undefined],
    ["saved", undefined],
    ["saved", undefined],
  ]);
  expect(await scene.hf.batches.errors(id)).toMatchObject([{ count: 1, sample: { reason: "crashed" } }]);
}, 90_000);

test("pause, resume and cancel from all sides while items run and workers die: nothing is lost, and the cancel is the end", async () => {
  scene = await openScene();
  await effectsTable();
  const { id } = await scene.hf.batches.create(kind, items(3_000), { concurrency: 20 });
  const fleet = workers(2, { concurrency: 20 });
  await fleet[0]!.child.until("started");
  const until = Date.now() + 2_500;
  const refused: string[] = [];
  const hammer = async (seed: number): Promise<void> => {
    for (let turn = seed; Date.now() < until; turn += 1) {
      const verb = (["pause", "resume"] as const)[turn % 2]!;
      await scene.hf.batches[verb](id).catch((error: Error) => refused.push(error.message));
    }
  };
  const kill = setTimeout(() => fleet[1]!.child.kill("SIGKILL"), 1_200);
  await Promise.all([hammer(0), hammer(1), hammer(0), hammer(1)]);
  clearTimeout(kill);
  const cancelled = await scene.hf.batches.cancel(id);
  // Only a batch that had ended refuses, and this one had not.
  expect(refused).toEqual([]);
  expect(cancelled.state).toBe("cancelled");
  const end = await scene.hf.batches.wait(id, { timeout: "30s" });
  await Promise.all(fleet.map((worker) => worker.stop()));
  expect(end).toMatchObject({ state: "cancelled", ended: 3_000 });
  expect(Object.values(end.counts).reduce((sum, count) => sum + count, 0)).toBe(3_000);
  expect(end.counts["cancelled"]).toBeGreaterThan(0);
}, 120_000);
