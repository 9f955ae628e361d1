// A worker: claims jobs of the kinds it knows, runs them, settles them, and can be stopped at any moment without
// costing anybody an attempt.
//
// Stop: no new claims → wait for what runs (`graceMs`) → abort the rest with reason "shutdown" and wait a little
// (`abortMs`) → give back what still runs, uncharged → stop beating → deregister.
import { performance } from "node:perf_hooks";
import type { AnyJobKind } from "../job/define-job.ts";
import type { JobLog } from "../job/handler.ts";
import type { ItemJobPayload } from "../job/item.ts";
import { type Outcome, recordError } from "../job/outcome.ts";
import { cleanText } from "../job/storable.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import type { Tally } from "../metrics/tally.ts";
import { makeCoalescer } from "../shared/coalesce.ts";
import type { Emitter } from "../shared/emitter.ts";
import type { Pulse, Pulses } from "../shared/pulse.ts";
import { makeService, type Service } from "../shared/service.ts";
import { within } from "../shared/sleep.ts";
import { uuidv7 } from "../shared/uuid.ts";
import type { ClaimedJob } from "../store/jobs/claim.ts";
import { abandonLeases } from "../store/jobs/abandon.ts";
import type { KeepEnded } from "../store/jobs/keep-ended.ts";
import { progressIfRunning, type ProgressRow } from "../store/jobs/progress.ts";
import type { Store } from "../store/sql.ts";
import { drainWorker } from "../store/workers/drain.ts";
import { beatWorker, registerWorker, removeWorker } from "../store/workers/register.ts";
import { tellAdvanced } from "./batch-advanced.ts";
import { type Claim, type ClaimLoop, type HandOver, makeClaimLoop } from "./claim-loop.ts";
import { execute } from "./execute.ts";
import { isInside } from "./fenced.ts";
import { type BeaterInput, makeBeater } from "./beater.ts";
import { makeLeaseKeeper } from "./lease-keeper.ts";
import type { Occupancy } from "./occupancy.ts";
import { makeOrders } from "./orders.ts";
import { reportBeats } from "./report-beats.ts";
import { markOld, markRuns, suitsLight } from "./light.ts";
import { abortRun, isItem, makeRun, type Run } from "./run.ts";
import { makeSettler, type Settled } from "./settle.ts";
import { makeThreadBeater } from "./thread-beater.ts";
import { isPlain, type WakeUps } from "./wake-ups.ts";

export interface WorkerInput {
  store: Store;
  kinds: readonly AnyJobKind[];
  concurrency: number;
  name: string;
  /** How the heartbeat thread reaches the database; undefined: beats come from this thread. */
  connection: { url: string } | undefined;
  /** A module for the heartbeat thread to call when this thread hangs. */
  hungHook: string | null;
  pollMs: number;
  graceMs: number;
  abortMs: number;
  occupancy: Occupancy;
  wakeUps: WakeUps;
  /** Where its loops are registered. */
  pulses: Pulses;
  /** How long what ends cancelled stays. */
  keepEnded: KeepEnded;
  /** The kind as jobs of it are run that are in another queue than its own. */
  inQueue(kind: AnyJobKind, queue: string): AnyJobKind;
  /** Counts what runs came to. */
  tally: Tally;
  events: Emitter<HoldfastEvents>;
  log(run: { jobId: string; kind: string; attempt: number }): JobLog;
}

/** A worker: what `hf.work()` gives. `stop()` is graceful. */
export interface Worker extends Service {
  readonly id: string;
  /** For new jobs that could start here at once. */
  offer(kind: string, count: number): HandOver | undefined;
  /** Runs in this worker right now. */
  readonly running: number;
  /** Runs in this worker that would be lost if the process ended now. */
  runningJobs(): { id: string; kind: string; attempt: number; startedAt: number }[];
  /** Takes no more jobs, until it is resumed or stopped; resolves when nothing runs in it. */
  drain(by?: string): Promise<void>;
  /**
   * For a process that is about to die of an error nobody caught: what runs here is recovered at once, as after a crash
   * (a release would let a job that kills its process do so for ever). End the process right after it.
   */
  abandon(): Promise<void>;
}

/** So many times its concurrency may wait to be written: enough that claims never wait for a commit, not more. */
const MOST_UNSETTLED = 2;
const WATCH_MS = 200;
const REGISTER_EVERY_MS = 10_000;
/** How long a stop tries to give back what did not end, if the database is slow or away. */
const RELEASE_MS = 2_000;

const dueAt = ({ runAt }: Settled): Date => runAt ?? new Date();

export function makeWorker(input: WorkerInput): Worker {
  const { store, concurrency, occupancy, events, wakeUps } = input;
  const id = uuidv7();
  const kinds = new Map(input.kinds.map((kind) => [kind.kind, kind]));
  const runs = new Set<Run>();
  let executing = 0;
  let unsettled = 0;
  const onEmpty = new Set<() => void>();
  const trouble = (where: string) => (error: unknown) => events.emit("trouble", { where, error });

  const saidLost = new WeakSet<Run>();
  const keeper = makeLeaseKeeper({
    isOnlyProcess: store.tier === "embedded",
    onLost: tellLost,
    pulse: () => input.pulses.register(`lease watch of ${input.name}`),
    makeBeater(onBeat) {
      const told = reportBeats(events, id, trouble("heartbeat"));
      const parts: BeaterInput = {
        store,
        pulses: input.pulses,
        name: input.name,
        onMissed: told.onMissed,
        onBeat(results, sentAt, tookMs) {
          onBeat(results, sentAt);
          told.onBeat(results, tookMs);
        },
      };
      // The embedded database lives behind this thread: a thread of its own could not reach it any better.
      if (input.connection === undefined) return makeBeater(parts);
      const { connection, hungHook } = input;
      const threadKinds = input.kinds.map((kind) => ({
        kind: kind.kind,
        timeoutMs: kind.timeoutMs,
        delaysMs: Array.from({ length: Math.min(kind.attempts, 50) }, (_, tries) =>
          kind.retryPolicy.delayMs(tries + 1),
        ),
      }));
      return makeThreadBeater({
        ...parts,
        onTrouble: trouble("heartbeat"),
        thread: { connection, schema: store.schema, kinds: threadKinds, keepEnded: input.keepEnded, hungHook },
      });
    },
  });
  let claimPulse: Pulse | undefined;
  let watchPulse: Pulse | undefined;
  let registrationPulse: Pulse | undefined;
  const orders = makeOrders({
    store,
    workerId: id,
    onResumed: () => loop.rewind(),
    onUndrained: () => loop.slotFreed(),
    // Not awaited: it ends by waiting for what asked.
    onStopAsked: () => void service.stop().catch(trouble("stop")),
    onTrouble: trouble("orders"),
  });
  const settler = makeSettler({
    store,
    keeper,
    keepEnded: input.keepEnded,
    onSettled,
    onAdvanced: (batchId, advanced) => tellAdvanced({ wakeUps, events }, batchId, advanced),
    onTrouble: trouble("settle"),
  });
  const loop: ClaimLoop = makeClaimLoop({
    store,
    workerId: id,
    kinds: input.kinds,
    occupancy,
    // Items end in a statement of their own, which knows marked rows only.
    suitsLight: (kind) => !kinds.get(kind)!.batch && suitsLight(kinds.get(kind)!),
    // A handler that is finished frees its slot before its outcome is written, but what waits to be written is
    // bounded too.
    freeSlots: () =>
      orders.drains || unsettled > MOST_UNSETTLED * Math.max(concurrency, 50) ? 0 : concurrency - executing,
    onClaiming: ({ token, sentAt }, leasesMs) => keeper.expect(token, leasesMs, sentAt),
    onClaimed: startRuns,
    onAnswered: ({ token }, leasesMs) => keeper.expectNoMore(token, leasesMs),
    onTook: (jobs, tookMs, error) =>
      events.has("claim.made") && events.emit("claim.made", { workerId: id, jobs, tookMs, error }),
    onTrouble: trouble("claim loop"),
    onTurn: (waitMs) => claimPulse?.beat(waitMs),
    pollMs: input.pollMs,
  });

  const progress = makeCoalescer<ProgressRow, void>({
    maxEntries: 500,
    async run(rows) {
      // The newest of each run is enough.
      const newest = new Map(rows.map((row) => [`${row.id}/${row.token}`, row]));
      try {
        await progressIfRunning(store, [...newest.values()]);
      } catch (error) {
        trouble("progress")(error);
      }
      return rows.map(() => undefined);
    },
  });

  function describe(run: Run) {
    return { jobId: run.job.id, kind: run.job.kind, queue: run.job.queue, attempt: run.job.attempt, workerId: id };
  }

  const tools = { store, log: input.log, progress: saveProgress, completed: admitHeir };

  function admitHeir(run: Run): void {
    if (run.heir === null) return;
    // Most often of the same priority; if not, looking back will tell.
    wakeUps.send({ ids: [run.heir], rank: run.job.rank });
    run.heir = null;
  }

  function kindOf({ kind: name, queue }: ClaimedJob): AnyJobKind {
    const kind = kinds.get(name)!;
    return queue === kind.queue ? kind : input.inQueue(kind, queue);
  }

  function startRuns(jobs: ClaimedJob[], { token, sentAt, alone, isLight }: Claim): void {
    const now = performance.now();
    const started = jobs.map((job) => makeRun({ job, kind: kindOf(job), token, alone, now }));
    keeper.hold(started, sentAt, isLight);
    const isHeard = events.has("job.claimed");
    for (const run of started) {
      runs.add(run);
      executing += 1;
      // It was on its way when the order came.
      if (orders.drains || orders.isPaused(run.job.queue)) {
        settle(run, { type: "release" });
        continue;
      }
      if (isHeard) events.emit("job.claimed", { ...describe(run), waitedMs: run.job.lag_ms });
      execute(run, tools, onEnd);
    }
  }

  /** The handler is finished. */
  function onEnd(run: Run, outcome: Outcome): void {
    if (run.outcome) return;
    if (run.aborted !== "lease-lost" || outcome.type === "done") return settle(run, outcome);
    // Perhaps nobody has the job yet, because the database was out of reach for everybody: then it goes back, uncharged
    // and unsuspected. If somebody has it, this is refused like anything else we say about it.
    settle(run, { type: "release" });
  }

  /** The slot is free at once; the run is over when its outcome is written. */
  function settle(run: Run, outcome: Outcome): void {
    freeSlot(run);
    unsettled += 1;
    settler.settle(run, outcome);
  }

  function onSettled(run: Run, outcome: Outcome, settled: Settled): void {
    unsettled -= 1;
    end(run);
    report(run, outcome, settled);
  }

  function freeSlot(run: Run): void {
    if (!run.hasSlot) return;
    run.hasSlot = false;
    executing -= 1;
    loop.slotFreed();
  }

  function end(run: Run): void {
    freeSlot(run);
    runs.delete(run);
    occupancy.leave();
    if (run.alone) occupancy.free();
    loop.slotFreed();
    if (runs.size > 0) return;
    for (const tell of onEmpty) tell();
    onEmpty.clear();
  }

  function report(run: Run, outcome: Outcome, settled: Settled): void {
    const { verdict } = settled;
    const { kind, rank } = run.job;
    if (verdict === "retry" || verdict === "snooze" || verdict === "again") {
      const inMs = outcome.type === "snooze" ? outcome.delayMs : Math.max(0, dueAt(settled).getTime() - Date.now());
      loop.wake({ kind, rank, inMs: verdict === "again" ? 0 : inMs });
    }
    if (verdict === "release" && !orders.isPaused(run.job.queue)) wakeUps.send({ kind, rank, ids: [run.job.id] });
    if (settled.heir) {
      run.heir = settled.heir;
      admitHeir(run);
    }
    // Whatever its death set off is of a kind we may not know.
    if (verdict === "dead") wakeUps.send({});
    const durationMs = performance.now() - run.startedAt;
    // An item that failed for good is an error of its batch; nobody finds it among the dead.
    const counted = verdict === "dead" && isItem(run) ? "error" : verdict;
    if (verdict !== "release") input.tally.count(run.job.queue, kind, counted, run.job.lag_ms, durationMs);
    const error = "error" in outcome ? outcome.error : undefined;
    if (run.kind.batch && (settled.label || verdict === "handed")) {
      const { batch: batchId, seq } = run.job.payload as ItemJobPayload;
      const ended = settled.label ?? "handed-over";
      events.emit("item.ended", { batchId, seq, kind, queue: run.job.queue, outcome: ended, durationMs, error });
    }
    switch (verdict) {
      case "done":
      case "handed":
        if (events.has("job.done")) events.emit("job.done", { ...describe(run), durationMs });
        return;
      case "retry":
        return events.emit("job.retrying", { ...describe(run), durationMs, error, runAt: dueAt(settled) });
      case "snooze":
        return events.emit("job.snoozed", { ...describe(run), durationMs, runAt: dueAt(settled) });
      case "release":
        return events.emit("job.released", { ...describe(run), durationMs });
      case "dead":
        // An item that failed waits for nobody: its batch has it.
        if (isItem(run)) return;
        return events.emit("job.dead", { ...describe(run), durationMs, error });
      case "cancelled":
        return events.emit("job.cancelled", { ...describe(run), durationMs });
      case "again":
        return events.emit("job.again", { ...describe(run), durationMs });
      case "lost":
      case "abandoned":
        return tellLost(run);
    }
  }

  /** Once for each run, whoever finds out first: a beat, the watch, a fenced write of its handler, its settle. */
  function tellLost(run: Run): void {
    if (saidLost.has(run)) return;
    saidLost.add(run);
    events.emit("lease.lost", describe(run));
  }

  async function saveProgress(run: Run, done: number, total?: number, note?: string): Promise<void> {
    // Inside its transaction the row is locked, and on the embedded tier the statement would wait for the transaction.
    if (run.outcome || run.aborted === "lease-lost" || isInside(run)) return;
    // Best effort: nothing about it is the handler's affair.
    await markRuns(store, [run]).catch(trouble("progress"));
    await progress.add({
      id: run.job.id,
      token: run.token,
      done: Number.isFinite(done) ? done : 0,
      total: total !== undefined && Number.isFinite(total) ? total : null,
      note: note === undefined ? null : cleanText(note, 500),
    });
  }

  /** Its open transaction has the job's row, which is about to be settled without its handler. */
  function interrupt(run: Run): void {
    for (const rollBack of run.interrupts ?? []) rollBack();
  }

  /** Its job was released: somebody else may run it already. */
  function takeAway(run: Run): void {
    if (run.outcome || run.aborted === "lease-lost") return;
    abortRun(run, "lease-lost");
    tellLost(run);
  }

  /** Handlers that are alive but stuck: the job is settled as timed out; what the handler does later is refused. */
  function endOverdue(): void {
    const now = performance.now();
    for (const run of runs) {
      if (now < run.deadline || run.outcome) continue;
      abortRun(run, "timeout");
      interrupt(run);
      const message = `The handler ran longer than its timeout of ${run.kind.timeoutMs} ms.`;
      settle(run, { type: "retry", error: { ...recordError({ name: "Timeout", message }), reason: "timeout" } });
    }
  }

  const empty = (): Promise<void> =>
    runs.size === 0 ? Promise.resolve() : new Promise((resolve) => onEmpty.add(resolve));

  let watch: NodeJS.Timeout | undefined;
  let registration: NodeJS.Timeout | undefined;
  let stopHearing: (() => void) | undefined;
  let stopSeeing: (() => void) | undefined;

  const service = makeService({
    async onStart() {
      await registerWorker(store, { id, name: input.name, concurrency, kinds: [...kinds.keys()] });
      await orders.learn();
      claimPulse = input.pulses.register(`claim loop of ${input.name}`);
      watchPulse = input.pulses.register(`watch of ${input.name}`);
      watch = setInterval(() => {
        watchPulse?.beat(WATCH_MS);
        endOverdue();
        void markOld(store, keeper.held()).catch(trouble("marking"));
      }, WATCH_MS);
      registrationPulse = input.pulses.register(`registration of ${input.name}`);
      registrationPulse.beat(REGISTER_EVERY_MS);
      registration = setInterval(() => {
        registrationPulse?.beat(REGISTER_EVERY_MS);
        void Promise.all([beatWorker(store, id, runs.size), orders.learn()]).catch(trouble("worker beat"));
      }, REGISTER_EVERY_MS);
      stopHearing = wakeUps.subscribe((wakeUp) => {
        const { cancelIds = [], releasedTokens = [] } = wakeUp;
        if (isPlain(wakeUp)) void orders.learn();
        if (cancelIds.length + releasedTokens.length === 0) return loop.wake(wakeUp);
        for (const run of runs) {
          if (cancelIds.includes(run.job.id)) abortRun(run, "cancelled");
          if (releasedTokens.includes(`${run.token}/${run.job.id}`)) takeAway(run);
        }
      });
      stopSeeing = occupancy.onChange(() => loop.slotFreed());
      keeper.start();
      loop.start();
      events.emit("worker.started", { workerId: id, kinds: [...kinds.keys()], concurrency });
    },
    async onStop() {
      stopHearing?.();
      stopSeeing?.();
      await loop.stop();
      claimPulse?.end();
      await within(input.graceMs, empty());
      settler.giveUpAfter(input.abortMs + RELEASE_MS);
      for (const run of runs) abortRun(run, "shutdown");
      await within(input.abortMs, empty());
      for (const run of runs) {
        if (run.outcome) continue;
        interrupt(run);
        settle(run, { type: "release" });
      }
      await settler.idle();
      await progress.idle();
      watchPulse?.end();
      clearInterval(watch);
      clearInterval(registration);
      registrationPulse?.end();
      await keeper.stop();
      await removeWorker(store, id).catch(trouble("worker removal"));
      events.emit("worker.stopped", { workerId: id });
    },
  });

  return {
    ...service,
    id,
    offer: (kind, count) =>
      orders.drains || orders.isPaused(kinds.get(kind)?.queue ?? "") ? undefined : loop.offer(kind, count),
    async drain(by) {
      await drainWorker(store, id, by ?? null);
      await orders.learn();
      await empty();
    },
    get running() {
      return runs.size;
    },
    abandon: () => abandonLeases(store, id),
    runningJobs: () =>
      [...runs].map((run) => ({
        id: run.job.id,
        kind: run.job.kind,
        attempt: run.job.attempt,
        startedAt: run.startedAt,
      })),
  };
}
