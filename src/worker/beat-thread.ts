// The thread that beats for a process whose event loop may be blocked. It has its own connection and nothing to do with
// handlers.
//
// It also notices a main thread that hangs for ever: when the main thread has not shown a sign of life and a job is past
// its kind's timeout, the thread settles that job as timed out, stops beating for the process, and calls the hook it was
// given, because nobody else in the process can. If several are, one of them hangs and the others wait for it, and nobody can
// tell which: none is charged, and each is recovered and run alone, as after a crash.
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { openPostgres } from "../db/postgres.ts";
import type { ErrorRecord } from "../job/outcome.ts";
import { type ClaimedJob, claimedByToken } from "../store/jobs/claim.ts";
import { keepEndedIn } from "../store/jobs/keep-ended.ts";
import { whyNotSettled } from "../store/jobs/settle.ts";
import { settleAnyRuns } from "../store/batches/settle-any.ts";
import { makeStore } from "../store/sql.ts";
import { clockMs, startBeats } from "./beater.ts";
import { readBoard } from "./lease-board.ts";
import type { FromMain, FromThread, ThreadInput, ThreadKind } from "./thread-beater.ts";

/** How long the main thread may be late beyond a timeout before it is taken for hung. */
const MARGIN_MS = 2_000;
const WATCH_MS = 500;
/** After so much silence it is written down what the main thread has in hand. */
const LOOK_MS = 1_000;

export type HungHook = (what: { jobs: { id: string; kind: string }[]; silentForMs: number }) => unknown;

async function main(input: ThreadInput): Promise<void> {
  const say = (message: FromThread): void => parentPort?.postMessage(message);
  const report =
    (type: "missed" | "trouble") =>
    (error: unknown): void =>
      say({ type, message: error instanceof Error ? error.message : String(error) });
  const trouble = report("trouble");
  const db = await openPostgres({
    ...input.connection,
    applicationName: "holdfast heartbeat",
    poolSize: 2,
    onTrouble: trouble,
  });
  const store = makeStore(db, input.schema);
  const kinds = new Map(input.kinds.map((kind) => [kind.kind, kind]));
  const board = readBoard(input.board);
  let isHung = false;
  const beats = startBeats(
    {
      store,
      onBeat: (results, sentAt, tookMs) => say({ type: "beat", results, sentAt, tookMs }),
      onMissed: report("missed"),
      onTurn: (nextInMs) => say({ type: "turn", nextInMs }),
    },
    // A process whose main thread hangs gets no more beats: its other jobs must move on.
    { ...board, held: () => (isHung ? [] : board.held()) },
  );

  const silentForMs = (): number => clockMs() - board.lifeMs();

  /** What the main thread had in hand when it fell silent, by id. Somebody else may have it by now, and it still hangs. */
  const inHand = new Map<string, { job: ClaimedJob; token: string; kind: ThreadKind; heldAt: number }>();
  const looked = new Set<string>();
  /** Jobs past their timeout that were named already in this silence. */
  const told = new Set<string>();
  let silentSince = board.lifeMs();

  async function watch(): Promise<void> {
    if (board.lifeMs() !== silentSince) {
      silentSince = board.lifeMs();
      inHand.clear();
      looked.clear();
      told.clear();
    }
    if (silentForMs() < MARGIN_MS) {
      // It was only very late: what it holds, and what it will claim, needs beats again.
      if (isHung) beats.wake();
      isHung = false;
      if (silentForMs() < LOOK_MS) return;
    }
    const shortest = Math.min(...input.kinds.map((kind) => kind.timeoutMs));
    for (const { token, heldAt, isExpected } of board.held()) {
      if (isExpected || (looked.has(token) && clockMs() - heldAt < shortest + MARGIN_MS)) continue;
      // By id: one claim can have several leases, and each would name all of its jobs.
      for (const job of await claimedByToken(store, token)) {
        inHand.set(job.id, { job, token, kind: kinds.get(job.kind)!, heldAt });
      }
      looked.add(token);
    }
    const late = [...inHand.values()].filter(({ kind, heldAt }) => clockMs() - heldAt > kind.timeoutMs + MARGIN_MS);
    if (late.length === 0) return;
    // What was sent before the silence may have been written since then: that run is over, and hangs nowhere.
    const fates = await whyNotSettled(
      store,
      late.map(({ job, token }) => ({ id: job.id, token })),
    );
    const overdue = late.filter(({ job }) => ["locked", "lost", "back"].includes(fates.get(job.id)!));
    if (overdue.length === 0 || silentForMs() < MARGIN_MS || board.lifeMs() !== silentSince) return;
    const isFirst = !isHung;
    isHung = true;
    const blamed = overdue.length === 1 ? overdue : [];
    await settleAnyRuns(
      store,
      blamed.map(({ job, token, kind }) => ({
        id: job.id,
        token,
        keepMs: null,
        keepEndedMs: keepEndedIn(input.keepEnded, job.queue),
        outcome: "retry" as const,
        delayMs: delayOf(kind, job.attempt),
        error: hungError(kind),
        group: job.group_key,
      })),
    ).catch(trouble);
    const jobs = overdue.map(({ job }) => ({ id: job.id, kind: job.kind }));
    if (jobs.some(({ id }) => !told.has(id))) say({ type: "hung", jobs });
    for (const { id } of jobs) told.add(id);
    if (!isFirst) return;
    const hook = input.hungHook === null ? undefined : ((await import(input.hungHook)) as { default?: HungHook });
    await hook?.default?.({ jobs, silentForMs: silentForMs() });
  }
  const watching = setInterval(() => void watch().catch(trouble), WATCH_MS);

  parentPort?.on("message", (message: FromMain) => {
    if (message.type === "wake") return beats.wake();
    clearInterval(watching);
    void beats
      .stop()
      .then(() => db.close())
      .catch(trouble)
      .finally(() => {
        say({ type: "stopped" });
        parentPort?.close();
      });
  });
  say({ type: "ready" });
}

function delayOf(kind: ThreadKind, attempt: number): number {
  return kind.delaysMs[Math.min(Math.max(attempt, 1), kind.delaysMs.length) - 1] ?? 0;
}

function hungError(kind: ThreadKind): ErrorRecord {
  return {
    name: "Timeout",
    reason: "timeout",
    message: `The handler blocked its process for longer than its timeout of ${kind.timeoutMs} ms.`,
  };
}

if (!isMainThread) void main(workerData as ThreadInput);
