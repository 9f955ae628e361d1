// Event loops that are blocked, and main threads that hang: beats come from a thread of their own, and a process that
// hangs for ever is found out by it.
import { afterEach, describe, expect, test } from "vitest";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import { defineJob } from "#src/job/define-job.js";
import { makePulses } from "#src/shared/pulse.js";
import type { BeatResult, LeaseId } from "#src/store/jobs/beat.js";
import { settleDone } from "#src/store/jobs/settle.js";
import { makeThreadBeater } from "#src/worker/thread-beater.js";
import type { Worker } from "#src/worker/worker.js";
import { assertSound } from "../support/assert-sound.ts";
import { collect, ended } from "../support/events.ts";
import { type Gate, makeGate, makeHeldKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";
import { type Child, killChildren } from "../support/processes.ts";
import { longChild, until } from "./scene.ts";

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

/** What somebody else would make of the jobs, if they were let go. */
const rivalBlock = (lease: "1s" | "2s" | "20s") =>
  defineJob<object>("block", { lease, attempts: 5, run: () => "rival" });
const rivalWait = (lease: "1s" | "2s") => defineJob<object>("wait", { lease, run: () => "rival" });

describe("a process of its own (server)", () => {
  const bench = useHoldfast("server");
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()));
    await killChildren();
    await assertSound(bench.db, bench.store.schema);
    // What a test that failed has left would be run by the processes of the next one.
    await bench.db.script("delete from holdfast.jobs; delete from holdfast.leases");
  });

  /** Waits until the heartbeat thread of the child has started, which takes its time on a busy machine. */
  async function threadBeats(child: Child): Promise<void> {
    const { id } = await bench.hf.enqueue(rivalWait("1s"), {});
    await child.until("started", ({ job }) => job === id);
    // The first beats come from the main thread, on a connection of the pool.
    await until("a beat of the thread", async () => {
      const { rows } = await bench.db.query(
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'holdfast heartbeat' and query like '%.beat_%'",
      );
      return rows.length > 0;
    });
    await bench.hf.jobs.cancel(id);
    await ended(bench.hf, id);
  }

  test("a handler that computes for 3 leases is executed exactly once, with somebody waiting to take over", async () => {
    const block = rivalBlock("1s");
    const child = await longChild("blocking.mjs", { name: "spinner", url: bench.url, lease: "1s" });
    await threadBeats(child);
    const { id } = await bench.hf.enqueue(block, { ms: 3_000 });
    await child.until("started", ({ kind }) => kind === "block");
    workers.push(await bench.hf.work([block]));
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1, result: "spinner" });
    expect(child.said.filter(({ what, job }) => what === "lease.lost" && job === id)).toEqual([]);
  });

  test("a claim that is answered while a neighbour computes for 3 leases is not lost", async () => {
    const block = rivalBlock("1s");
    const child = await longChild("blocking.mjs", { name: "spinner", url: bench.url, lease: "1s" });
    await threadBeats(child);
    const neighbour = await bench.hf.enqueue(block, { waitMs: 1_500, ms: 3_500 });
    await child.until("started", ({ job }) => job === neighbour.id);
    const startedAt = performance.now();
    // The claim is sent, and is not answered before the neighbour computes.
    const session = new Client({ connectionString: bench.url });
    await session.connect();
    await session.query(
      `select pg_advisory_lock(hashtextextended('block', 0)), pg_advisory_lock(hashtextextended('holdfast lane block', 0))`,
    );
    const { id } = await bench.hf.enqueue(block, { ms: 1 });
    await until("a claim that waits", async () => {
      const { rows } = await bench.db.query(
        "select pid from pg_stat_activity where datname = current_database() and wait_event = 'advisory'",
      );
      return rows.length > 0;
    });
    await new Promise((resolve) => setTimeout(resolve, 2_000 - (performance.now() - startedAt)));
    await session.end();
    await until("the claim", async () => (await bench.hf.jobs.get(id))?.state === "running");
    workers.push(await bench.hf.work([block]));
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1, result: "spinner" });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ lastError: null });
    expect(await ended(bench.hf, neighbour.id)).toMatchObject({ state: "done", claimCount: 1 });
  });

  test("a main thread that hangs for ever: the job is timed out, the beats stop, its other job is recovered elsewhere, the hook ends the process", async () => {
    const [block, wait] = [rivalBlock("2s"), rivalWait("2s")];
    const child = await longChild("blocking.mjs", {
      name: "hanging",
      url: bench.url,
      lease: "2s",
      timeout: "1s",
      hungHook: new URL("./children/patient-hook.mjs", pathToFileURL(import.meta.filename)).href,
    });
    await threadBeats(child);
    const other = await bench.hf.enqueue(wait, {});
    await child.until("started", ({ job }) => job === other.id);
    const hanging = await bench.hf.enqueue(block, {}, { attempts: 1 });
    await child.until("started", ({ kind }) => kind === "block");
    workers.push(await bench.hf.work([block, wait]));
    await child.until("noticed");
    // Settled by the thread, before the hook was called.
    expect(await bench.hf.jobs.get(hanging.id)).toMatchObject({
      state: "dead",
      attempt: 1,
      lastError: { name: "Timeout", reason: "timeout", message: expect.stringContaining("1000 ms") },
    });
    expect(await ended(bench.hf, other.id)).toMatchObject({
      state: "done",
      attempt: 1,
      claimCount: 2,
      result: "rival",
    });
    expect(await bench.hf.jobs.attempts(other.id)).toEqual([]);
    // It was let go though its process was still there.
    expect(child.isRunning).toBe(true);
    expect(await child.exited).toMatchObject({ signal: "SIGKILL" });
    expect(child.said.find(({ what }) => what === "hung")).toMatchObject({
      jobs: [{ id: hanging.id, kind: "block" }],
      silentForMs: expect.any(Number),
    });
  });

  test("a main thread that hangs in a job that somebody else has meanwhile: the hook ends the process all the same", async () => {
    const block = rivalBlock("2s");
    const child = await longChild("blocking.mjs", {
      name: "robbed",
      url: bench.url,
      lease: "2s",
      timeout: "4s",
      hungHook: new URL("./children/hung-hook.mjs", pathToFileURL(import.meta.filename)).href,
    });
    await threadBeats(child);
    const { id } = await bench.hf.enqueue(block, {});
    await child.until("started", ({ kind }) => kind === "block");
    workers.push(await bench.hf.work([block]));
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    // As when the thread's beats do not get through for as long as a lease.
    await until("the takeover", async () => {
      await bench.db.query(
        "update holdfast.leases set expires_at = holdfast.clock() - interval '1s' where expires_at < holdfast.clock() + interval '3s'",
      );
      return (await bench.hf.jobs.get(id))!.claimCount > 1;
    });
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, result: "rival" });
    expect(await child.exited).toMatchObject({ signal: "SIGKILL" });
    expect(child.said.find(({ what }) => what === "hung")).toMatchObject({ jobs: [{ id, kind: "block" }] });
  });

  test("a run that ended before the silence does not count as hanging, however late its process hears of it", async () => {
    const child = await longChild("blocking.mjs", {
      name: "busy",
      url: bench.url,
      lease: "2s",
      timeout: "5s",
      hungHook: new URL("./children/hung-hook.mjs", pathToFileURL(import.meta.filename)).href,
    });
    await threadBeats(child);
    const ends = await bench.hf.enqueue(rivalBlock("2s"), { waitMs: 60_000 });
    await child.until("started", ({ job }) => job === ends.id);
    // Its own timeout is far away: what falls silent here is no reason to end anything.
    const blocks = await bench.hf.enqueue(rivalWait("2s"), { blockMs: 9_000 });
    await child.until("started", ({ job }) => job === blocks.id);
    // The thread has written down what the process had in hand. Then its end is stored, as it was sent before the silence.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const { rows } = await bench.db.query<{ token: string }>("select token::text from holdfast.jobs where id = $1", [
      ends.id,
    ]);
    const settled = await settleDone(bench.store, [{ id: ends.id, token: rows[0]!.token, keepMs: null }], []);
    expect([...settled]).toEqual([ends.id]);
    // Past the other's timeout, and past the margin after it; fails at once if the process was ended.
    await child.until("job.done", ({ job }) => job === blocks.id);
    expect(child.said.filter(({ what }) => what === "hung")).toEqual([]);
    expect(await bench.hf.jobs.get(blocks.id)).toMatchObject({ state: "done", claimCount: 1, result: "busy" });
    expect(await bench.hf.jobs.get(ends.id)).toMatchObject({
      state: "done",
      attempt: 1,
      claimCount: 1,
      lastError: null,
    });
  });

  test("a main thread that comes back late: what was past its timeout is settled, and what it claims from then on has beats again", async () => {
    const [block, wait] = [rivalBlock("2s"), rivalWait("2s")];
    const child = await longChild("blocking.mjs", { name: "late", url: bench.url, lease: "2s", timeout: "700ms" });
    // Under two claims, and the one that blocks is past its timeout later than the other one.
    const waits = await bench.hf.enqueue(block, { waitMs: 60_000 }, { attempts: 1 });
    await child.until("started", ({ job }) => job === waits.id);
    // More than a look of the thread's apart: those that it finds late together are not told apart.
    await new Promise((resolve) => setTimeout(resolve, 600));
    const blocks = await bench.hf.enqueue(block, { ms: 4_600 }, { attempts: 1 });
    for (const { id } of [waits, blocks]) {
      await child.until("job.dead", ({ job }) => job === id);
      expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "dead", lastError: { reason: "timeout" } });
    }
    // By the thread, while the main thread was blocked.
    const { lastError } = (await bench.hf.jobs.get(blocks.id))!;
    expect(lastError?.message).toContain("blocked its process");
    await child.until("trouble", ({ where, message }) => where === "heartbeat" && String(message).includes(blocks.id));
    // Longer than its lease, with somebody who would take it over.
    const { id } = await bench.hf.enqueue(wait, { ms: 4_000 });
    await child.until("started", ({ job }) => job === id);
    workers.push(await bench.hf.work([wait]));
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1, result: "late" });
  });

  test("two that are past their timeouts at once while one of them blocks: none is settled for that, and what is said names both", async () => {
    const block = rivalBlock("20s");
    // A lease that outlasts the silence: without beats it would be somebody else's before the process came back.
    const child = await longChild("blocking.mjs", { name: "both", url: bench.url, lease: "20s", timeout: "700ms" });
    const jobs = [{ waitMs: 60_000 }, { ms: 4_600 }].map((payload) => ({ payload, attempts: 1 }));
    const [waits, blocks] = await bench.hf.enqueueMany(block, jobs);
    await child.until("started", ({ job }) => job === waits!.id);
    await child.until("started", ({ job }) => job === blocks!.id);
    const { message } = await child.until("trouble", ({ where }) => where === "heartbeat");
    expect(message).toContain(waits!.id);
    expect(message).toContain(blocks!.id);
    expect(message).toContain("none was settled");
    // The process came back in time: it tells itself what they came to.
    expect(await ended(bench.hf, blocks!.id)).toMatchObject({ state: "done", attempt: 1, result: "both" });
    expect(await ended(bench.hf, waits!.id)).toMatchObject({ state: "dead", lastError: { reason: "timeout" } });
  });
});

describe("this process (embedded)", () => {
  const bench = useHoldfast("embedded");

  test("a handler that computes for 3 leases is executed exactly once: nobody else can take over, and our own janitor waits", async () => {
    const lost = collect(bench.hf, "lease.lost");
    const expired = collect(bench.hf, "lease.expired");
    let runs = 0;
    const spin = defineJob<null>("spin", {
      lease: "400ms",
      async run(job) {
        runs += 1;
        const end = performance.now() + 1_200;
        while (performance.now() < end);
        await job.progress(1, 1);
        return job.signal.aborted;
      },
    });
    workers.push(await bench.hf.work([spin], { concurrency: 2 }));
    const { id } = await bench.hf.enqueue(spin, null);
    expect(await ended(bench.hf, id)).toMatchObject({ state: "done", attempt: 1, claimCount: 1, result: false });
    expect([runs, lost.events, expired.events]).toEqual([1, [], []]);
    lost.stop();
    expired.stop();
  });
});

describe("the thread", () => {
  const bench = useHoldfast("server");

  interface Beating {
    troubles: string[];
    pulses: ReturnType<typeof makePulses>;
    /** Lets so much time pass for those who judge the loops. */
    later(ms: number): void;
    /** Resolves at the next beat that renewed this lease. */
    renewed(lease: LeaseId): Promise<BeatResult>;
    beater: ReturnType<typeof makeThreadBeater>;
  }

  function startBeating(file?: URL): Beating {
    const troubles: string[] = [];
    let passed = 0;
    const pulses = makePulses(() => performance.now() + passed);
    const waiting = new Map<string, Gate & { result?: BeatResult }>();
    const beater = makeThreadBeater({
      store: bench.store,
      onBeat(results) {
        for (const result of results) {
          if (result.state !== "renewed") continue;
          const gate = waiting.get(result.token);
          if (gate) gate.result = result;
          gate?.open();
        }
      },
      onMissed: (error) => troubles.push(String(error)),
      onTrouble: (error) => troubles.push(String(error)),
      pulses,
      name: "test",
      thread: {
        connection: { url: bench.url },
        schema: "holdfast",
        kinds: [],
        keepEnded: { ms: null, queues: {} },
        hungHook: null,
      },
      ...(file ? { file } : {}),
    });
    return {
      troubles,
      beater,
      pulses,
      later: (ms) => (passed += ms),
      async renewed({ token }) {
        const gate: Gate & { result?: BeatResult } = makeGate();
        waiting.set(token, gate);
        await gate.opened;
        return gate.result!;
      },
    };
  }

  async function heldLease(): Promise<{ lease: LeaseId; release(): void }> {
    const held = makeHeldKind<null>({ lease: "1500ms" });
    workers.push(await bench.hf.work([held.kind], { grace: "1s" }));
    await bench.hf.enqueue(held.kind, null);
    return { lease: { token: (await held.started()).token, leaseMs: 1_500 }, release: held.release };
  }

  const child = (name: string): URL => new URL(`./children/${name}`, pathToFileURL(import.meta.filename));

  test("beats from its own connection", async () => {
    const { lease, release } = await heldLease();
    const { beater, renewed, troubles, pulses, later } = startBeating();
    beater.hold(lease);
    expect(await renewed(lease)).toMatchObject({ token: lease.token });
    await until("only the thread beats", () => Promise.resolve(pulses.loops().length === 1));
    later(31_000);
    expect(pulses.stopped()).toEqual(["heartbeat thread of test"]);
    await until("the thread's next turn", () => Promise.resolve(pulses.stopped().length === 0));
    await until("the thread's own session", async () => {
      const { rows } = await bench.db.query<{ count: number }>(
        "select count(*)::integer as count from pg_stat_activity where datname = current_database() and query like '%beat%'",
      );
      return rows[0]!.count >= 2;
    });
    await beater.stop();
    expect(troubles).toEqual([]);
    release();
  });

  test("whose file a bundler left out: an error that says so and what to do, and beats from the main thread", async () => {
    const { lease, release } = await heldLease();
    const { beater, renewed, troubles } = startBeating(child("nowhere.mjs"));
    expect(troubles).toEqual([
      expect.stringMatching(/thread's file is missing \(.*nowhere\.mjs\).*main thread.*external/),
    ]);
    beater.hold(lease);
    expect(await renewed(lease)).toMatchObject({ token: lease.token });
    await beater.stop();
    release();
  });

  test.each([
    [
      "cannot be loaded",
      "cannot-load",
      /heartbeat thread failed \(cannot be loaded\); beats come from the main thread/,
    ],
    ["throws", "throws", /heartbeat thread failed \(fell over\); beats come from the main thread/],
    ["ends", "ends", /heartbeat thread ended; beats come from the main thread/],
  ])("that %s is reported once, and the beats go on from the main thread", async (_, how, message) => {
    const { lease, release } = await heldLease();
    const { beater, renewed, troubles, pulses } = startBeating(child(`thread-that-${how}.mjs`));
    beater.hold(lease);
    await until("the report", () => Promise.resolve(troubles.length > 0));
    expect(await renewed(lease)).toMatchObject({ token: lease.token });
    const later = await heldLease();
    beater.hold(later.lease);
    expect(await renewed(later.lease)).toMatchObject({ token: later.lease.token });
    expect(pulses.loops().map(({ name }) => name)).toEqual(["heartbeat of test"]);
    beater.drop(lease, true);
    beater.drop(later.lease, false);
    await beater.stop();
    expect(troubles).toEqual([expect.stringMatching(message)]);
    release();
    later.release();
  });

  test("that has not started yet is not waited for: the first beats come from the main thread", async () => {
    const { lease, release } = await heldLease();
    const { beater, renewed, troubles, pulses, later } = startBeating(child("thread-that-sleeps.mjs"));
    beater.hold(lease);
    expect(await renewed(lease)).toMatchObject({ token: lease.token });
    expect(pulses.stopped()).toEqual([]);
    later(31_000);
    expect(await renewed(lease)).toMatchObject({ token: lease.token });
    // The beats go on, and yet somebody should know.
    expect(pulses.stopped()).toEqual(["heartbeat thread of test"]);
    await beater.stop();
    expect(pulses.loops()).toEqual([]);
    expect(troubles).toEqual([]);
    release();
  });
});
