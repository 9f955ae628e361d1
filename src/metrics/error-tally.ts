// Counts failed attempts by what their errors have in common, from the events of this process. Bounded: of more different
// errors than that, the rest is counted together, by kind.
import { fingerprintOf } from "../job/fingerprint.ts";
import type { ErrorRecord } from "../job/outcome.ts";
import type { Emitter } from "../shared/emitter.ts";
import type { HoldfastEvents } from "./events.ts";

export interface TalliedError {
  kind: string;
  fingerprint: string;
  queue: string;
  name: string;
  message: string;
  jobId: string;
  retries: number;
  deaths: number;
}

export interface ErrorTally {
  /** What was counted since it was last taken. */
  take(): TalliedError[];
  /** It could not be stored: add it again. */
  putBack(errors: readonly TalliedError[]): void;
}

const MOST = 200;

interface Failed {
  jobId: string;
  kind: string;
  queue: string;
  error: ErrorRecord | undefined;
}

export function makeErrorTally(events: Emitter<HoldfastEvents>): ErrorTally {
  let errors = new Map<string, TalliedError>();

  function add(tallied: TalliedError): void {
    const known = errors.get(`${tallied.kind} ${tallied.fingerprint}`);
    if (known) {
      known.retries += tallied.retries;
      known.deaths += tallied.deaths;
      known.jobId = tallied.jobId;
      known.message = tallied.message;
    } else if (errors.size < MOST || tallied.fingerprint === "others") {
      errors.set(`${tallied.kind} ${tallied.fingerprint}`, tallied);
    } else {
      add({ ...tallied, fingerprint: "others", name: "Others", message: "Many different errors at once." });
    }
  }

  function hear({ jobId, kind, queue, error }: Failed, deaths: 0 | 1): void {
    const { name, message } = error ?? { name: "Error", message: "" };
    // What the janitor writes about a crash has none, and is known by its reason.
    const fingerprint = !error
      ? "unknown"
      : (error.fingerprint ?? (error.reason === "crashed" ? error.reason : fingerprintOf(error)));
    const said = message.slice(0, 500);
    add({ kind, fingerprint, queue, name: name.slice(0, 200), message: said, jobId, retries: 1 - deaths, deaths });
  }
  events.on("job.retrying", (event) => hear(event, 0));
  events.on("job.dead", (event) => hear(event, 1));

  return {
    take() {
      const taken = [...errors.values()];
      errors = new Map();
      return taken;
    },
    putBack(back) {
      for (const error of back) add({ ...error });
    },
  };
}
