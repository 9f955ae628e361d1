// What other processes do, for streams of events: looked at every few seconds while somebody wants to know, and told when
// it changed. One question for all listeners: roll-ups for the queues, and single jobs by their id.
import type { Holdfast } from "../client/client.ts";
import { toJobSummary } from "./job-view.ts";

export interface Wanted {
  queues: boolean;
  jobs: ReadonlySet<string>;
}

export interface Seen {
  name: "queues" | "job";
  event: object;
}

/** More streams than this each look at a job of their own: the others have the events of this process only. */
const MOST_JOBS = 50;

export interface LookAround {
  /** What changed since the last look. Nothing is known while the database is away, so nothing is told. */
  look(wanted: Wanted): Promise<Seen[]>;
  forget(): void;
}

export function makeLookAround(hf: Holdfast): LookAround {
  let lastQueues = "";
  const lastJobs = new Map<string, string>();

  async function lookAtQueues(): Promise<Seen[]> {
    const queues = await hf.queues.list();
    const text = JSON.stringify(queues);
    if (text === lastQueues) return [];
    lastQueues = text;
    return [{ name: "queues", event: { queues } }];
  }

  async function lookAtJob(id: string): Promise<Seen[]> {
    const job = await hf.jobs.get(id);
    if (!job) return [];
    // A beat is no news.
    const { id: jobId, lastError, leaseExpiresAt: ___, ...rest } = toJobSummary(job);
    const { stack: _, cause: __, ...error } = { stack: undefined, cause: undefined, ...lastError };
    const event = { jobId, ...rest, lastError: lastError === null ? null : error };
    const text = JSON.stringify(event);
    if (text === lastJobs.get(id)) return [];
    lastJobs.set(id, text);
    return [{ name: "job", event }];
  }

  return {
    async look({ queues, jobs }) {
      for (const known of lastJobs.keys()) if (!jobs.has(known)) lastJobs.delete(known);
      const some = [...jobs].slice(0, MOST_JOBS);
      const looks = [...(queues ? [lookAtQueues()] : []), ...some.map(lookAtJob)];
      return (await Promise.all(looks.map((found) => found.catch(() => [])))).flat();
    },
    forget() {
      lastQueues = "";
      lastJobs.clear();
    },
  };
}
