// The events after which a job is not pending or running in the same way any more: what a waiting caller wants to hear.
export const JOB_EVENTS = ["job.done", "job.dead", "job.cancelled"] as const;
