// What a change of a batch reads depends on how many items it is about, not on how many there are, nor on how many have a slot.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { addItems } from "#src/store/batches/add.js";
import { cancelBatch } from "#src/store/batches/cancel.js";
import { listErrorGroups } from "#src/store/batches/errors.js";
import { listItems } from "#src/store/batches/items.js";
import { listBatches, readBatch } from "#src/store/batches/read.js";
import { retryFailedStep } from "#src/store/batches/retry-failed.js";
import { settleItems } from "#src/store/batches/settle.js";
import { lookOver } from "#src/store/batches/tend.js";
import type { Store } from "#src/store/sql.js";
import { Session } from "../support/explain.ts";
import { useHoldfast } from "../support/open-test.ts";

const ITEMS = 60_000;
const SLOTS = 400;
const WATCHED = /^(jobs|leases|batches|batch_\w+)$/;
const FEW = 20;

describe("with a large batch", () => {
  const bench = useHoldfast("server");
  let id: string;
  let session: Session;
  const held: { id: string; token: string }[] = [];

  beforeAll(async () => {
    const kind = defineBatch<number>("plans.batch", { concurrency: SLOTS, run: () => undefined });
    function* numbers(): Generator<number> {
      for (let n = 0; n < ITEMS; n += 1) yield n;
    }
    // Before anything is there: what is planned now is what is used later.
    session = await Session.open(bench.url, bench.store, WATCHED);
    ({ id } = await bench.hf.batches.create(kind, numbers(), { open: true }));
    const { rows } = await bench.db.query<{ id: string }>(
      `update holdfast.jobs set state = 'running', token = 7, attempt = 1, claim_count = 1, started_at = now()
       where batch_id = $1 returning id`,
      [id],
    );
    for (const row of rows) held.push({ id: row.id, token: "7" });
  }, 60_000);
  afterAll(async () => {
    await session.client.end();
    await bench.db.query("update holdfast.jobs set state = 'pending', token = null where token = 7");
    await bench.hf.batches.cancel(id);
  });

  const runs = (outcome: "done" | "retry" | "dead") =>
    held.slice(0, FEW).map((run) => ({
      ...run,
      outcome,
      delayMs: 60_000,
      label: "done",
      ...(outcome === "done" ? {} : { error: { name: "Error", message: "no" }, fingerprint: "f" }),
    }));

  const VERBS: [name: string, most: number, run: (store: Store) => Promise<unknown>][] = [
    ["settle a few", 20 * FEW, (store) => settleItems(store, id, runs("done"))],
    ["a few fail for good", 20 * FEW, (store) => settleItems(store, id, runs("dead"))],
    ["a few are retried", 25 * FEW, (store) => settleItems(store, id, runs("retry"))],
    [
      "add a few",
      20 * FEW,
      (store) =>
        addItems(store, {
          batchId: id,
          writer: "x",
          from: 0,
          items: Array.from({ length: FEW }, () => "1"),
          close: false,
        }),
    ],
    ["cancel", 12 * SLOTS, (store) => cancelBatch(store, id, null)],
    ["retry what failed", 50, (store) => retryFailedStep(store, id, null, true)],
    ["read it", 2 * SLOTS, (store) => readBatch(store, id)],
    ["list batches", 2 * SLOTS, (store) => listBatches(store, { limit: 50 })],
    [
      "a page of items",
      // There are no other jobs here than this batch's: to walk through them all is the quickest.
      4 * 50 + SLOTS,
      (store) => listItems(store, { batchId: id, batchState: "running", after: 30_000, limit: 50 }),
    ],
    [
      "a page of errors",
      50,
      (store) => listItems(store, { batchId: id, batchState: "running", state: "error", after: 0, limit: 50 }),
    ],
    ["errors in groups", 50, (store) => listErrorGroups(store, id)],
    ["look it over", 3 * SLOTS, (store) => lookOver(store, "00000000-0000-0000-0000-000000000000", 200)],
  ];

  test.each(VERBS)("%s", async (_, most, run) => {
    const { visited, detail } = await session.explain(run);
    expect(visited, detail).toBeLessThanOrEqual(most);
  });
});
