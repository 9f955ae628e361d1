// Every metric, with its labels. docs/metrics.md says what each means and when to worry; a test keeps page and code equal,
// and the dashboard and the alert rules may use nothing else.

interface Definition {
  type: "counter" | "gauge" | "histogram";
  help: string;
  labels: readonly string[];
}

export const PREFIX = "holdfast_";

export const METRICS = {
  jobs_enqueued_total: {
    type: "counter",
    help: "Enqueues by this process; result: inserted, or duplicate of a known key or open job.",
    labels: ["queue", "kind", "result"],
  },
  jobs_started_total: { type: "counter", help: "Runs begun by this process.", labels: ["queue", "kind"] },
  jobs_finished_total: {
    type: "counter",
    help: "Runs ended by this process, by outcome.",
    labels: ["queue", "kind", "outcome"],
  },
  jobs_recovered_total: {
    type: "counter",
    help: "Jobs taken back by this process from workers that died.",
    labels: ["kind"],
  },
  claims_total: {
    type: "counter",
    help: "How often workers of this process asked for jobs: they got some, or none; error: no answer.",
    labels: ["result"],
  },
  wake_ups_total: {
    type: "counter",
    help: "Hints to the workers of this process that something may be due, from here or from another process.",
    labels: ["from"],
  },
  handler_errors_total: {
    type: "counter",
    help: "Attempts that failed in this process, by the class of their error.",
    labels: ["queue", "kind", "error"],
  },
  lease_renewals_total: {
    type: "counter",
    help: "Leases that beats of this process renewed or found lost; error: beats that got no answer.",
    labels: ["result"],
  },
  inbox_parcels_total: {
    type: "counter",
    help: "Parcels by what happened to them; never_fetched and never_acked are the two ways to expire.",
    labels: ["event"],
  },
  inbox_bytes_total: { type: "counter", help: "Bytes of these parcels.", labels: ["event"] },
  batches_created_total: { type: "counter", help: "Batches made by this process.", labels: ["kind"] },
  batches_finished_total: {
    type: "counter",
    help: "Batches that ended by a commit of this process: done, or cancelled and nothing of it runs any more.",
    labels: ["kind", "result"],
  },
  batch_items_total: {
    type: "counter",
    help: "Items that came to an outcome by this process, or were handed over to their owner.",
    labels: ["kind", "outcome"],
  },
  batch_items_bounced_total: {
    type: "counter",
    help: "Items that started again because nobody acked what was handed over.",
    labels: ["kind"],
  },
  batch_faults_total: {
    type: "counter",
    help: "What must not happen: batches whose slots or items had to be put right, counters that were not what the items say.",
    labels: ["fault"],
  },
  janitor_runs_total: { type: "counter", help: "Runs of a chore by this process.", labels: ["chore", "result"] },
  janitor_rows_total: {
    type: "counter",
    help: "Rows that a chore of this process brought to an end, by outcome.",
    labels: ["chore", "outcome"],
  },
  trouble_total: { type: "counter", help: "Failures that this process went on after, by place.", labels: ["where"] },
  queue_jobs: { type: "gauge", help: "Jobs in a queue by status, from the last roll-up.", labels: ["queue", "status"] },
  queue_oldest_ready_age_seconds: {
    type: "gauge",
    help: "For how long the job that is due for longest has been due; 0 when none waits.",
    labels: ["queue"],
  },
  queue_paused: { type: "gauge", help: "1 while the queue is paused.", labels: ["queue"] },
  inbox_parcels: {
    type: "gauge",
    help: "Parcels that are waiting, or fetched and not acked, of all recipients; counted up to 100,000.",
    labels: ["state"],
  },
  inbox_bytes: { type: "gauge", help: "Bytes of these parcels.", labels: [] },
  inbox_oldest_waiting_age_seconds: {
    type: "gauge",
    help: "For how long the oldest parcel that nobody fetched has waited; 0 when none waits.",
    labels: [],
  },
  workers: { type: "gauge", help: "Workers that were heard of in the last minute, in all processes.", labels: [] },
  worker_slots: { type: "gauge", help: "Slots of this process for jobs of a queue.", labels: ["queue"] },
  worker_running: { type: "gauge", help: "Runs in this process.", labels: [] },
  leases: { type: "gauge", help: "Leases that are held, in all processes; counted up to 1,000.", labels: [] },
  lease_min_remaining_ratio: {
    type: "gauge",
    help: "The least part of a lease that is left, of all leases; 1 when there is none.",
    labels: [],
  },
  janitor_last_success_timestamp_seconds: {
    type: "gauge",
    help: "When a chore last succeeded, in any process.",
    labels: ["chore"],
  },
  janitor_interval_seconds: { type: "gauge", help: "How often a chore should run.", labels: ["chore"] },
  janitor_failures: { type: "gauge", help: "Failures of a chore since its last success.", labels: ["chore"] },
  db_pool_size: { type: "gauge", help: "The most connections this process may have in its pool.", labels: [] },
  db_pool_connections: { type: "gauge", help: "Connections in this process's pool by state.", labels: ["state"] },
  db_pool_waiting: { type: "gauge", help: "Calls of this process that wait for a connection.", labels: [] },
  listen_connected: {
    type: "gauge",
    help: "1 while notifications reach this process (or it needs none), 0 while polling is all it has.",
    labels: [],
  },
  loops_stopped: { type: "gauge", help: "Background loops of this process that stopped.", labels: [] },
  event_loop_lag_seconds: {
    type: "gauge",
    help: "How late this process's event loop is: the 99th percentile since the last scrape.",
    labels: [],
  },
  info: { type: "gauge", help: "1, with the version and the tier.", labels: ["version", "tier"] },
  schema_version: { type: "gauge", help: "The newest migration this process knows.", labels: [] },
  job_wait_seconds: {
    type: "histogram",
    help: "From due to started, of jobs claimed by this process.",
    labels: ["queue", "kind"],
  },
  job_run_seconds: {
    type: "histogram",
    help: "How long runs of this process took.",
    labels: ["queue", "kind", "outcome"],
  },
  claim_size: { type: "histogram", help: "Jobs in one claim that got some.", labels: [] },
  enqueue_seconds: {
    type: "histogram",
    help: "How long the statements that store jobs took, each for one job or for many.",
    labels: [],
  },
  lease_renewal_seconds: { type: "histogram", help: "How long beats of this process took.", labels: [] },
  janitor_run_seconds: { type: "histogram", help: "How long a chore took.", labels: ["chore"] },
} as const satisfies Record<string, Definition>;

export type MetricName = keyof typeof METRICS;

export const OUTCOMES = [
  "done",
  "retry",
  "dead",
  "cancelled",
  "snoozed",
  "released",
  "again",
  "error",
  "lease_lost",
] as const;
export const RESULTS = ["inserted", "duplicate"] as const;
export const PARCEL_EVENTS = ["put", "fetched", "acked", "never_fetched", "never_acked"] as const;
export const BATCH_ENDS = ["done", "cancelled"] as const;
/** Besides those of its kind. */
export const ITEM_ENDS = ["error", "cancelled", "handed-over"] as const;
export const BATCH_FAULTS = ["healed", "miscounted"] as const;
export const CLAIMS = ["some", "none", "error"] as const;
export const WAKE_UPS = ["here", "elsewhere"] as const;
export const RENEWALS = ["ok", "lost", "error"] as const;
export const DEPTHS = ["ready", "scheduled", "retrying", "running", "dead", "paused"] as const;
