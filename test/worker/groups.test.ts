// Jobs of one group run one at a time, in the order they were accepted. A head that waits for its next try holds its
// group; a dead one does not.
import { setTimeout as after } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Fatal, Snooze } from "#src/job/outcome.js";
import { randomToken, uuidv7 } from "#src/shared/uuid.js";
import { expireEverything, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { claimIds, claimSuspect } from "#src/store/jobs/claim.js";
import { runDue } from "#src/testing/index.js";
import { ended, nextOf } from "../support/events.ts";
import { aborted, makeGate, makeHeldKind, makeKind, uniqueName } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

/** Notes what runs, and fails the moment two of one group run at once. */
function makeWatch() {
  const seen: string[] = [];
  const running = new Set<string>();
  const overlaps: string[] = [];
  return {
    seen,
    overlaps,
    async during(group: string | null, payload: string, work: () => Promise<unknown>): Promise<void> {
      const name = String(group);
      if (running.has(name)) overlaps.push(`${name}: ${payload}`);
      running.add(name);
      seen.push(payload);
      try {
        await work();
      } finally {
        running.delete(name);
      }
    },
    of: (prefix: string): string[] => seen.filter((payload) => payload.startsWith(prefix)),
  };
}

const members = (group: string, count: number): { payload: string; group: string }[] =>
  Array.from({ length: count }, (_, n) => ({ payload: `${group} ${String(n).padStart(2, "0")}`, group }));

describe.each(TIERS)("a group, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("runs one at a time and in order, and several groups run beside each other", async () => {
    const watch = makeWatch();
    const kind = makeKind<string>({ run: (job) => watch.during(job.group, job.payload, () => after(3)) });
    const groups = [1, 2, 3, 4].map(() => uniqueName("group"));
    // Interleaved, from one call and from many.
    const rows = members("", 12).flatMap((_, n) => groups.map((group) => members(group, 12)[n]!));
    await bench.hf.enqueueMany(kind, rows.slice(0, 24));
    await Promise.all(rows.slice(24).map(({ payload, group }) => bench.hf.enqueue(kind, payload, { group })));
    const began = performance.now();
    await runDue(bench.hf, [kind], { concurrency: 10 });
    expect(watch.overlaps).toEqual([]);
    for (const group of groups) expect(watch.of(group)).toEqual(members(group, 12).map(({ payload }) => payload));
    // Each next member is started at once, not at the next look.
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  test.each<[string, Parameters<typeof makeKind<string>>[0]]>([
    ["that return", {}],
    ["that complete in a transaction", { run: (job) => job.transaction((tx) => job.complete(tx)) }],
  ])("hands over at once: many groups of jobs %s do not wait for a look behind the watermark", async (_, options) => {
    const kind = makeKind<string>(options);
    // The embedded tier has one thread for everything, and may share its processor.
    const each = tier === "server" ? 30 : 15;
    const rows = Array.from({ length: 4 }, () => uniqueName("group")).flatMap((group) => members(group, each));
    const worker = await bench.hf.work([kind], { concurrency: 8, poll: "1m" });
    const began = performance.now();
    const results = await bench.hf.enqueueMany(kind, rows);
    await Promise.all(results.map(({ id }) => ended(bench.hf, id)));
    await worker.stop();
    // One member after the other: waiting for a look, half a second each, would take longer.
    expect(performance.now() - began).toBeLessThan(each * 450);
  });

  test("goes on when its head has completed in a transaction, though the handler is not finished", async () => {
    const group = uniqueName("group");
    const gate = makeGate();
    const kind = makeKind<number>({
      async run(job) {
        await job.transaction((tx) => job.complete(tx));
        if (job.payload === 1) await gate.opened;
      },
    });
    const worker = await bench.hf.work([kind], { concurrency: 2, poll: "1m" });
    const [, second] = await bench.hf.enqueueMany(kind, [
      { payload: 1, group },
      { payload: 2, group },
    ]);
    expect(await ended(bench.hf, second!.id)).toMatchObject({ state: "done" });
    gate.open();
    await worker.stop();
  });

  test("does not keep others waiting until it is empty, though each member names the next", async () => {
    const watch = makeWatch();
    // So that the next one is known before its place is free.
    const kind = makeKind<string>({
      run: (job) => watch.during(job.group, job.payload, () => job.transaction((tx) => job.complete(tx))),
    });
    const group = uniqueName("group");
    await bench.hf.enqueueMany(kind, [...members(group, 3), { payload: "other" }, ...members(group, 20).slice(3)]);
    await runDue(bench.hf, [kind]);
    expect(watch.of(group)).toEqual(members(group, 20).map(({ payload }) => payload));
    expect(watch.seen.indexOf("other")).toBeLessThan(6);
  });

  test("is held by a head that waits for its next try", async () => {
    const watch = makeWatch();
    const group = uniqueName("group");
    const kind = makeKind<string>({
      backoff: ["10m"],
      run: (job) =>
        watch.during(job.group, job.payload, async () => {
          if (job.payload.endsWith("00") && job.attempt < 3) throw new Error("not yet");
        }),
    });
    await bench.hf.enqueueMany(kind, members(group, 3));
    for (const runs of [1, 1, 3]) {
      expect(await runDue(bench.hf, [kind])).toMatchObject({ runs });
      await bench.hf.clock.advance("10m");
    }
    expect(watch.seen.map((payload) => payload.slice(-2))).toEqual(["00", "00", "00", "01", "02"]);
  });

  test("is held by a head that snoozes", async () => {
    const group = uniqueName("group");
    const seen: string[] = [];
    const kind = makeKind<string>({
      run: (job) => {
        seen.push(job.payload.slice(-2));
        if (seen.length === 1) throw new Snooze("10m");
      },
    });
    await bench.hf.enqueueMany(kind, members(group, 2));
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, snoozed: 1 });
    await bench.hf.clock.advance("10m");
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(["00", "00", "01"]);
  });

  test("is held by a head that is not due yet", async () => {
    const group = uniqueName("group");
    const seen: string[] = [];
    const kind = makeKind<string>({ run: (job) => void seen.push(job.payload) });
    await bench.hf.enqueue(kind, "later", { group, delay: "1h" });
    await bench.hf.enqueue(kind, "now", { group });
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    await bench.hf.clock.advance("1h");
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(["later", "now"]);
  });

  test("is not held by a dead head; retried, that one comes last", async () => {
    const group = uniqueName("group");
    const seen: string[] = [];
    let isRepaired = false;
    const kind = makeKind<string>({
      run: (job) => {
        seen.push(job.payload.slice(-2));
        if (job.payload.endsWith("00") && !isRepaired) throw new Fatal("broken");
      },
    });
    const [first] = await bench.hf.enqueueMany(kind, members(group, 3));
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(["00", "01", "02"]);
    await bench.hf.enqueueMany(
      kind,
      members(group, 5)
        .slice(3)
        .map((row) => ({ ...row, delay: "1h" as const })),
    );
    isRepaired = true;
    await bench.hf.jobs.retry(first!.id);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 0 });
    await bench.hf.clock.advance("1h");
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(["00", "01", "02", "03", "04", "00"]);
  });

  test("goes on when its head is cancelled, and is not disturbed when one in the middle is", async () => {
    const group = uniqueName("group");
    const seen: string[] = [];
    const kind = makeKind<string>({ run: (job) => void seen.push(job.payload.slice(-2)) });
    const jobs = await bench.hf.enqueueMany(kind, members(group, 5));
    await bench.hf.jobs.cancel(jobs[2]!.id);
    await bench.hf.jobs.cancel(jobs[0]!.id);
    await runDue(bench.hf, [kind]);
    expect(seen).toEqual(["01", "03", "04"]);
  });

  test("whose members are all cancelled takes new ones", async () => {
    const group = uniqueName("group");
    const kind = makeKind<string>();
    const jobs = await bench.hf.enqueueMany(kind, members(group, 3));
    for (const { id } of jobs.toReversed()) await bench.hf.jobs.cancel(id);
    await bench.hf.enqueue(kind, "new", { group });
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 1, done: 1 });
  });

  test("goes on with the next when its running head is cancelled", async () => {
    const group = uniqueName("group");
    const held = makeHeldKind<string>({
      then: (job) => {
        if (job.payload.endsWith("00")) throw new Error("stopped");
      },
    });
    const worker = await bench.hf.work([held.kind], { concurrency: 5 });
    const jobs = await bench.hf.enqueueMany(held.kind, members(group, 2));
    const run = await held.started();
    await bench.hf.jobs.cancel(jobs[0]!.id);
    await aborted(run.signal);
    held.release();
    expect(await ended(bench.hf, jobs[0]!.id)).toMatchObject({ state: "cancelled" });
    expect(await ended(bench.hf, jobs[1]!.id)).toMatchObject({ state: "done" });
    await worker.stop();
  });

  test("stays in order when a shutdown gives its head back", async () => {
    const group = uniqueName("group");
    const seen: string[] = [];
    const held = makeHeldKind<string>({
      then: (job) => {
        seen.push(job.payload.slice(-2));
        if (seen.length === 1) throw new Error("stopped");
      },
    });
    const jobs = await bench.hf.enqueueMany(held.kind, members(group, 3));
    const worker = await bench.hf.work([held.kind], { concurrency: 5, grace: "0s", abortGrace: "5s" });
    const run = await held.started();
    const released = nextOf(bench.hf, "job.released", jobs[0]!.id);
    const stopped = worker.stop();
    await aborted(run.signal);
    held.release();
    await released;
    await stopped;
    expect(await bench.hf.jobs.get(jobs[0]!.id)).toMatchObject({ state: "pending", attempt: 0 });
    await runDue(bench.hf, [held.kind], { concurrency: 5 });
    expect(seen).toEqual(["00", "00", "01", "02"]);
  });

  test("goes on at once when its head is buried because it crashed its process too often", async () => {
    const group = uniqueName("group");
    const [crasher, next] = [makeKind(), makeKind()];
    // It would not look by itself for a long time, and does not know the crasher.
    const worker = await bench.hf.work([next], { poll: "1m" });
    const head = await bench.hf.enqueue(crasher, 1, { group });
    const { id } = await bench.hf.enqueue(next, 2, { group });
    const leases = JSON.stringify([{ kind: crasher.kind, lease_ms: 60_000 }]);
    const holder = () => ({ token: randomToken(), workerId: uuidv7(), leases });
    await claimIds(bench.store, holder(), [head.id], [crasher.kind], 1);
    for (let crash = 0; crash <= 3; crash += 1) {
      await expireEverything(bench.store);
      await expireIfOverdue(bench.store, { limit: 10, atOnce: true, seenForMs: Infinity });
      if (crash < 3) expect(await claimSuspect(bench.store, holder(), [crasher.kind], true)).toHaveLength(1);
    }
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done" });
    expect(await bench.hf.jobs.get(head.id)).toMatchObject({ state: "dead", lastError: { reason: "crashed" } });
    await worker.stop();
  });

  test("may hold jobs of several kinds and priorities: the order of accepting counts", async () => {
    const group = uniqueName("group");
    const seen: number[] = [];
    const kinds = [makeKind<number>({ run: (job) => void seen.push(job.payload) })];
    kinds.push(makeKind<number>({ run: (job) => void seen.push(job.payload) }));
    for (let n = 0; n < 8; n += 1) await bench.hf.enqueue(kinds[n % 2]!, n, { group, priority: n * 10 });
    await runDue(bench.hf, kinds, { concurrency: 5 });
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe("a group across processes", () => {
  const bench = useHoldfast("server");

  test("runs one at a time and in order on three of them, while more is added", async () => {
    const watch = makeWatch();
    const kind = makeKind<string>({
      backoff: ["20ms"],
      run: (job) =>
        watch.during(job.group, `${job.payload} ${job.attempt}`, async () => {
          await after(2);
          // Every fourth fails once: a retry holds the group.
          if (Number(job.payload.slice(-2)) % 4 === 0 && job.attempt === 1) throw new Error("once");
        }),
    });
    const clients = [bench.hf, await bench.another(), await bench.another()];
    const workers = await Promise.all(clients.map((hf) => hf.work([kind], { concurrency: 4, poll: "50ms" })));
    const groups = [1, 2, 3].map(() => uniqueName("group"));
    const ids: string[] = [];
    for (let n = 0; n < 15; n += 1) {
      for (const [place, group] of groups.entries()) {
        ids.push((await clients[place]!.enqueue(kind, members(group, 15)[n]!.payload, { group })).id);
      }
    }
    await Promise.all(ids.map((id) => ended(bench.hf, id)));
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(watch.overlaps).toEqual([]);
    for (const group of groups) {
      expect(watch.of(group)).toEqual(
        members(group, 15).flatMap(({ payload }, n) =>
          n % 4 === 0 ? [`${payload} 1`, `${payload} 2`] : [`${payload} 1`],
        ),
      );
    }
  });
});
