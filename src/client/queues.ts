// hf.queues: what the queues hold, by the last roll-up, and pausing them.
import { checkName } from "../job/define-job.ts";
import { latestDepths, nothing, type TakenDepth } from "../store/stats/depths.ts";
import { letIn, type PausedQueue, pausedQueues, pauseQueue, resumeQueue } from "../store/queues/pause.ts";
import type { Store } from "../store/sql.ts";

/** How deep a queue is, and whether it is paused. */
export interface QueueInfo extends Omit<TakenDepth, "takenAt"> {
  /** When it was counted; null: not yet. */
  takenAt: Date | null;
  pausedAt: Date | null;
  pausedBy: string | null;
}

/** `hf.queues`: lists queues, pauses and resumes them. */
export interface Queues {
  /** Every queue that had jobs in the last two days, or is paused. Figures are some seconds old. */
  list(): Promise<QueueInfo[]>;
  /**
   * No job of the queue is started any more, in any process, within seconds; what runs goes on. False: it was paused
   * already.
   */
  pause(queue: string, options?: { by?: string | undefined }): Promise<boolean>;
  /** False: it was not paused. */
  resume(queue: string): Promise<boolean>;
}

export interface QueuesInput {
  store: Store;
  /** Tells the workers, here and elsewhere, to ask which queues are paused. */
  tell(): void;
}

const BATCH = 2_000;

export function makeQueues({ store, tell }: QueuesInput): Queues {
  return {
    async list() {
      const [depths, paused] = await Promise.all([latestDepths(store), pausedQueues(store)]);
      return withPauses(depths, paused);
    },
    async pause(queue, { by } = {}) {
      const isNew = await pauseQueue(store, checkName("The queue", queue), by ?? null);
      tell();
      return isNew;
    },
    async resume(queue) {
      const wasPaused = await resumeQueue(store, checkName("The queue", queue));
      tell();
      // What is cut short here is finished by a chore.
      while ((await letIn(store, [queue], BATCH)) >= BATCH) tell();
      tell();
      return wasPaused;
    },
  };
}

function withPauses(depths: readonly TakenDepth[], paused: readonly PausedQueue[]): QueueInfo[] {
  const pauses = new Map(paused.map((pause) => [pause.queue, pause]));
  const known: QueueInfo[] = depths.map((depth) => ({ ...depth, pausedAt: null, pausedBy: null }));
  for (const { queue } of paused) {
    if (known.some((info) => info.queue === queue)) continue;
    known.push({ ...nothing(queue), takenAt: null, pausedAt: null, pausedBy: null });
  }
  return known.map((info) => {
    const pause = pauses.get(info.queue);
    return pause ? { ...info, pausedAt: pause.pausedAt, pausedBy: pause.pausedBy } : info;
  });
}
