// What people do meanwhile: they pause a queue, take a running job away from its worker, ask a worker to take no more, run a dead job again, put
// one away. Each goes the way of the producers, through whatever the network does, and may get no answer. What has to be undone is
// asked for until it is.
import type { Job } from "#src/index.js";
import type { Asked, Verb } from "../../support/history/record.ts";
import { type Fault, lasting } from "./faults.ts";
import { sleep, type Storm } from "./storm.ts";

const HEAL_MS = 30_000;

/** What got no answer may have been done. */
async function attempt<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch {
    return undefined;
  }
}

/** As an operation of the history. Undefined: it was refused, or nobody said. */
async function tell<T>({ history }: Storm, verb: Verb, jobs: Asked[], ask: () => Promise<T>): Promise<T | undefined> {
  const op = history.asked(verb, jobs);
  try {
    const answer = await ask();
    history.ok(op, { ids: [] });
    return answer;
  } catch (error) {
    const isRefused = REFUSALS.has(String((error as { code?: unknown }).code));
    history.notOk(op, isRefused ? "failed" : "unknown", error);
    return undefined;
  }
}

/** It was not done, for certain: none of these verbs is sent twice for one call. */
const REFUSALS = new Set(["HOLDFAST_STATE_CONFLICT", "HOLDFAST_NOT_FOUND"]);

async function untilDone(ask: () => Promise<unknown>): Promise<void> {
  const until = Date.now() + HEAL_MS;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(100);
    }
  }
}

export const pauseQueue: Fault = async (storm) => {
  const { queues } = storm.hf;
  const isPaused = await tell(storm, "pause", [], () => queues.pause("default", { by: "a storm" }));
  if (isPaused === true) storm.history.fault("people: queue paused");
  await lasting(storm, storm.random.whole(200, 1_500), () =>
    untilDone(async () => {
      const isResumed = await tell(storm, "resume", [], () => queues.resume("default").then(() => true));
      if (isResumed !== true) throw new Error("The queue was not resumed.");
    }),
  );
};

const numberOf = ({ payload }: Job): number => (payload as { n?: number } | null)?.n ?? -1;

async function listed(storm: Storm, filter: { state: Job["state"]; kind?: string }): Promise<Job[]> {
  const found = await attempt(() => storm.hf.jobs.list({ ...filter, limit: 50 }));
  // Those that follow others have no number, and items of batches are not of this.
  return (found?.jobs ?? []).filter((job) => numberOf(job) >= 0);
}

export const release: Fault = async (storm) => {
  const running = await listed(storm, { state: "running" });
  if (running.length === 0) return;
  const job = storm.random.pick(running);
  // True: it was still running, and belongs to nobody now.
  const isReleased = await tell(storm, "release", [{ n: numberOf(job) }], () =>
    storm.hf.jobs.release(job.id).then(() => true),
  );
  if (isReleased) storm.history.fault("people: job taken away");
};

/** Those that say that they are hopeless: what ends its process stays dead. A member of a group would join it at the end. */
async function someDead(storm: Storm): Promise<Job | undefined> {
  const dead = await listed(storm, { state: "dead", kind: "storm.work" });
  const hopeless = dead.filter(
    ({ payload, group }) => (payload as { fatal?: boolean }).fatal === true && group === null,
  );
  return hopeless.length === 0 ? undefined : storm.random.pick(hopeless);
}

async function actOnDead(storm: Storm, verb: "retry" | "discard", name: string): Promise<void> {
  const job = await someDead(storm);
  if (!job) return;
  const isDone = await tell(storm, verb, [{ n: numberOf(job) }], () => storm.hf.jobs[verb](job.id).then(() => true));
  if (isDone) storm.history.fault(name);
}

export const retryDead: Fault = (storm) => actOnDead(storm, "retry", "people: dead job run again");
export const discardDead: Fault = (storm) => actOnDead(storm, "discard", "people: dead job put away");

export const drainWorker: Fault = async (storm) => {
  const { workers } = storm.hf;
  const list = await attempt(() => workers.list());
  if (!list || list.workers.length === 0) return;
  const { id } = storm.random.pick(list.workers);
  const isDraining = await attempt(() => workers.drain(id, { by: "a storm" }));
  if (isDraining) storm.history.fault("people: worker asked to take no more");
  // One that has died meanwhile is not there to be resumed, and need not be.
  await lasting(storm, storm.random.whole(200, 1_500), () =>
    untilDone(() => workers.resume(id).catch((error: unknown) => ignoreGone(error))),
  );
};

function ignoreGone(error: unknown): void {
  if ((error as { code?: unknown }).code !== "HOLDFAST_NOT_FOUND") throw error;
}

/** All of it; what is rarer than the rest is so because it needs a job that is dead. */
export const PEOPLE: readonly Fault[] = [pauseQueue, release, release, drainWorker, retryDead, discardDead];
