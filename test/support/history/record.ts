// The history of a run with faults, written by a driver that is never killed: every operation as it was asked and as it
// was answered (ok, failed, or unknown: nobody said), every fault, and when the faults were over. keep.ts keeps it.

export type Phase = "begin" | "faults" | "healed" | "drained";

/** One job that was asked for. */
export interface Asked {
  /** Unique in the history: it is in the job's payload, and says which job is meant when no id is known. */
  n: number;
  key?: string;
  /** Under a key that is known already, with another payload than the first. */
  other?: boolean;
  group?: string;
  /** What its handler is told to do. */
  fail?: number;
  fatal?: boolean;
  effect?: "complete" | "step" | "chunks";
  items?: number;
  die?: boolean;
  light?: boolean;
  /** It may be purged BRIEF_MS after its end. */
  brief?: boolean;
  /** It is put off until a moment soon after it was asked for, which is no attempt. */
  snooze?: boolean;
  /** It runs for longer than its lease. */
  long?: boolean;
  /** If it dies, another job follows. */
  onDead?: boolean;
  /** Its coalescing key. */
  coalesce?: string;
  /** Of a parcel: the hash of its bytes. (Of a batch, `items` is how many it has, and `fail` how many of these fail once.) */
  sha256?: string;
}

/**
 * `coalesce`: an enqueue that need not become a job of its own. `retry`, `discard`: of jobs that are dead. `release`: of one that runs. `pause`
 * and `resume` are about the queue, and name no job.
 */
export type Verb =
  "enqueue" | "coalesce" | "cancel" | "retry" | "discard" | "release" | "put" | "batch" | "pause" | "resume";

export type Line =
  /** A recipient got a parcel, all of it. */
  | { at: number; arrived: string; sha256: string }
  /** `epoch`: by the machine's clock, in milliseconds. */
  | { at: number; phase: Phase; epoch?: number }
  /** `on`: the process or place that it met. `ms`: it lasted so long, and was over when this was written. */
  | { at: number; fault: string; on?: string; ms?: number }
  /** PostgreSQL has crashed: the signal was sent so many milliseconds ago. */
  | { at: number; crashed: number }
  | { at: number; op: number; is: "asked"; verb: Verb; jobs: Asked[] }
  | { at: number; op: number; is: "ok"; ids: string[]; created?: boolean[]; conflict?: boolean[] }
  | { at: number; op: number; is: "failed" | "unknown"; error: string };

export interface History {
  readonly lines: readonly Line[];
  phase(phase: Phase): void;
  /** Written once it has had its effect: what found nobody to hit is no fault. */
  fault(fault: string, on?: string, ms?: number): void;
  /** PostgreSQL is gone; the signal was sent so many milliseconds ago. Its fault has a line of its own, which may come much later. */
  crashed(ms: number): void;
  /** Counts of faults by name. */
  readonly faults: Readonly<Record<string, number>>;
  asked(verb: Verb, jobs: Asked[]): number;
  arrived(key: string, sha256: string): void;
  ok(op: number, answer: { ids: string[]; created?: boolean[]; conflict?: boolean[] }): void;
  notOk(op: number, is: "failed" | "unknown", error: unknown): void;
}

export function makeHistory(): History {
  const startedAt = performance.now();
  const lines: Line[] = [];
  const faults: Record<string, number> = {};
  let ops = 0;
  const at = (): number => Math.round(performance.now() - startedAt);
  return {
    lines,
    faults,
    phase: (phase) => void lines.push({ at: at(), phase, ...(phase === "begin" ? { epoch: Date.now() } : {}) }),
    fault(fault, on, ms) {
      faults[fault] = (faults[fault] ?? 0) + 1;
      lines.push({
        at: at(),
        fault,
        ...(on === undefined ? {} : { on }),
        ...(ms === undefined ? {} : { ms: Math.round(ms) }),
      });
    },
    crashed: (ms) => void lines.push({ at: at(), crashed: Math.round(ms) }),
    asked(verb, jobs) {
      const op = (ops += 1);
      lines.push({ at: at(), op, is: "asked", verb, jobs });
      return op;
    },
    arrived: (key, sha256) => void lines.push({ at: at(), arrived: key, sha256 }),
    ok: (op, answer) => void lines.push({ at: at(), op, is: "ok", ...answer }),
    notOk(op, is, error) {
      const text = error instanceof Error ? `${codeOf(error)}${error.message}` : String(error);
      lines.push({ at: at(), op, is, error: text.slice(0, 200) });
    },
  };
}

const codeOf = (error: Error): string => ("code" in error ? `${String(error.code)} ` : "");
