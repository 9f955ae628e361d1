// Wake-ups are hints, but they should arrive: also when there is much to say, and under any schema name.
import { describe, expect, test, vi } from "vitest";
import { collect, times } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { defineJob } from "#src/job/define-job.js";
import { openTest } from "#src/testing/index.js";
import { makeInboxWake } from "#src/inbox/wake.js";
import { makeWakeUps } from "#src/worker/wake-ups.js";
import { useHoldfast } from "../support/open-test.ts";

describe("notifications between processes", () => {
  const bench = useHoldfast("server");

  test("of more than one message can hold still wake everybody", async () => {
    const other = await bench.another();
    const kinds = Array.from({ length: 70 }, (_, n) =>
      defineJob(`${"long".repeat(30)}.${n}`, { run: () => undefined }),
    );
    const trouble = collect(other, "trouble");
    const worker = await bench.hf.work(kinds, { poll: "1m", concurrency: 20 });
    const began = performance.now();
    const done = times(bench.hf, "job.done", 70);
    await Promise.all(kinds.map((kind, n) => other.enqueue(kind, n)));
    await done;
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(trouble.events).toEqual([]);
    await worker.stop();
  });

  test("are heard in a schema with the longest name there can be, in bytes", async () => {
    const schema = `${"ü".repeat(31)}x`;
    await using sender = await openTest({ database: bench.url, schema, poolSize: 3 });
    await using hearer = await openTest({ database: bench.url, schema, poolSize: 3 });
    const troubles = [collect(sender, "trouble"), collect(hearer, "trouble")];
    const kind = makeKind();
    const worker = await hearer.work([kind], { poll: "1m" });
    await hearer.jobs.wait((await hearer.enqueue(kind, 0)).id, { timeout: "10s" });
    const began = performance.now();
    const claimed = times(hearer, "job.claimed", 1);
    await sender.enqueue(kind, 1);
    await claimed;
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(troubles.flatMap(({ events }) => events)).toEqual([]);
    await worker.stop();
  });

  test("of one schema do not reach another whose name begins alike", async () => {
    const stem = "n".repeat(60);
    await using one = await openTest({ database: bench.url, schema: `${stem}_1`, poolSize: 3 });
    await using two = await openTest({ database: bench.url, schema: `${stem}_2`, poolSize: 3 });
    const kind = makeKind();
    await two.enqueue(kind, 1);
    const worker = await one.work([kind]);
    const { id } = await one.enqueue(kind, 2);
    expect(await one.jobs.wait(id, { timeout: "10s" })).toMatchObject({ state: "done" });
    expect((await two.jobs.list({ kind: kind.kind })).jobs).toMatchObject([{ state: "pending" }]);
    await worker.stop();
  });

  test("go out though the clock was set back by an hour, about jobs and about parcels", async () => {
    const { db, store } = bench;
    const heard: string[] = [];
    const notes = await db.listen(`holdfast:${store.schema}`, { onMessage: (text) => void heard.push(text) });
    const jobs = makeWakeUps({ db, schema: store.schema, onHeard() {}, onTrouble() {} });
    const [parcels, recipient] = [1, 2].map(() => makeInboxWake(db, store.schema, () => {}));
    const stop = recipient!.subscribe("set-back", () => void heard.push("set-back"));
    const tell = (): void => {
      jobs.send({ kind: "set-back", rank: 0 });
      parcels!.send("set-back");
    };
    const isHeard = async (): Promise<void> => {
      heard.length = 0;
      tell();
      await expect.poll(() => heard.filter((text) => text.includes("set-back")).length, { timeout: 10_000 }).toBe(2);
    };
    // It may not be listening yet.
    await expect.poll(() => (tell(), heard.includes("set-back")), { timeout: 10_000 }).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await isHeard();
    const realNow = Date.now;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() - 3_600_000);
    try {
      await isHeard();
    } finally {
      clock.mockRestore();
      stop();
      await Promise.all([jobs.close(), parcels!.close(), recipient!.close(), notes.close()]);
    }
  });
});
