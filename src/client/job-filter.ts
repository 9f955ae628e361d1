// What people filter jobs by, checked once for lists, counts and actions.
import { OptionInvalid } from "../errors.ts";
import { JOB_STATES, JOB_STATUSES, type JobState, type JobStatus, STATUSES_OF } from "../job/states.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { isUuid } from "../shared/uuid.ts";
import type { JobFilter } from "../store/jobs/find.ts";

export interface JobFilterOptions {
  state?: JobState | readonly JobState[] | undefined;
  /** As screens say it: ready, retrying, stuck and so on. */
  status?: JobStatus | readonly JobStatus[] | undefined;
  kind?: string | undefined;
  queue?: string | undefined;
  key?: string | undefined;
  group?: string | undefined;
  /** Part of the last error's name or message, in any case. */
  error?: string | undefined;
  /** What errors of one cause have in common: `lastError.fingerprint`. */
  fingerprint?: string | undefined;
  leastAttempts?: number | undefined;
  mostAttempts?: number | undefined;
  olderThan?: Duration | undefined;
  youngerThan?: Duration | undefined;
  /** Values in the payload: `{ "user.id": 42 }`. */
  payload?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Only these: at most 1,000. */
  ids?: readonly string[] | undefined;
}

const FILTER_FIELDS = [
  "state",
  "status",
  "kind",
  "queue",
  "key",
  "group",
  "error",
  "fingerprint",
  "leastAttempts",
  "mostAttempts",
  "olderThan",
  "youngerThan",
  "payload",
  "ids",
];

const MOST_IDS = 1_000;
const MOST_VALUES = 10;

export function toJobFilter(options: JobFilterOptions): JobFilter {
  refuseUnknown("The filter", options, FILTER_FIELDS);
  const { state, status, olderThan, youngerThan, payload, ids } = options;
  return {
    statuses: statusesOf(state, status),
    kind: text("kind", options.kind),
    queue: text("queue", options.queue),
    key: text("key", options.key),
    group: text("group", options.group),
    error: text("error", options.error),
    fingerprint: text("fingerprint", options.fingerprint),
    leastAttempts: count("leastAttempts", options.leastAttempts),
    mostAttempts: count("mostAttempts", options.mostAttempts),
    olderThanMs: olderThan === undefined ? undefined : durationMs("olderThan", olderThan),
    youngerThanMs: youngerThan === undefined ? undefined : durationMs("youngerThan", youngerThan),
    payload: payload === undefined ? undefined : valuesIn(payload),
    ids: ids === undefined ? undefined : checkIds(ids),
  };
}

function statusesOf(state: JobFilterOptions["state"], status: JobFilterOptions["status"]): JobStatus[] | undefined {
  const states = state === undefined ? null : listed("state", state, JOB_STATES);
  const statuses = status === undefined ? null : listed("status", status, JOB_STATUSES);
  if (states === null) return statuses ?? undefined;
  const ofStates = states.flatMap((each) => STATUSES_OF[each]);
  return statuses === null ? ofStates : statuses.filter((each) => ofStates.includes(each));
}

function listed<Word extends string>(name: string, given: Word | readonly Word[], known: readonly Word[]): Word[] {
  const words = [given].flat() as Word[];
  for (const word of words) {
    if (!known.includes(word)) {
      throw new OptionInvalid(`${name} is ${JSON.stringify(word)}.`, `Give one of ${known.join(", ")}.`);
    }
  }
  return words;
}

function text(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  // NUL cannot be stored, so nothing has it.
  if (typeof value === "string" && value.length <= 1_000 && !value.includes("\0")) return value;
  throw new OptionInvalid(
    `${name} is ${JSON.stringify(value)?.slice(0, 100)}.`,
    "Give a text of up to 1,000 characters.",
  );
}

function count(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1_000_000) return value as number;
  throw new OptionInvalid(`${name} is ${JSON.stringify(value)}.`, "Give a whole number from 0 to 1000000.");
}

function valuesIn(payload: object): { path: string[]; text: string }[] {
  const values = Object.entries(payload);
  if (values.length > MOST_VALUES) {
    throw new OptionInvalid(`payload names ${values.length} values.`, `Give at most ${MOST_VALUES}.`);
  }
  return values.map(([path, value]) => ({ path: path.split("."), text: text(`payload.${path}`, String(value))! }));
}

function checkIds(ids: readonly unknown[]): string[] {
  if (!Array.isArray(ids) || ids.length > MOST_IDS || !ids.every(isUuid)) {
    throw new OptionInvalid("ids is not a list of job ids.", `Give up to ${MOST_IDS} ids.`);
  }
  return ids.map((id) => id.toLowerCase());
}
