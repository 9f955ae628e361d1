// The state machine behind docs/job-states.md. `pending`, `running` and `dead` live in the jobs table; `done` and
// `cancelled` (and a dead job that was discarded) live in the history.

export const JOB_STATES = ["pending", "running", "done", "dead", "cancelled"] as const;
/** Where a job stands in storage; docs/job-states.md has the moves. */
export type JobState = (typeof JOB_STATES)[number];

/** What screens and filters speak of, derived from the row, its lease, its queue and the clock. */
export const JOB_STATUSES = [
  "scheduled",
  "ready",
  "running",
  "retrying",
  "stuck",
  "paused",
  "done",
  "dead",
  "cancelled",
] as const;
/** What screens show: the state, with the clock and its queue taken into account. */
export type JobStatus = (typeof JOB_STATUSES)[number];

/** Which statuses a stored state can show as. */
export const STATUSES_OF: Readonly<Record<JobState, readonly JobStatus[]>> = {
  pending: ["scheduled", "ready", "retrying", "paused"],
  running: ["running", "stuck"],
  done: ["done"],
  dead: ["dead"],
  cancelled: ["cancelled"],
};

/** Who may move a job from where to where; every store verb is one of these moves. */
export const TRANSITIONS = [
  { from: "pending", to: "running", by: "claim" },
  { from: "running", to: "done", by: "settle" },
  { from: "running", to: "pending", by: "settle" },
  { from: "running", to: "dead", by: "settle" },
  { from: "running", to: "cancelled", by: "settle" },
  { from: "running", to: "pending", by: "expire" },
  { from: "running", to: "pending", by: "release" },
  { from: "pending", to: "dead", by: "bury" },
  { from: "pending", to: "cancelled", by: "cancel" },
  { from: "dead", to: "pending", by: "retry" },
  { from: "dead", to: "dead", by: "discard" },
] as const satisfies readonly { from: JobState; to: JobState; by: string }[];

export function isFinal(state: JobState): boolean {
  return state === "done" || state === "cancelled" || state === "dead";
}
