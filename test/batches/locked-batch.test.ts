// The items of a batch share its row. One whose process stands still inside the transaction that completes it keeps that row
// from all the others.
import { afterEach, expect, test } from "vitest";
import { defineBatch, type Worker } from "#src/index.js";
import { useHoldfast } from "../support/open-test.ts";

const bench = useHoldfast("server");
let worker: Worker | undefined;
afterEach(async () => {
  await worker?.stop();
});

test("items whose batch is locked by one that stands still are put off, and are charged nothing", async () => {
  const put: string[] = [];
  const batch = defineBatch<{ stands?: boolean }, unknown, "saved">("standing", {
    concurrency: 20,
    // The only one must not be used up by what somebody else does.
    attempts: 1,
    outcomes: { saved: {} },
    async run(item) {
      // The other one comes first.
      if (!item.payload.stands) await new Promise((resolve) => setTimeout(resolve, 300));
      await item
        .transaction(async (tx) => {
          await item.complete(tx, "saved");
          // As a process does that is frozen, computes or collects garbage here: longer than a lock is waited for.
          if (item.payload.stands) await new Promise((resolve) => setTimeout(resolve, 2_500));
        })
        .catch((error: Error) => {
          put.push(error.message);
          throw error;
        });
    },
  });
  worker = await bench.hf.work([batch]);
  const { id } = await bench.hf.batches.create(batch, [{ stands: true }, {}, {}]);
  expect(await bench.hf.batches.wait(id, { timeout: "20s" })).toMatchObject({ state: "done", counts: { saved: 3 } });
  expect(put.length).toBeGreaterThan(0);
  expect(put[0]).toMatch(/^The batch of standing .* is locked by a transaction that does not end: it is put off/);
  const { rows } = await bench.db.query("select outcome, attempt from holdfast.batch_outcomes order by seq");
  expect(rows).toEqual(Array.from({ length: 3 }, () => ({ outcome: "saved", attempt: 1 })));
});
