// The client: what open() gives. It only delegates; the work is done in the rooms below.
import { JOB_ENDED } from "../metrics/job-ended.ts";
import type { Batches } from "../batches/batches.ts";
import { makeBatchChores } from "../batches/chores.ts";
import { makeHandBack } from "../batches/hand-back.ts";
import { makeBatches } from "../batches/make-batches.ts";
import { makeRunnable } from "../batches/run-item.ts";
import { makeStarted } from "../batches/started.ts";
import type { Db } from "../db/db.ts";
import { Closed, KindUnknown, OptionInvalid } from "../errors.ts";
import { makeInboxChore } from "../inbox/chore.ts";
import { type Inbox, type Inboxes, makeInboxRoom } from "../inbox/inbox.ts";
import { makeOwnChores } from "../janitor/chores/chores.ts";
import { type Janitor, makeJanitor } from "../janitor/janitor.ts";
import { isBatchKind } from "../job/define-batch.ts";
import type { AnyJobKind, JobKind } from "../job/define-job.ts";
import { kindWarnings } from "../job/warnings.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import { makeErrorTally } from "../metrics/error-tally.ts";
import { makeTally } from "../metrics/tally.ts";
import { type ResolvedOptions, resolveWorkOptions, type WorkOptions } from "../options.ts";
import type { Emitter, Listener } from "../shared/emitter.ts";
import type { Pulses } from "../shared/pulse.ts";
import type { NewJob } from "../store/jobs/insert.ts";
import type { Advanced } from "../store/batches/advance.ts";
import type { Store } from "../store/sql.ts";
import { tellAdvanced } from "../worker/batch-advanced.ts";
import type { WakeUp } from "../worker/claim-loop.ts";
import { makeOccupancy } from "../worker/occupancy.ts";
import { makeWakeUps } from "../worker/wake-ups.ts";
import { makeWorker, type Worker } from "../worker/worker.ts";
import { type Actions, makeActions, makeActionsChore } from "./actions.ts";
import { type Errors, makeErrorChores, makeErrors } from "./errors.ts";
import { makeProblems, type ProblemReport } from "./problems.ts";
import { makeSystem, type SystemFacts } from "./system.ts";
import { type Audit, makeAudit, makeAuditChore } from "./audit.ts";
import { type Doctor, makeDoctor } from "./doctor/doctor.ts";
import { makeRepair, type MakeRepair } from "./doctor/repairs.ts";
import { type Enqueued, makeEnqueuer } from "./enqueue.ts";
import type { EnqueueOptions, EnqueueRow } from "./new-job.ts";
import { type Jobs, makeJobs } from "./jobs.ts";
import { makeSql, type Sql } from "./sql.ts";
import { makeTokens, type Tokens } from "./tokens.ts";
import { makeViews, type Views } from "./views.ts";
import { makeWorkers, type Workers } from "./workers.ts";
import { type HealthCheck, makeHealth } from "./health.ts";
import { makeMetrics, type Metrics } from "./metrics.ts";
import { makeQueues, type Queues } from "./queues.ts";
import { makeStats, type Stats } from "./stats.ts";
import { keepDeadOf, keepEndedOf, makeInQueue, withDefaults } from "./retention.ts";
import type { Transaction } from "../job/caller-transaction.ts";

/** What `open()` gives: enqueue work, run it, look at it and act on it, from any process of the same database. */
export interface Holdfast extends AsyncDisposable {
  readonly tier: Db["tier"];
  /** The database is `memory:` and ends with this process: nothing that is accepted is kept. */
  readonly isInMemory: boolean;
  readonly schema: string;
  enqueue<Payload, Input, Result>(
    kind: JobKind<Payload, Input, Result>,
    payload: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<Enqueued>;
  /** One statement for up to 10,000 rows; results in the order of the rows. */
  enqueueMany<Payload, Input, Result>(
    kind: JobKind<Payload, Input, Result>,
    rows: readonly EnqueueRow<NoInfer<Input>>[],
    options?: { tx?: Transaction | undefined },
  ): Promise<Enqueued[]>;
  /** Starts a worker for these kinds. Stopping it is graceful; closing the client stops it too. */
  work(kinds: readonly AnyJobKind[], options?: WorkOptions): Promise<Worker>;
  readonly jobs: Jobs;
  /** Bulk work: items that are counted, paused, cancelled, retried and handed back. */
  readonly batches: Batches;
  /** One verb on all jobs that match a filter, in the background. */
  readonly actions: Actions;
  /** Failed attempts, and dead jobs, by what their errors have in common. */
  readonly errors: Errors;
  /**
   * Keeps the house: at work from the first `work()` on, or from `janitor.start()` in a process that has no worker.
   * Closing the client stops it.
   */
  readonly janitor: Janitor;
  readonly queues: Queues;
  readonly stats: Stats;
  readonly health: HealthCheck;
  /** What is wrong now, in sentences. */
  problems(): Promise<ProblemReport>;
  /** What the database is, holds and was migrated to. */
  system(): Promise<SystemFacts>;
  /** Whether all is well, check by check, with what to do where it is not. */
  readonly doctor: Doctor;
  /** Mends one thing that the doctor found and offered to (`finding.repair.id`); answers with what it did. */
  readonly repair: MakeRepair;
  /** For Prometheus. Counting begins with the first look at this property. */
  readonly metrics: Metrics;
  readonly workers: Workers;
  /** Who may call the HTTP API. */
  readonly tokens: Tokens;
  /** What end users may be given, to watch one job or one batch. */
  readonly views: Views;
  /** What people did over HTTP. */
  readonly audit: Audit;
  /** The database, for tables of your own. */
  readonly sql: Sql;
  /** Bytes handed to this recipient. */
  inbox(recipient: string): Inbox;
  /** All recipients: how each inbox stands, and the limits. */
  readonly inboxes: Inboxes;
  /** After a commit of yours that enqueued with `tx`: workers look at once instead of at their next poll. */
  wake(): void;
  on<Name extends keyof HoldfastEvents>(name: Name, listener: Listener<HoldfastEvents[Name]>): () => void;
  close(): Promise<void>;
}

export interface ClientInput {
  db: Db;
  store: Store;
  options: ResolvedOptions;
  events: Emitter<HoldfastEvents>;
  /** Where the loops of the process are registered. */
  pulses: Pulses;
  /** For how long the database has answered without interruption. */
  seenForMs(): number;
  /** False while notifications do not arrive. */
  hearsAll(): boolean;
}

export function makeClient({ db, store, options, events, pulses, seenForMs, hearsAll }: ClientInput): Holdfast {
  const trouble = (where: string) => (error: unknown) => events.emit("trouble", { where, error });
  const wakeUps = makeWakeUps({
    db,
    schema: options.schema,
    onHeard: (from) => events.has("wake.heard") && events.emit("wake.heard", { from }),
    onTrouble: trouble("wake-ups"),
  });
  const inboxRoom = makeInboxRoom({ db, store, limits: options.inbox, events });
  const occupancy = makeOccupancy();
  const workers = new Set<Worker>();
  // Whoever asks who is alive here must not be told of one that is gone: what it left behind would never be recovered.
  events.on("worker.stopped", ({ workerId }) => {
    for (const worker of workers) if (worker.id === workerId) workers.delete(worker);
    working.delete(workerId);
  });
  const tally = makeTally();
  const keepEnded = keepEndedOf(options);
  const inQueue = makeInQueue(options);
  const errorTally = makeErrorTally(events);
  const working = new Map<string, { kinds: readonly AnyJobKind[]; concurrency: number }>();
  let shortestLeaseMs = Infinity;
  let closing: Promise<void> | undefined;

  const enqueuer = makeEnqueuer({
    store,
    onTrouble: trouble("enqueue"),
    onAnswered: (count, tookMs) => events.has("enqueue.made") && events.emit("enqueue.made", { jobs: count, tookMs }),
    offer(kind, count) {
      for (const worker of workers) {
        const offered = worker.offer(kind, count);
        if (offered) return offered;
      }
      return undefined;
    },
    onEnqueued(newJobs, results, taken) {
      if (events.has("job.enqueued")) {
        for (const [index, { kind, queue }] of newJobs.entries()) {
          const { id: jobId, created, conflict } = results[index]!;
          events.emit("job.enqueued", { jobId, kind, queue, created, conflict });
        }
      }
      if (!taken) for (const wakeUp of wakeUpsFor(newJobs)) wakeUps.send(wakeUp);
    },
  });

  const onAdvanced = (batchId: string, advanced: Advanced): void =>
    tellAdvanced({ wakeUps, events }, batchId, advanced);
  const jobs = makeJobs({
    store,
    wakeUps,
    keepEnded,
    onAdvanced,
    onEnded(listener) {
      const stops = JOB_ENDED.map((name) => events.on(name, (event) => listener(event.jobId)));
      return () => {
        for (const stop of stops) stop();
      };
    },
  });

  const batches = makeBatches({
    store,
    onAdvanced,
    onCreated: ({ id: batchId, kind, owner, total }) => events.emit("batch.created", { batchId, kind, owner, total }),
    onCancelled: (jobIds) => wakeUps.send({ cancelIds: jobIds }),
    onBatchCancelled: (event) => events.emit("batch.cancelled", event),
    onAcked: (event) => events.emit("item.ended", event),
    onNews: (listener) => events.on("batch.finished", ({ batchId }) => listener(batchId)),
  });
  const itemTools = {
    handBack: makeHandBack({ store, inbox: inboxRoom.inbox, onPut: () => inboxRoom.wakeAll() }),
    started: makeStarted(store, trouble("batches")),
  };

  const assertOpen = (): void => {
    if (closing) throw new Closed("This Holdfast client is closed.", "Open a new one.");
  };

  const queues = makeQueues({ store, tell: () => wakeUps.send({}) });
  const janitor = makeJanitor({
    store,
    events,
    pulses,
    chores: makeOwnChores({
      store,
      events,
      seenForMs,
      liveWorkers: () => [...workers].map((worker) => worker.id),
      shortestLeaseMs: () => shortestLeaseMs,
      keepEnded,
      keepDead: keepDeadOf(options),
      purgeEvery: options.purgeEvery,
      tally,
      onAdvanced,
      onLetIn: () => wakeUps.send({}),
      onRecovered: (kinds) => {
        for (const kind of kinds) wakeUps.send({ kind });
        wakeUps.send({});
      },
      onEnded: (heirs) => {
        if (heirs.length > 0) wakeUps.send({ ids: heirs });
        wakeUps.send({});
      },
    }),
  });
  janitor.add(makeAuditChore(store));
  for (const chore of makeBatchChores({
    store,
    events,
    onAdvanced,
    onCancelled: (jobIds) => wakeUps.send({ cancelIds: jobIds }),
    purgeEvery: options.purgeEvery,
  })) {
    janitor.add(chore);
  }
  for (const chore of makeErrorChores(store, errorTally)) janitor.add(chore);
  const actionsInput = {
    store,
    wakeUps,
    keepEnded,
    // Whoever has the chore goes on with it; this only saves the wait for its next turn.
    hurry: () => void janitor.run("carry-out-actions").catch(trouble("actions")),
  };
  janitor.add(makeActionsChore(actionsInput));
  janitor.add(
    makeInboxChore({
      store,
      limits: options.inbox,
      events,
      onFollowed: (kinds) => {
        for (const kind of kinds) wakeUps.send({ kind, rank: 0 });
      },
    }),
  );

  const counting = makeMetrics({
    store,
    events,
    janitor,
    queues,
    pulses,
    load: () => db.load(),
    hearsAll,
    kinds: () => [...working.values()].flatMap(({ kinds }) => kinds),
    slots() {
      const slots = new Map<string, number>();
      for (const { kinds, concurrency } of working.values()) {
        for (const queue of new Set(kinds.map((kind) => kind.queue))) {
          slots.set(queue, (slots.get(queue) ?? 0) + concurrency);
        }
      }
      return slots;
    },
    running: () => [...workers].reduce((sum, worker) => sum + worker.running, 0),
  });
  const health = makeHealth(store, queues, pulses);
  const rules = { store, health, queues, inboxes: inboxRoom.inboxes, chores: () => janitor.chores };

  async function close(): Promise<void> {
    await Promise.all([...workers].map((worker) => worker.stop()));
    await janitor.stop();
    counting.close();
    await enqueuer.idle();
    await inboxRoom.close();
    await wakeUps.close();
    await db.close();
  }

  return {
    tier: db.tier,
    isInMemory: options.place.tier === "memory",
    schema: options.schema,
    jobs,
    batches,
    actions: makeActions(actionsInput),
    errors: makeErrors(store),
    janitor,
    queues,
    stats: makeStats(store),
    health,
    problems: makeProblems(rules),
    system: makeSystem(store),
    doctor: makeDoctor({
      db,
      store,
      poolSize: options.poolSize,
      rules,
      asRun: (kind) => withDefaults(kind, options),
    }),
    repair: makeRepair({ store, janitor }),
    get metrics() {
      return counting.metrics();
    },
    workers: makeWorkers({ store, tell: () => wakeUps.send({}) }),
    tokens: makeTokens(store),
    views: makeViews({ store, jobs, batches }),
    audit: makeAudit(store),
    sql: makeSql(db, options.schema, options.migrate),
    inbox(recipient) {
      assertOpen();
      return inboxRoom.inbox(recipient);
    },
    inboxes: inboxRoom.inboxes,
    async enqueue(kind, payload, enqueueOptions = {}) {
      assertOpen();
      assertKind(kind);
      assertNoBatch(kind);
      return await enqueuer.enqueue(kind, payload, enqueueOptions);
    },
    async enqueueMany(kind, rows, { tx } = {}) {
      assertOpen();
      assertKind(kind);
      assertNoBatch(kind);
      return await enqueuer.enqueueMany(kind, rows, tx);
    },
    async work(kinds, workOptions = {}) {
      assertOpen();
      const resolved = resolveWorkOptions(workOptions);
      for (const kind of kinds) assertKind(kind);
      const names = kinds.map((kind) => kind.kind);
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      if (names.length === 0) throw new OptionInvalid("work() got no kinds.", "Give at least one: work([myJob]).");
      if (twice !== undefined) {
        throw new OptionInvalid(`work() got the kind "${twice}" twice.`, "Give each kind once.");
      }
      const asRun = kinds.map((kind) =>
        withDefaults(isBatchKind(kind) ? makeRunnable(kind, itemTools) : kind, options),
      );
      shortestLeaseMs = Math.min(shortestLeaseMs, ...asRun.map((kind) => kind.leaseMs));
      for (const { code, message } of kindWarnings(asRun)) options.log.warn(message, { code });
      await janitor.start();
      // A database that refuses LISTEN (a pooler, a missing right) is no reason not to work.
      wakeUps.listen().catch(trouble("listen"));
      const worker = makeWorker({
        store,
        kinds: asRun,
        ...resolved,
        connection: options.place.tier === "server" ? { url: options.place.url } : undefined,
        occupancy,
        wakeUps,
        pulses,
        keepEnded,
        inQueue,
        tally,
        events,
        log: (run) => jobLog(options.log, run),
      });
      workers.add(worker);
      working.set(worker.id, { kinds: asRun, concurrency: resolved.concurrency });
      try {
        await worker.start();
      } catch (error) {
        // One that is not there must not be counted among those that are.
        await worker.stop();
        throw error;
      }
      return worker;
    },
    wake() {
      wakeUps.send({});
      inboxRoom.wakeAll();
    },
    on: (name, listener) => events.on(name, listener),
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]() {
      return this.close();
    },
  };
}

/** One per lane, for what is due soonest in it. */
function wakeUpsFor(jobs: readonly NewJob[]): WakeUp[] {
  const lanes = new Map<string, WakeUp & { inMs: number }>();
  let last: NewJob | undefined;
  for (const job of jobs) {
    // Most statements hold many jobs of one lane, due at once.
    if (last && last.kind === job.kind && last.rank === job.rank && job.delayMs === undefined && !job.runAt) continue;
    const inMs = job.delayMs ?? (job.runAt === undefined ? 0 : Math.max(0, Date.parse(job.runAt) - Date.now()));
    const lane = `${job.kind} ${job.rank}`;
    const known = lanes.get(lane);
    // Due in the past: it lies behind the watermarks and has to be named.
    const ids = job.runAt !== undefined && inMs === 0 ? [...(known?.ids ?? []), job.id] : known?.ids;
    lanes.set(lane, { kind: job.kind, rank: job.rank, inMs: Math.min(inMs, known?.inMs ?? Infinity), ids });
    if (inMs === 0 && job.runAt === undefined) last = job;
  }
  return [...lanes.values()];
}

function assertKind(kind: AnyJobKind): void {
  if (typeof kind?.kind === "string" && typeof kind.run === "function" && kind.retryPolicy) return;
  throw new KindUnknown(
    `${typeof kind === "string" ? `"${String(kind)}"` : "What was given"} is not a job kind.`,
    "Hand over what defineJob() returned.",
  );
}

function assertNoBatch(kind: AnyJobKind): void {
  if (!isBatchKind(kind)) return;
  throw new KindUnknown(`"${kind.kind}" is a batch kind.`, "Make a batch of it: hf.batches.create(kind, items).");
}

function jobLog(log: ResolvedOptions["log"], run: object): ResolvedOptions["log"] {
  return {
    debug: (message, fields) => log.debug(message, { ...run, ...fields }),
    info: (message, fields) => log.info(message, { ...run, ...fields }),
    warn: (message, fields) => log.warn(message, { ...run, ...fields }),
    error: (message, fields) => log.error(message, { ...run, ...fields }),
  };
}
