// hf.jobs: look at jobs and act on them, from any process.
import { patiently } from "../db/patiently.ts";
import { NotFound, StateConflict, WaitTimeout } from "../errors.ts";
import { checkName } from "../job/define-job.ts";
import type { FailedAttempt, Job } from "../job/job.ts";
import { isFinal } from "../job/states.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { makeAlarm, sleep } from "../shared/sleep.ts";
import { checkId } from "../shared/check-id.ts";
import { checkLimit } from "../shared/page.ts";
import type { Advanced } from "../store/batches/advance.ts";
import { cancelWaitingItems } from "../store/batches/end-items.ts";
import { type ReleasedItem, releaseItemIfRunning } from "../store/batches/release-items.ts";
import { cancelIfOpen } from "../store/jobs/cancel.ts";
import { discardIfDead } from "../store/jobs/discard.ts";
import { findKey, type KnownKey } from "../store/jobs/find-key.ts";
import { type Counted, countJobs, findJobs } from "../store/jobs/find.ts";
import { type JobTexts, readAttempts, readJob, readTexts } from "../store/jobs/read.ts";
import { listNotes, type Note } from "../store/notes/list.ts";
import { type Released, releaseIfRunning } from "../store/jobs/release.ts";
import { retryIfDead } from "../store/jobs/retry.ts";
import type { KeepEnded } from "../store/jobs/keep-ended.ts";
import { anyDue } from "../store/stats/any-due.ts";
import type { Store } from "../store/sql.ts";
import type { WakeUps } from "../worker/wake-ups.ts";
import { type JobFilterOptions, toJobFilter } from "./job-filter.ts";
import { checkKey } from "./new-job.ts";

/** Which jobs to list, and which page. */
export interface ListOptions extends JobFilterOptions {
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** `hf.jobs`: looks at jobs and acts on them, whichever process runs them. */
export interface Jobs {
  get(id: string): Promise<Job | undefined>;
  /** Failed attempts, oldest first. */
  attempts(id: string): Promise<FailedAttempt[]>;
  /**
   * Newest first; `next` is the cursor of the following page, or null. A search looks at a bounded number of jobs at a
   * time: a page may hold few, or none, and still have a next one.
   */
  list(options?: ListOptions): Promise<{ jobs: Job[]; next: string | null }>;
  /** How many match, counted up to a bound; `more`: there may be more. */
  count(filter?: JobFilterOptions): Promise<Counted>;
  /** What its runs have finished so far: steps, chunks, checkpoints. */
  notes(id: string): Promise<Note[]>;
  /** Payload and result as JSON texts, with every digit. */
  texts(id: string): Promise<JobTexts | undefined>;
  /** Whether a job of these kinds could be claimed now. */
  areDue(kinds: readonly string[]): Promise<boolean>;
  /** The job that a key of this kind stands for, also when the job itself is gone; null: the key is free. */
  byKey(kind: string, key: string): Promise<KnownKey | null>;
  /** "cancelled" at once if it was waiting; "requested" if it runs: its signal is aborted and no retry follows. */
  cancel(id: string): Promise<"cancelled" | "requested">;
  /**
   * Takes a running job away from its worker: it runs again, elsewhere or there, without using an attempt. Its handler's
   * signal is aborted, and whatever it still says is refused.
   */
  release(id: string): Promise<void>;
  /** A dead job runs again with a full budget; its failures stay on record. */
  retry(id: string): Promise<void>;
  /** A dead job leaves the list of dead ones; it stays readable for the retention. */
  discard(id: string): Promise<void>;
  /** Resolves when the job is done, dead or cancelled. */
  wait(id: string, options?: { timeout?: Duration }): Promise<Job>;
}

export interface JobsInput {
  store: Store;
  wakeUps: WakeUps;
  keepEnded: KeepEnded;
  /** The batch of an item that ended moved on. */
  onAdvanced(batchId: string, advanced: Advanced): void;
  /** Calls back when a job of this process ended. */
  onEnded(listener: (jobId: string) => void): () => void;
}

const MAX_PAGE = 500;
const MAX_TRIES = 10;
/** An open transaction of the run may hold its row. */
const PATIENCE = { tries: MAX_TRIES, pauseMs: (failed: number) => 100 + 100 * failed };

export function makeJobs({ store, wakeUps, keepEnded, onAdvanced, onEnded }: JobsInput): Jobs {
  const found = async (id: string): Promise<Job> => {
    const job = await readJob(store, checkId(id, "The job id"));
    if (!job) throw new NotFound(`There is no job ${id}.`, "Finished jobs go after their retention; check the id.");
    return job;
  };
  const conflict = (job: Job, verb: string, hint: string): StateConflict =>
    new StateConflict(`Job ${job.id} is ${job.state} and cannot be ${verb}.`, hint);

  /** An item of a batch ends as such: its slot goes to the next in the same commit. */
  async function cancelItem(id: string): Promise<boolean> {
    const [ended] = await patiently("The job", PATIENCE, () => cancelWaitingItems(store, [id]));
    if (ended?.advanced) onAdvanced(ended.batchId, ended.advanced);
    return ended !== undefined && ended.items.length > 0;
  }

  return {
    get: (id) => readJob(store, checkId(id, "The job id")),
    attempts: (id) => readAttempts(store, checkId(id, "The job id")),
    async list(options = {}) {
      const { limit: asked = 50, cursor, ...filter } = options;
      const limit = checkLimit(asked, MAX_PAGE);
      if (cursor !== undefined) checkId(cursor, "cursor");
      return await findJobs(store, toJobFilter(filter), cursor ?? null, limit);
    },
    count: async (filter = {}) => await countJobs(store, toJobFilter(filter)),
    notes: (id) => listNotes(store, checkId(id, "The job id")),
    texts: (id) => readTexts(store, checkId(id, "The job id")),
    areDue: (kinds) => anyDue(store, kinds),
    byKey: (kind, key) => findKey(store, checkName("The kind", kind), checkKey("The key", key)),
    async cancel(id) {
      const [cancelled] = await patiently("The job", PATIENCE, () =>
        cancelIfOpen(store, [checkId(id, "The job id")], keepEnded),
      );
      if (!cancelled && (await cancelItem(id))) return "cancelled";
      if (!cancelled) throw conflict(await found(id), "cancelled", "Only pending and running jobs can be.");
      if (cancelled.how === "requested") wakeUps.send({ cancelIds: [id] });
      if (cancelled.heir) wakeUps.send({ ids: [cancelled.heir] });
      return cancelled.how;
    },
    async release(id) {
      checkId(id, "The job id");
      let released: Released | ReleasedItem | undefined;
      // A row that is being written is free again in a moment.
      for (let tries = 0; !released && tries < MAX_TRIES; tries += 1) {
        if (tries > 0) await sleep(20 * tries);
        [released] = await patiently("The job", PATIENCE, () => releaseIfRunning(store, [id]));
        released ??= await patiently("The job", PATIENCE, () => releaseItemIfRunning(store, id));
        if (!released && (await found(id)).state !== "running") break;
      }
      if (!released) {
        const job = await found(id);
        throw job.state === "running"
          ? new StateConflict(`Job ${id} is being written by its handler right now.`, "Try again.")
          : conflict(job, "released", "Only running jobs can be.");
      }
      const { kind, rank, token } = released;
      if ("batchId" in released && released.advanced) onAdvanced(released.batchId, released.advanced);
      wakeUps.send({ releasedTokens: [`${token}/${id}`] });
      wakeUps.send({ kind, rank, ids: [id] });
    },
    async retry(id) {
      const result = await retryIfDead(store, checkId(id, "The job id"));
      const job = await found(id);
      if (result === "retried") return wakeUps.send({ kind: job.kind, rank: job.priority === 0 ? 0 : -job.priority });
      if (result === "superseded") {
        throw conflict(job, "retried", "A newer job with the same coalesce key is open; discard this one.");
      }
      throw conflict(job, "retried", "Only dead jobs can be; enqueue a new one instead.");
    },
    async discard(id) {
      if (await discardIfDead(store, checkId(id, "The job id"), keepEnded)) return;
      throw conflict(await found(id), "discarded", "Only dead jobs can be; cancel a pending or running one.");
    },
    async wait(id, options = {}) {
      const timeoutMs = options.timeout === undefined ? Infinity : durationMs("timeout", options.timeout);
      const until = performance.now() + timeoutMs;
      const alarm = makeAlarm();
      const stop = onEnded((ended) => ended === id && alarm.ring());
      try {
        for (let pause = 20; ; pause = Math.min(pause * 1.5, 500)) {
          const job = await found(id);
          if (isFinal(job.state)) return job;
          const left = until - performance.now();
          if (left <= 0) {
            throw new WaitTimeout(
              `Job ${id} is still ${job.state} after ${String(options.timeout)}.`,
              "It goes on; wait again, or look at its last error.",
            );
          }
          await alarm.wait(Math.min(pause, left));
        }
      } finally {
        stop();
      }
    },
  };
}
