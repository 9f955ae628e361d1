// The door for users' tests: re-exports only.
export { runDue, type DueRuns, type RunDueOptions } from "./run-due.ts";
export { openTest, type OpenTestOptions, type TestHoldfast } from "./open-test.ts";
export { runJob, type JobRun, type RunJobOptions } from "./run-job.ts";
export type { TestClock } from "./test-clock.ts";
export { waitForEvent, type WaitForEventOptions } from "./wait-for-event.ts";
