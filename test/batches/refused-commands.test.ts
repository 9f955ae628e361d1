// hf.batches.apply: a command that is refused, or that has to wait for somebody, leaves nothing behind.
import { describe, expect, test } from "vitest";
import { defineBatch } from "#src/job/define-batch.js";
import { uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { openSession } from "../support/locks.ts";
import { soon } from "../support/soon.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe.each(TIERS)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);

  test.each([
    ["one part", 3, 1],
    ["several parts, the last of them too long", 1_500, 1_200],
  ])("a create that is refused leaves no batch, runs no item and uses up no key (%s)", async (_, count, total) => {
    const { hf } = bench;
    let runs = 0;
    const kind = defineBatch<number>(uniqueName("batch"), { concurrency: 50, run: () => void (runs += 1) });
    const owner = uniqueName("owner");
    const worker = await hf.work([kind], { poll: "50ms", concurrency: 50 });
    const create = (n: number, declared: number) =>
      hf.batches.apply({
        owner,
        client: "phone",
        kinds: [kind],
        commands: [{ n, type: "create", kind: kind.kind, items: numbers(count), key: "k", total: declared }],
      });
    const refused = await create(1, total);
    expect(refused).toMatchObject({ applied: 1, results: [{ status: "refused" }] });
    expect(refused.results[0]!.error!.code).toBe("HOLDFAST_STATE_CONFLICT");
    expect((await hf.batches.list({ owner })).batches).toEqual([]);
    expect(runs).toBe(0);
    // It counts as applied, and holds up nobody.
    expect((await create(1, total)).results).toMatchObject([{ status: "known" }]);
    const right = await create(2, count);
    expect(right.results).toMatchObject([{ n: 2, status: "applied" }]);
    await hf.batches.wait(right.results[0]!.batch!, { timeout: "30s" });
    expect(runs).toBe(count);
    await worker.stop();
  });
});

describe("on the server tier", () => {
  const bench = useHoldfast("server");

  test("a command whose batch somebody has locked for seconds waits for it, and is applied then", async () => {
    const { hf } = bench;
    const kind = defineBatch<number>(uniqueName("batch"), { run: () => undefined });
    const owner = uniqueName("owner");
    const { id } = await hf.batches.create(kind, [1, 2], { owner });
    const session = await openSession(bench.url);
    await session.begin();
    await session.query("select 1 from holdfast.batches where id = $1 for update", [id]);
    const applying = hf.batches
      .apply({ owner, client: "phone", kinds: [kind], commands: [{ n: 1, type: "pause", batch: id }] })
      .catch((error: unknown) => error);
    let isOver = false;
    void applying.then(() => (isOver = true));
    // Longer than one statement waits for a lock.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const wasOver = isOver;
    await session.commit();
    await session.close();
    expect(await applying).toMatchObject({ applied: 1, results: [{ status: "applied" }] });
    expect(wasOver).toBe(false);
    await soon(async () => (await hf.batches.get(id))!.state).toBe("paused");
    await hf.batches.cancel(id);
  });
});
