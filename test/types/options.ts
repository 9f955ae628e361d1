// Compiled by `npm run types`, never run: durations, options, events and lists of kinds.
import { z } from "zod";
import {
  defineJob,
  type AnyJobKind,
  type Duration,
  type Enqueued,
  type FailedAttempt,
  type Holdfast,
  type Job,
  type JobState,
  open,
  RetryAfter,
  Snooze,
  type Worker,
} from "#src/index.js";
import { runDue, openTest, type TestHoldfast, waitForEvent } from "#src/testing/index.js";
import { expectType, type Same } from "./expect-type.ts";

declare const hf: Holdfast;
declare const test: TestHoldfast;
const run = (): void => undefined;
const kind = defineJob("a", { run });

// ---- durations

export const durations: Duration[] = ["250ms", "30s", "5m", "1h", "7d", "1.5h"];
// @ts-expect-error a bare number is ambiguous
export const bare: Duration = 30;
// @ts-expect-error there is no such unit
export const weeks: Duration = "2w";
// @ts-expect-error nor a word
export const word: Duration = "forever";
// @ts-expect-error nor a number without a unit
export const unitless: Duration = "30";

export function throwing(): never {
  if (Math.random() > 2) throw new RetryAfter("5m");
  // @ts-expect-error five what
  if (Math.random() > 2) throw new RetryAfter(5);
  throw new Snooze("5m");
}

defineJob("ok", { run, lease: "30s", timeout: "1h", keepDone: "forever", keepKeys: "30d", backoff: ["30s", "2m"] });
defineJob("ok", { run, backoff: { base: "1s", factor: 2, cap: "1h", jitter: 0.1 } });
// @ts-expect-error a lease cannot be for ever
defineJob("no", { run, lease: "forever" });
// @ts-expect-error a retention is a duration or for ever
defineJob("no", { run, keepDone: 0 });
// @ts-expect-error rungs are durations
defineJob("no", { run, backoff: [30, 120] });
// @ts-expect-error a base is needed
defineJob("no", { run, backoff: { factor: 2 } });

// ---- enqueue

export async function enqueueing(): Promise<void> {
  const enqueued = await hf.enqueue(kind, 1, { key: "k", delay: "5m", priority: 3, headers: { trace: "x" } });
  expectType<Same<typeof enqueued, Enqueued>>();
  await hf.enqueue(kind, 1, { runAt: new Date() });
  await hf.enqueue(kind, 1, { runAt: "2030-01-01T00:00:00Z" });
  await hf.enqueue(kind, 1, { onDead: { kind: "tell.me", payload: { chat: 7 } } });
  await hf.enqueue(kind, 1, { tx: { query: () => Promise.resolve({ rows: [] }) } });
  // @ts-expect-error a delay is a duration
  await hf.enqueue(kind, 1, { delay: 300 });
  // @ts-expect-error there is no such option
  await hf.enqueue(kind, 1, { prio: 3 });
  // @ts-expect-error a key is a text
  await hf.enqueue(kind, 1, { key: 7 });
  // @ts-expect-error headers are texts
  await hf.enqueue(kind, 1, { headers: { n: 1 } });
  // @ts-expect-error a name is no kind
  await hf.enqueue("a", 1);
  // @ts-expect-error rows have no transaction of their own
  await hf.enqueueMany(kind, [{ payload: 1, tx: { query: () => Promise.resolve({ rows: [] }) } }]);
}

// ---- lists of kinds of different payloads

const kinds = [
  kind,
  defineJob<{ a: string }>("b", { run: (job) => job.payload.a }),
  defineJob("c", { schema: z.object({ n: z.number() }), run: (job) => job.payload.n }),
];
export const listed: AnyJobKind[] = kinds;

export async function working(): Promise<void> {
  const worker = await hf.work(kinds, { concurrency: 5, poll: "1s", grace: "0s" });
  expectType<Same<typeof worker, Worker>>();
  await using scoped = await hf.work(listed);
  await scoped.stop();
  // @ts-expect-error kinds, not their names
  await hf.work(["a"]);
  // @ts-expect-error a kind alone is no list
  await hf.work(kind);
  // @ts-expect-error a pause is a duration
  await hf.work(kinds, { poll: 1_000 });
}

// ---- jobs and events

export async function looking(): Promise<void> {
  const job = await hf.jobs.get("id");
  expectType<Same<typeof job, Job | undefined>>();
  // @ts-expect-error it may not be there
  job.state satisfies JobState;
  const page = await hf.jobs.list({ state: ["dead", "cancelled"], limit: 10 });
  expectType<Same<typeof page, { jobs: Job[]; next: string | null }>>();
  // @ts-expect-error there is no such state
  await hf.jobs.list({ state: "queued" });
  expectType<Same<Awaited<ReturnType<typeof hf.jobs.cancel>>, "cancelled" | "requested">>();
  expectType<Same<Awaited<ReturnType<typeof hf.jobs.attempts>>, FailedAttempt[]>>();
  await hf.jobs.wait("id", { timeout: "5s" });
  // @ts-expect-error a timeout is a duration
  await hf.jobs.wait("id", { timeout: 5_000 });
  const stop = hf.on("job.done", (event) => expectType<Same<typeof event.durationMs, number>>());
  stop();
  // @ts-expect-error there is no such event
  hf.on("job.finished", () => undefined);
  hf.on("job.enqueued", (event) => {
    // @ts-expect-error it has not run yet
    void event.durationMs;
  });
}

// ---- open, and the testing door

export async function opening(): Promise<void> {
  await using client = await open({ database: "memory:", keepEnded: "forever" });
  expectType<Same<typeof client, Holdfast>>();
  // @ts-expect-error there is no such option
  await open({ url: "postgres://" });
  await using opened = await openTest({ clock: "2030-01-01" });
  expectType<Same<typeof opened, TestHoldfast>>();
  await opened.clock.advance("31m");
  // @ts-expect-error by a duration
  await opened.clock.advance(31);
  await runDue(test, kinds, { timeout: "5s" });
  // @ts-expect-error an ordinary client has no clock to move
  await runDue(client, kinds);
  const event = await waitForEvent(test, "job.retrying", ({ attempt }) => attempt === 2, { timeout: "1s" });
  expectType<Same<typeof event.runAt, Date>>();
}
