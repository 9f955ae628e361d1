// hf.actions: one verb on all jobs that match a filter, in the background: in steps, at a rate if asked for, newest first. A
// chore carries it out, so it goes on when the process that was asked dies; it can be stopped at any time. Jobs that
// are enqueued after it was asked for are left alone.
import { isConnectionTrouble, isLockTimeout, isRetryable } from "../db/retryable.ts";
import { NotFound, OptionInvalid, StateConflict } from "../errors.ts";
import { type Chore, defineChore } from "../job/define-chore.ts";
import { recordError } from "../job/outcome.ts";
import { STATUSES_OF, type JobState } from "../job/states.ts";
import { checkId } from "../shared/check-id.ts";
import { checkLimit, cutPage } from "../shared/page.ts";
import { uuidv7 } from "../shared/uuid.ts";
import { advanceAction, endAction, openActions, type OpenAction, trimActions } from "../store/actions/advance.ts";
import { createAction } from "../store/actions/create.ts";
import { listActions, readAction } from "../store/actions/list.ts";
import { type Action, ACTION_VERBS, type ActionVerb } from "../store/actions/rows.ts";
import { cancelIfOpen } from "../store/jobs/cancel.ts";
import { discardDead } from "../store/jobs/discard.ts";
import { countJobs, findJobs, type JobFilter } from "../store/jobs/find.ts";
import type { KeepEnded } from "../store/jobs/keep-ended.ts";
import { retryIfDead } from "../store/jobs/retry.ts";
import { retryPlain } from "../store/jobs/retry-many.ts";
import type { Store } from "../store/sql.ts";
import type { WakeUps } from "../worker/wake-ups.ts";
import { type JobFilterOptions, toJobFilter } from "./job-filter.ts";

/** What `hf.actions.start` takes. */
export interface ActionOptions {
  verb: ActionVerb;
  filter: JobFilterOptions;
  /** At most so many jobs a minute. */
  perMinute?: number | undefined;
  /** How people call it; made from the filter if not given. */
  title?: string | undefined;
  by?: string | undefined;
}

/** `hf.actions`: one verb on all jobs that match a filter, in the background. */
export interface Actions {
  /** It is on its way when this resolves. */
  start(options: ActionOptions): Promise<Action>;
  get(id: string): Promise<Action | undefined>;
  /** Newest first; kept for 90 days. */
  list(options?: { limit?: number | undefined; cursor?: string | undefined }): Promise<ActionPage>;
  /** What was done stays done. */
  cancel(id: string): Promise<Action>;
}

/** One page of actions, newest first. */
export interface ActionPage {
  actions: Action[];
  next: string | null;
}

export interface ActionsInput {
  store: Store;
  wakeUps: WakeUps;
  keepEnded: KeepEnded;
  /** Somebody should look for open actions now. */
  hurry(): void;
}

const MAX_PAGE = 100;
const STEP = 200;
const SOON_MS = 500;
const MOST_PER_MINUTE = 1_000_000;

/** Which jobs a verb is about; others that match the filter are left alone. */
const ABOUT: Readonly<Record<ActionVerb, readonly JobState[]>> = {
  retry: ["dead"],
  discard: ["dead"],
  cancel: ["pending", "running"],
};

export function makeActions({ store, hurry }: ActionsInput): Actions {
  const found = async (id: string): Promise<Action> => {
    const action = await readAction(store, checkId(id, "The action id"));
    if (action) return action;
    throw new NotFound(`There is no action ${id}.`, "Actions are kept for 90 days; check the id.");
  };
  return {
    async start({ verb, filter: options, perMinute, title, by = "hf.actions" }) {
      if (!ACTION_VERBS.includes(verb)) {
        throw new OptionInvalid(`verb is ${JSON.stringify(verb)}.`, `Give one of ${ACTION_VERBS.join(", ")}.`);
      }
      if (perMinute !== undefined && !(Number.isInteger(perMinute) && perMinute >= 1 && perMinute <= MOST_PER_MINUTE)) {
        throw new OptionInvalid(
          `perMinute is ${JSON.stringify(perMinute)}.`,
          `Give a whole number from 1 to ${MOST_PER_MINUTE}, or leave it out.`,
        );
      }
      const filter = narrowed(toJobFilter(options), verb);
      const { count, more } = await countJobs(store, filter);
      const action = await createAction(store, {
        id: uuidv7(),
        verb,
        filter,
        title: (title ?? titleOf(verb, options)).slice(0, 500),
        askedBy: by.slice(0, 200),
        perMinute: perMinute ?? null,
        expected: more ? null : count,
      });
      hurry();
      return action;
    },
    get: (id) => readAction(store, checkId(id, "The action id")),
    async list({ limit = 50, cursor } = {}) {
      const before = cursor === undefined ? null : checkId(cursor, "cursor");
      const rows = await listActions(store, before, checkLimit(limit, MAX_PAGE) + 1);
      const { page: actions, next } = cutPage(rows, limit);
      return { actions, next };
    },
    async cancel(id) {
      if (await endAction(store, checkId(id, "The action id"), "cancelled", null)) return await found(id);
      const action = await found(id);
      throw new StateConflict(`Action ${id} is ${action.state}.`, "Only one that runs can be cancelled.");
    },
  };
}

function narrowed(filter: JobFilter, verb: ActionVerb): JobFilter {
  const about = ABOUT[verb].flatMap((state) => STATUSES_OF[state]);
  return { ...filter, statuses: filter.statuses?.filter((status) => about.includes(status)) ?? about };
}

function titleOf(verb: ActionVerb, { ids, payload, ...rest }: JobFilterOptions): string {
  const words = Object.entries({ ...rest, ...payload }).map(([name, value]) => `${name}:${[value].flat().join(",")}`);
  if (ids) words.push(ids.length === 1 ? "1 job" : `${ids.length} jobs`);
  return `${verb} ${words.length === 0 ? "all" : words.join(" ")}`;
}

/** Carries them out: one process at a time. */
export function makeActionsChore({ store, wakeUps, keepEnded }: ActionsInput): Chore {
  async function step(action: OpenAction, limit: number): Promise<number> {
    const { jobs, next } = await findJobs(store, action.filter, action.below, limit);
    const ids = jobs.map(({ id }) => id);
    const done = ids.length === 0 ? 0 : await act(action.verb, ids);
    await advanceAction(store, { id: action.id, from: action.below, to: next, done, skipped: ids.length - done });
    action.below = next ?? action.below;
    action.state = next === null ? "done" : action.state;
    return ids.length;
  }

  async function act(verb: ActionVerb, ids: string[]): Promise<number> {
    switch (verb) {
      case "discard":
        return await discardDead(store, ids, keepEnded);
      case "cancel": {
        const cancelled = await cancelIfOpen(store, ids, keepEnded);
        const asked = cancelled.filter(({ how }) => how === "requested").map(({ id }) => id);
        const heirs = cancelled.flatMap(({ heir }) => heir ?? []);
        if (asked.length > 0) wakeUps.send({ cancelIds: asked });
        if (heirs.length > 0) wakeUps.send({ ids: heirs });
        return cancelled.length;
      }
      case "retry":
        return await retry(ids);
    }
  }

  async function retry(ids: string[]): Promise<number> {
    const answers = await retryPlain(store, ids);
    let done = answers.filter(({ isRetried }) => isRetried).length;
    for (const { id, isRetried } of answers) {
      if (!isRetried && (await retryIfDead(store, id)) === "retried") done += 1;
    }
    if (done > 0) wakeUps.send({});
    return done;
  }

  return defineChore("carry-out-actions", {
    every: "5s",
    async run(context) {
      let isWaiting = false;
      for (const action of await openActions(store)) {
        let taken = action.done + action.skipped;
        const began = performance.now();
        while (action.state === "running" && context.hasTime() && !context.signal.aborted) {
          const ageMs = action.ageMs + performance.now() - began;
          const allowed =
            action.perMinute === null ? STEP : Math.floor((action.perMinute * ageMs) / 60_000) + 1 - taken;
          if (allowed <= 0) break;
          try {
            const touched = await step(action, Math.min(STEP, allowed));
            taken += touched;
            if (touched > 0) context.count(action.verb, touched);
          } catch (error) {
            // A database that was away is no reason to give up: the next run goes on.
            if (isConnectionTrouble(error) || isRetryable(error) || isLockTimeout(error)) throw error;
            const { name, message } = recordError(error);
            await endAction(store, action.id, "failed", `${name}: ${message}`);
            throw error;
          }
        }
        isWaiting ||= action.state === "running";
      }
      await context.inBatches("trimmed", (limit) => trimActions(store, limit));
      return isWaiting ? { nextInMs: SOON_MS } : undefined;
    },
  });
}
