// The main thread's side of the beat thread: starts it, tells it which leases to keep, hears what its beats found.
// A thread that cannot be started (a bundler dropped its file) or that dies is reported, and the beats go on from the
// main thread.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { BeatResult, LeaseId } from "../store/jobs/beat.ts";
import type { KeepEnded } from "../store/jobs/keep-ended.ts";
import { type Beater, type BeaterInput, clockMs, makeBeater } from "./beater.ts";
import { BOARD_BYTES, writeBoard } from "./lease-board.ts";

export interface ThreadKind {
  kind: string;
  timeoutMs: number;
  /** Before the second attempt, before the third, …; the last one repeats. */
  delaysMs: number[];
}

export interface ThreadInput {
  connection: { url: string };
  schema: string;
  kinds: ThreadKind[];
  keepEnded: KeepEnded;
  /** A module whose default export is called in the thread when the main thread hangs. */
  hungHook: string | null;
  /** Where the main thread writes its leases and its signs of life. */
  board: SharedArrayBuffer;
}

export interface FromMain {
  type: "wake" | "stop";
}

export type FromThread =
  | { type: "ready" | "stopped" }
  | { type: "beat"; results: BeatResult[]; sentAt: number; tookMs: number }
  | { type: "turn"; nextInMs: number }
  | { type: "missed" | "trouble"; message: string }
  | { type: "hung"; jobs: { id: string; kind: string }[] };

export interface ThreadBeaterInput extends BeaterInput {
  onTrouble(error: unknown): void;
  thread: Omit<ThreadInput, "board">;
  /** Where the thread's file is; the default is beside this one. */
  file?: URL;
}

const SIGN_OF_LIFE_MS = 250;

export function makeThreadBeater(input: ThreadBeaterInput): Beater {
  const file = input.file ?? new URL("./beat-thread.js", import.meta.url);
  if (!existsSync(fileURLToPath(file))) {
    input.onTrouble(
      new Error(
        `The heartbeat thread's file is missing (${file.pathname}). Beats come from the main thread: a handler that blocks the event loop for longer than its lease will lose it. If a bundler left the file out, mark "holdfast" as external.`,
      ),
    );
    return makeBeater(input);
  }

  const held = new Map<string, LeaseId>();
  const memory = new SharedArrayBuffer(BOARD_BYTES);
  const board = writeBoard(memory);
  board.showLife(clockMs());
  const signs = setInterval(() => board.showLife(clockMs()), SIGN_OF_LIFE_MS);
  signs.unref();

  // Until a beat of the thread has come through, they come from here too: it takes its time to start, and a short lease
  // would not wait for it.
  let starter: Beater | undefined = makeBeater(input);
  let fallback: Beater | undefined;
  let overflow: Beater | undefined;
  let isStopping = false;
  let onStopped: (() => void) | undefined;
  const pulse = input.pulses.register(`heartbeat thread of ${input.name}`);
  const worker = new Worker(file, { workerData: { ...input.thread, board: memory } satisfies ThreadInput });
  worker.unref();
  const tell = (message: FromMain): void => worker.postMessage(message);

  worker.on("message", (message: FromThread) => {
    if (message.type === "beat") {
      void starter?.stop();
      starter = undefined;
      input.onBeat(message.results, message.sentAt, message.tookMs);
    }
    if (message.type === "turn") pulse.beat(message.nextInMs);
    if (message.type === "missed") input.onMissed(new Error(`Heartbeat thread: ${message.message}`));
    if (message.type === "trouble") input.onTrouble(new Error(`Heartbeat thread: ${message.message}`));
    // We hear of it only if the main thread came back after all.
    if (message.type === "hung") input.onTrouble(blockedTooLong(message.jobs));
    if (message.type === "stopped") onStopped?.();
  });
  worker.on("error", (cause) =>
    fallBack(
      new Error(`The heartbeat thread failed (${cause.message}); beats come from the main thread now.`, { cause }),
    ),
  );
  worker.on("exit", () => {
    if (!isStopping) fallBack(new Error("The heartbeat thread ended; beats come from the main thread now."));
    onStopped?.();
  });

  function fallBack(error: unknown): void {
    if (fallback || isStopping) return;
    input.onTrouble(error);
    // It is told of once; the loop that beats from now on has its own pulse.
    pulse.end();
    fallback = starter ?? makeBeater(input);
    starter = undefined;
    for (const lease of held.values()) fallback.hold(lease);
  }

  return {
    expect(lease) {
      if (!fallback && board.expect(lease, clockMs()) && board.needsWaking(lease.leaseMs)) tell({ type: "wake" });
    },
    hold({ token, leaseMs }) {
      const lease = { token, leaseMs };
      held.set(`${token}/${leaseMs}`, lease);
      if (fallback) return fallback.hold(lease);
      starter?.hold(lease);
      // More leases than the board has places: these few beats come from here.
      if (!board.hold(lease, clockMs())) (overflow ??= makeBeater(input)).hold(lease);
      else if (board.needsWaking(leaseMs)) tell({ type: "wake" });
    },
    drop(lease, removeRow) {
      held.delete(`${lease.token}/${lease.leaseMs}`);
      fallback?.drop(lease, removeRow);
      starter?.drop(lease, false);
      overflow?.drop(lease, removeRow);
      if (!fallback) board.drop(lease, removeRow);
    },
    async stop() {
      isStopping = true;
      clearInterval(signs);
      pulse.end();
      await Promise.all([starter?.stop(), overflow?.stop()]);
      if (fallback) return await fallback.stop();
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        onStopped = resolve;
        timer = setTimeout(resolve, 5_000);
        tell({ type: "stop" });
      });
      clearTimeout(timer);
      await worker.terminate();
    },
  };
}

function blockedTooLong(jobs: readonly { id: string; kind: string }[]): Error {
  const named = jobs.map((job) => `${job.kind} ${job.id}`).join(", ");
  return new Error(
    jobs.length === 1
      ? `The event loop was blocked past the timeout of ${named}, settled as timed out meanwhile.`
      : `The event loop was blocked past the timeouts of ${named}: one of them blocked it, nobody can tell which, and none was settled for that.`,
  );
}
