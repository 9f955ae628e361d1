// An action on many jobs, as it stands.
import type { JobFilter } from "../jobs/find.ts";

export const ACTION_VERBS = ["retry", "discard", "cancel"] as const;
export type ActionVerb = (typeof ACTION_VERBS)[number];
export const ACTION_STATES = ["running", "done", "cancelled", "failed"] as const;
export type ActionState = (typeof ACTION_STATES)[number];

export interface Action {
  id: string;
  verb: ActionVerb;
  /** As people wrote it. */
  title: string;
  filter: JobFilter;
  state: ActionState;
  askedBy: string;
  createdAt: Date;
  finishedAt: Date | null;
  perMinute: number | null;
  /** How many jobs it changed. */
  done: number;
  /** How many it could not change: they had moved on. */
  skipped: number;
  /** How many were expected, counted up to a bound. */
  expected: number | null;
  error: string | null;
}

export const ACTION_COLUMNS = `id, verb, title, filter, state, asked_by as "askedBy", created_at as "createdAt",
  finished_at as "finishedAt", per_minute as "perMinute", done::float8 as done, skipped::float8 as skipped,
  expected::float8 as expected, error`;
