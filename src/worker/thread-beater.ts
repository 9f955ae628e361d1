// The main thread's side of the beat thread: starts it, tells it which leases to keep, hears what its beats found.
// A thread that cannot be started (a bundler dropped its file) or that dies is reported, and the beats go on from the
// main thread.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { BeatResult, LeaseId } from "../store/jobs/beat.ts";
import { type Beater, type BeaterInput, clockMs, makeBeater } from "./beater.ts";

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
  /** A module whose default export is called in the thread when the main thread hangs. */
  hungHook: string | null;
  /** Nanoseconds of the shared clock at the main thread's last sign of life. */
  life: SharedArrayBuffer;
}

export type FromMain =
  { type: "hold"; lease: LeaseId } | { type: "drop"; lease: LeaseId; removeRow: boolean } | { type: "stop" };

export type FromThread =
  | { type: "ready" | "stopped" }
  | { type: "beat"; results: BeatResult[]; sentAt: number }
  | { type: "trouble"; message: string }
  | { type: "hung"; jobs: { id: string; kind: string }[] };

export interface ThreadBeaterInput extends BeaterInput {
  thread: Omit<ThreadInput, "life">;
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
  const life = new SharedArrayBuffer(8);
  const lives = new BigInt64Array(life);
  const live = (): void => void Atomics.store(lives, 0, BigInt(Math.round(clockMs() * 1e6)));
  live();
  const signs = setInterval(live, SIGN_OF_LIFE_MS);
  signs.unref();

  let fallback: Beater | undefined;
  let isStopping = false;
  let onStopped: (() => void) | undefined;
  const worker = new Worker(file, { workerData: { ...input.thread, life } satisfies ThreadInput });
  worker.unref();
  const tell = (message: FromMain): void => worker.postMessage(message);

  worker.on("message", (message: FromThread) => {
    if (message.type === "beat") input.onBeat(message.results, message.sentAt);
    if (message.type === "trouble") input.onTrouble(new Error(`Heartbeat thread: ${message.message}`));
    if (message.type === "stopped") onStopped?.();
  });
  worker.on("error", fallBack);
  worker.on("exit", () => {
    if (!isStopping) fallBack(new Error("The heartbeat thread ended; beats come from the main thread now."));
    onStopped?.();
  });

  function fallBack(error: unknown): void {
    if (fallback || isStopping) return;
    input.onTrouble(error);
    fallback = makeBeater(input);
    for (const lease of held.values()) fallback.hold(lease);
  }

  return {
    hold({ token, leaseMs }) {
      held.set(`${token}/${leaseMs}`, { token, leaseMs });
      if (fallback) fallback.hold({ token, leaseMs });
      else tell({ type: "hold", lease: { token, leaseMs } });
    },
    drop({ token, leaseMs }, removeRow) {
      held.delete(`${token}/${leaseMs}`);
      if (fallback) fallback.drop({ token, leaseMs }, removeRow);
      else tell({ type: "drop", lease: { token, leaseMs }, removeRow });
    },
    async stop() {
      isStopping = true;
      clearInterval(signs);
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
