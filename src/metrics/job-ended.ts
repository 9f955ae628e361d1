// The events after which a job has ended: what a caller who waits for it wants to hear.
export const JOB_ENDED = ["job.done", "job.dead", "job.cancelled"] as const;
