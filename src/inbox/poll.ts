// Parcels as they come, one after another, for ever: woken at once when something arrives, and looking by itself
// otherwise. A parcel is acked when the loop comes back for the next one, after its content was verified; leaving the loop, or an
// error in it, leaves the parcel in the inbox for whoever comes next. Consumers of one inbox are not given the same parcel
// at the same time; one that died keeps its parcel for the length of the hold.
import { setInterval } from "node:timers";
import { NotFound, OptionInvalid } from "../errors.ts";
import { isConnectionTrouble, isRetryable } from "../db/retryable.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import { eitherSignal } from "../shared/either-signal.ts";
import { holdParcel, leaveParcel, takeParcels } from "../store/inbox/take.ts";
import type { Parcel } from "../store/inbox/rows.ts";
import type { Store } from "../store/sql.ts";
import type { OpenedContent, Range } from "./open-content.ts";
import { saveFile, type SavedFile } from "./save-file.ts";
import type { InboxWake } from "./wake.ts";

/** How to poll: where to save, how often to look, for how long a parcel is kept for this consumer. */
export interface PollOptions {
  /** The longest pause between two looks when nothing wakes it. Default "2s". */
  every?: Duration;
  /** For how long a parcel is this consumer's own if it falls silent. Default "1m". */
  hold?: Duration;
  /** A folder: each parcel is saved there and verified before it is handed over. */
  into?: string;
  /** Ends the loop. */
  signal?: AbortSignal;
}

/**
 * A parcel that `poll()` gives. It is acked when the loop comes back for the next one, unless `leave()` was called.
 */
export interface Arrival {
  readonly parcel: Parcel;
  /** Where it was saved, with `into`. */
  readonly path: string | undefined;
  open(range?: Range): Promise<OpenedContent>;
  saveTo(folder: string): Promise<SavedFile>;
  /** Now, instead of when the loop comes back. */
  ack(): Promise<void>;
  /** Not now: the loop goes on without it, and it comes again later. */
  leave(): void;
}

export interface PollInput {
  store: Store;
  recipient: string;
  wake: InboxWake;
  /** Ends with the client. */
  closing: AbortSignal;
  open(id: string, range: Range, onFailed: () => void): Promise<OpenedContent>;
  ack(id: string): Promise<unknown>;
  notePoll(): void;
  onTrouble(error: unknown): void;
}

/** A parcel that was left, or that could not be saved, comes again after this. */
const COME_AGAIN_MS = 5_000;
const LONGEST_PAUSE_MS = 10_000;

export const POLL_DEFAULTS = { every: "2s", hold: "1m" } as const satisfies PollOptions;

export async function* poll(input: PollInput, options: PollOptions): AsyncGenerator<Arrival, void, undefined> {
  refuseUnknown("poll()", options, ["every", "hold", "into", "signal"]);
  const everyMs = atLeast("poll() every", durationMs("poll() every", options.every ?? POLL_DEFAULTS.every), 10);
  const holdMs = atLeast("poll() hold", durationMs("poll() hold", options.hold ?? POLL_DEFAULTS.hold), 1_000);
  const { store, recipient, wake, closing, onTrouble } = input;
  const over = options.signal ? eitherSignal(closing, options.signal) : closing;
  const alarm = makeAlarm();
  const ring = (): void => alarm.ring();
  const unsubscribe = wake.subscribe(recipient, ring);
  over.addEventListener("abort", ring);
  let trouble = 0;
  try {
    while (!over.aborted) {
      let parcel: Parcel | undefined;
      try {
        input.notePoll();
        [parcel] = await takeParcels(store, recipient, 1, holdMs);
        trouble = 0;
      } catch (error) {
        if (over.aborted) return;
        if (!isConnectionTrouble(error) && !isRetryable(error)) throw error;
        onTrouble(error);
        trouble += 1;
      }
      if (parcel) yield* handOver(input, parcel, holdMs, options.into);
      else await alarm.wait(jitter(Math.min(everyMs * 2 ** Math.min(trouble, 5), Math.max(everyMs, LONGEST_PAUSE_MS))));
    }
  } finally {
    over.removeEventListener("abort", ring);
    unsubscribe();
  }
}

async function* handOver(
  { store, recipient, open, ack, onTrouble }: PollInput,
  parcel: Parcel,
  holdMs: number,
  into: string | undefined,
): AsyncGenerator<Arrival, void, undefined> {
  const { id } = parcel;
  let fate: "open" | "acked" | "left" = "open";
  const renew = setInterval(() => {
    holdParcel(store, recipient, id, holdMs).catch(onTrouble);
  }, holdMs / 3);
  const save = (folder: string): Promise<SavedFile> => saveFile({ ...parcel, read: readFrom }, folder);
  async function* readFrom(start: number): AsyncGenerator<Buffer> {
    yield* (await open(id, { start }, () => {})).stream() as AsyncIterable<Buffer>;
  }
  try {
    const path = into === undefined ? undefined : (await save(into)).path;
    yield {
      parcel,
      path,
      open: (range = {}) => failing(open(id, range, fail)),
      saveTo: (folder) => failing(save(folder)),
      async ack() {
        await ack(id);
        fate = "acked";
      },
      leave() {
        fate = "left";
      },
    };
    if (fate === "open") {
      await ack(id);
      fate = "acked";
    }
  } catch (error) {
    // It expired while it was looked at: there is nothing left to hand over.
    if (!(error instanceof NotFound)) throw error;
    onTrouble(error);
  } finally {
    clearInterval(renew);
    if (fate !== "acked") await leaveParcel(store, recipient, id, COME_AGAIN_MS).catch(onTrouble);
  }

  /** What failed is not acked, even if the loop's body swallowed the error. */
  function fail(): void {
    if (fate === "open") fate = "left";
  }

  async function failing<T>(work: Promise<T>): Promise<T> {
    work.catch(fail);
    return await work;
  }
}

function atLeast(name: string, ms: number, least: number): number {
  if (ms >= least) return ms;
  throw new OptionInvalid(`${name} is ${ms} ms.`, `Give at least "${least}ms".`);
}
