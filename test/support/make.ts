// Small things that tests need: a kind nobody else uses, a handler one can hold, a promise one can settle.
import { defineJob, type JobKind, type JobOptions } from "#src/job/define-job.js";
import type { JobContext } from "#src/job/handler.js";

let made = 0;

/** A name that no other test of this run uses. */
export function uniqueName(stem = "job"): string {
  made += 1;
  return `${stem}.${process.pid}.${made}`;
}

type Options<Payload, Result> = Partial<JobOptions<Payload, Payload, Result>>;

/** A kind of its own; it does nothing unless told to. */
export function makeKind<Payload = unknown, Result = unknown>(
  options: Options<Payload, Result> = {},
): JobKind<Payload, Payload, Result | undefined> {
  return defineJob<Payload, Payload, Result | undefined>(uniqueName(), { run: () => undefined, ...options });
}

export interface Gate {
  /** Resolves when it is opened. */
  readonly opened: Promise<void>;
  open(): void;
}

export function makeGate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

export interface HeldKind<Payload> {
  readonly kind: JobKind<Payload>;
  /** Contexts in the order in which they started. */
  readonly runs: JobContext<Payload>[];
  /** Resolves when the n-th run (from 1) has started. */
  started(n?: number): Promise<JobContext<Payload>>;
  /** Lets the runs that wait go on, and those to come. */
  release(): void;
}

/** A kind whose runs wait until they are released. */
export function makeHeldKind<Payload = unknown>(
  options: Options<Payload, unknown> & { then?(job: JobContext<Payload>): unknown } = {},
): HeldKind<Payload> {
  const { then, ...rest } = options;
  const runs: JobContext<Payload>[] = [];
  const waiters: { n: number; go(job: JobContext<Payload>): void }[] = [];
  const gate = makeGate();
  const kind = makeKind<Payload>({
    ...rest,
    async run(job) {
      runs.push(job);
      for (const waiter of waiters) if (waiter.n === runs.length) waiter.go(job);
      await gate.opened;
      return await then?.(job);
    },
  });
  return {
    kind,
    runs,
    started(n = 1) {
      const there = runs[n - 1];
      return there ? Promise.resolve(there) : new Promise((go) => waiters.push({ n, go }));
    },
    release: () => gate.open(),
  };
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

export async function caught(work: Promise<unknown> | (() => unknown)): Promise<unknown> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    return error;
  }
  throw new Error("It was expected to throw, and did not.");
}
