// The Prometheus listener: turns events into counters and histograms, and asks for gauges when somebody scrapes. What is
// asked comes from roll-ups and tiny tables; nothing here counts rows.
//
// Labels that are known beforehand begin at 0, so that the first of something is an increase. Names that come from
// outside (kinds, queues) are bounded in number: what is beyond goes under "other".
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Emitter } from "../shared/emitter.ts";
import {
  BATCH_ENDS,
  BATCH_FAULTS,
  CLAIMS,
  DEPTHS,
  ITEM_ENDS,
  METRICS,
  type MetricName,
  OUTCOMES,
  PARCEL_EVENTS,
  PREFIX,
  RENEWALS,
  RESULTS,
  WAKE_UPS,
} from "./catalogue.ts";
import type { HoldfastEvents } from "./events.ts";

export interface QueueGauges {
  queue: string;
  ready: number;
  scheduled: number;
  retrying: number;
  running: number;
  dead: number;
  paused: number;
  oldestReadyAgeMs: number;
  isPaused: boolean;
}

export interface ChoreGauges {
  chore: string;
  everyMs: number;
  succeededAt: Date | null;
  failures: number;
}

/** What is read when somebody scrapes. */
export interface Gauges {
  queues: readonly QueueGauges[];
  chores: readonly ChoreGauges[];
  workers: number;
  leases: { held: number; minRemainingRatio: number };
  inbox: { waiting: number; fetched: number; bytes: number; oldestWaitingMs: number | null };
}

export interface PrometheusInput {
  events: Emitter<HoldfastEvents>;
  version: string;
  tier: string;
  chores(): readonly string[];
  gauges(): Promise<Gauges>;
  /** Slots of this process by queue. */
  slots(): ReadonlyMap<string, number>;
  running(): number;
  stoppedLoops(): number;
  load(): { most: number; busy: number; idle: number; waiting: number };
  /** False while notifications do not arrive. */
  hearsAll(): boolean;
  schemaVersion: number;
}

export interface Prometheus {
  readonly contentType: string;
  /** In the text format; what cannot be read now is left out, and the rest is told. */
  text(): Promise<string>;
  /** A kind that is known from the start: its series begin at 0. */
  know(kind: string, queue: string): void;
  /** A batch kind too, with what its items can come to. */
  knowBatches(kind: string, outcomes: readonly string[]): void;
  close(): void;
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const MOST_NAMES = 500;

export function makePrometheus(input: PrometheusInput): Prometheus {
  const { events } = input;
  const registry = new Registry();
  const made = (name: MetricName) => ({
    name: `${PREFIX}${name}`,
    help: METRICS[name].help,
    labelNames: METRICS[name].labels as readonly string[],
    registers: [registry],
  });
  const counter = (name: MetricName): Counter => new Counter(made(name));
  const gauge = (name: MetricName): Gauge => new Gauge(made(name));
  const histogram = (name: MetricName, buckets = SECONDS): Histogram => new Histogram({ ...made(name), buckets });

  const enqueued = counter("jobs_enqueued_total");
  const started = counter("jobs_started_total");
  const finished = counter("jobs_finished_total");
  const recovered = counter("jobs_recovered_total");
  const claims = counter("claims_total");
  const claimSize = histogram("claim_size", SIZES);
  const enqueueTook = histogram("enqueue_seconds", [0.001, 0.0025, ...SECONDS]);
  const wakes = counter("wake_ups_total");
  const handlerErrors = counter("handler_errors_total");
  const renewals = counter("lease_renewals_total");
  const renewalTook = histogram("lease_renewal_seconds");
  const parcels = counter("inbox_parcels_total");
  const parcelBytes = counter("inbox_bytes_total");
  const batchesCreated = counter("batches_created_total");
  const batchesFinished = counter("batches_finished_total");
  const items = counter("batch_items_total");
  const bounced = counter("batch_items_bounced_total");
  const batchFaults = counter("batch_faults_total");
  const runs = counter("janitor_runs_total");
  const rows = counter("janitor_rows_total");
  const trouble = counter("trouble_total");
  const wait = histogram("job_wait_seconds");
  const took = histogram("job_run_seconds");
  const choreTook = histogram("janitor_run_seconds");
  const queueJobs = gauge("queue_jobs");
  const oldest = gauge("queue_oldest_ready_age_seconds");
  const paused = gauge("queue_paused");
  const workers = gauge("workers");
  const slots = gauge("worker_slots");
  const running = gauge("worker_running");
  const leases = gauge("leases");
  const leaseRatio = gauge("lease_min_remaining_ratio");
  const lastSuccess = gauge("janitor_last_success_timestamp_seconds");
  const interval = gauge("janitor_interval_seconds");
  const failures = gauge("janitor_failures");
  const poolSize = gauge("db_pool_size");
  const poolConnections = gauge("db_pool_connections");
  const poolWaiting = gauge("db_pool_waiting");
  const listening = gauge("listen_connected");
  const stoppedLoops = gauge("loops_stopped");
  const lag = gauge("event_loop_lag_seconds");
  const inboxParcels = gauge("inbox_parcels");
  const inboxBytes = gauge("inbox_bytes");
  const inboxOldest = gauge("inbox_oldest_waiting_age_seconds");
  gauge("info").set({ version: input.version, tier: input.tier }, 1);
  gauge("schema_version").set(input.schemaVersion);

  const names = new Set<string>();
  const bounded = (name: string): string => {
    if (names.has(name)) return name;
    if (names.size >= MOST_NAMES) return "other";
    names.add(name);
    return name;
  };

  const countParcel = (event: (typeof PARCEL_EVENTS)[number], size: number): void => {
    parcels.inc({ event });
    parcelBytes.inc({ event }, size);
  };
  for (const event of PARCEL_EVENTS) for (const known of [parcels, parcelBytes]) known.inc({ event }, 0);
  for (const result of RENEWALS) renewals.inc({ result }, 0);
  for (const result of CLAIMS) claims.inc({ result }, 0);
  for (const from of WAKE_UPS) wakes.inc({ from }, 0);
  for (const fault of BATCH_FAULTS) batchFaults.inc({ fault }, 0);
  const knownChores = new Set<string>();
  function knowChores(): void {
    for (const chore of input.chores()) {
      if (knownChores.has(chore)) continue;
      knownChores.add(chore);
      for (const result of ["ok", "error"]) runs.inc({ chore, result }, 0);
    }
  }
  function know(kind: string, queue: string): void {
    const labels = { queue: bounded(queue), kind: bounded(kind) };
    for (const result of RESULTS) enqueued.inc({ ...labels, result }, 0);
    for (const outcome of OUTCOMES) finished.inc({ ...labels, outcome }, 0);
    started.inc(labels, 0);
    recovered.inc({ kind: labels.kind }, 0);
  }

  function knowBatches(name: string, outcomes: readonly string[]): void {
    const kind = bounded(name);
    batchesCreated.inc({ kind }, 0);
    bounced.inc({ kind }, 0);
    for (const result of BATCH_ENDS) batchesFinished.inc({ kind, result }, 0);
    for (const outcome of [...outcomes, ...ITEM_ENDS]) items.inc({ kind, outcome: bounded(outcome) }, 0);
  }

  type Run = { kind: string; queue: string; durationMs?: number | null; error?: { name: string } | undefined };
  const end = (outcome: (typeof OUTCOMES)[number]) => (run: Run) => {
    const labels = { queue: bounded(run.queue), kind: bounded(run.kind), outcome };
    finished.inc(labels);
    if (run.durationMs !== undefined && run.durationMs !== null) took.observe(labels, run.durationMs / 1_000);
    if (run.error) handlerErrors.inc({ queue: labels.queue, kind: labels.kind, error: bounded(run.error.name) });
  };
  const stops = [
    events.on("job.enqueued", ({ kind, queue, created }) => {
      const result = created ? "inserted" : "duplicate";
      enqueued.inc({ queue: bounded(queue), kind: bounded(kind), result });
    }),
    events.on("enqueue.made", ({ tookMs }) => enqueueTook.observe(tookMs / 1_000)),
    events.on("claim.made", ({ jobs, error }) => {
      claims.inc({ result: error !== undefined ? "error" : jobs > 0 ? "some" : "none" });
      if (jobs > 0) claimSize.observe(jobs);
    }),
    events.on("wake.heard", ({ from }) => wakes.inc({ from })),
    events.on("job.claimed", ({ kind, queue, waitedMs }) => {
      const labels = { queue: bounded(queue), kind: bounded(kind) };
      started.inc(labels);
      wait.observe(labels, Math.max(0, waitedMs) / 1_000);
    }),
    events.on("job.done", end("done")),
    events.on("job.retrying", end("retry")),
    events.on("job.dead", end("dead")),
    events.on("job.cancelled", end("cancelled")),
    events.on("job.snoozed", end("snoozed")),
    events.on("job.released", end("released")),
    events.on("job.again", end("again")),
    events.on("lease.lost", end("lease_lost")),
    events.on("lease.expired", ({ kind }) => recovered.inc({ kind: bounded(kind) })),
    events.on("lease.beat", ({ renewed, lost, tookMs, error }) => {
      renewals.inc({ result: "ok" }, renewed);
      renewals.inc({ result: "lost" }, lost);
      if (error !== undefined) renewals.inc({ result: "error" });
      if (tookMs !== null) renewalTook.observe(tookMs / 1_000);
    }),
    events.on("chore.ran", ({ chore, rows: ended, tookMs, error }) => {
      runs.inc({ chore, result: error === undefined ? "ok" : "error" });
      choreTook.observe({ chore }, tookMs / 1_000);
      for (const [outcome, count] of Object.entries(ended)) rows.inc({ chore, outcome: bounded(outcome) }, count);
    }),
    events.on("batch.created", ({ kind }) => batchesCreated.inc({ kind: bounded(kind) })),
    events.on("batch.finished", ({ kind, state: result }) => batchesFinished.inc({ kind: bounded(kind), result })),
    events.on("item.ended", ({ kind, queue, outcome, durationMs, error }) => {
      items.inc({ kind: bounded(kind), outcome: bounded(outcome) });
      // Every other end of an item's run is told as that of its job.
      if (outcome === "error" && durationMs !== null) end("error")({ kind, queue, durationMs, error });
    }),
    // What waited is cancelled all at once; what runs ends one by one.
    events.on("batch.cancelled", ({ kind, items: count }) => {
      items.inc({ kind: bounded(kind), outcome: "cancelled" }, count);
    }),
    events.on("item.bounced", ({ kind, seqs }) => bounced.inc({ kind: bounded(kind) }, seqs.length)),
    events.on("batch.healed", () => batchFaults.inc({ fault: "healed" })),
    events.on("batch.miscounted", () => batchFaults.inc({ fault: "miscounted" })),
    // A known key is no new parcel.
    events.on("parcel.put", ({ created, size }) => {
      if (created) countParcel("put", size);
    }),
    events.on("parcel.fetched", ({ size }) => countParcel("fetched", size)),
    events.on("parcel.acked", ({ size }) => countParcel("acked", size)),
    events.on("parcel.expired", ({ reason, size }) => {
      countParcel(reason === "never fetched" ? "never_fetched" : "never_acked", size);
    }),
    events.on("trouble", ({ where }) => trouble.inc({ where: bounded(where) })),
  ];

  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();

  async function collect(): Promise<void> {
    knowChores();
    slots.reset();
    for (const [queue, count] of input.slots()) slots.set({ queue }, count);
    running.set(input.running());
    stoppedLoops.set(input.stoppedLoops());
    const load = input.load();
    poolSize.set(load.most);
    for (const state of ["busy", "idle"] as const) poolConnections.set({ state }, load[state]);
    poolWaiting.set(load.waiting);
    listening.set(input.hearsAll() ? 1 : 0);
    lag.set(Number.isFinite(delay.percentile(99)) ? Math.max(0, delay.percentile(99) / 1e9 - 0.02) : 0);
    delay.reset();
    for (const old of [queueJobs, oldest, paused, lastSuccess, interval, failures]) old.reset();
    for (const old of [workers, leases, leaseRatio, inboxParcels, inboxBytes, inboxOldest]) old.reset();
    const now = await input.gauges();
    for (const queue of now.queues) {
      for (const status of DEPTHS) queueJobs.set({ queue: queue.queue, status }, queue[status]);
      oldest.set({ queue: queue.queue }, queue.oldestReadyAgeMs / 1_000);
      paused.set({ queue: queue.queue }, queue.isPaused ? 1 : 0);
    }
    for (const { chore, everyMs, succeededAt, failures: failed } of now.chores) {
      interval.set({ chore }, everyMs / 1_000);
      failures.set({ chore }, failed);
      if (succeededAt) lastSuccess.set({ chore }, succeededAt.getTime() / 1_000);
    }
    workers.set(now.workers);
    leases.set(now.leases.held);
    leaseRatio.set(now.leases.minRemainingRatio);
    inboxParcels.set({ state: "waiting" }, now.inbox.waiting);
    inboxParcels.set({ state: "fetched" }, now.inbox.fetched);
    inboxBytes.set(now.inbox.bytes);
    inboxOldest.set((now.inbox.oldestWaitingMs ?? 0) / 1_000);
  }

  return {
    contentType: registry.contentType,
    know,
    knowBatches,
    async text() {
      try {
        await collect();
      } catch (error) {
        // A database that is away must not take the counters with it.
        events.emit("trouble", { where: "metrics", error });
      }
      return await registry.metrics();
    },
    close() {
      for (const stop of stops) stop();
      delay.disable();
    },
  };
}
