// A recipient that survives restarts. For each parcel of its inbox: the bytes into a part file (going on where an earlier
// fetch stopped), the hash, the name, and the ack last. A parcel that fails stays in the inbox and is tried again; it
// keeps no other from coming. One process per folder.
import { mkdir, realpath } from "node:fs/promises";
import { lockFolder } from "../db/folder-lock.ts";
import { FolderLocked } from "../errors.ts";
import { saveFile } from "../inbox/save-file.ts";
import { jitter, makeAlarm } from "../shared/sleep.ts";
import type { ParcelView } from "../http/contracts/inbox.ts";
import { EXIT, explain } from "./exit-codes.ts";
import type { InboxApi } from "./inbox-api.ts";
import { Problem } from "./problem.ts";
import { showProgress } from "./progress.ts";

export interface PullInput {
  api: InboxApi;
  recipient: string;
  into: string;
  /** Ends when nothing is left, instead of waiting for more. */
  once: boolean;
  signal: AbortSignal;
  onPulled(parcel: ParcelView, path: string, wasThere: boolean): void;
  onFailed(error: unknown, parcel: ParcelView | undefined): void;
}

export interface Pulled {
  pulled: number;
  failed: number;
}

const PAGE = "100";
const WAIT = "25s";
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export async function pull(input: PullInput): Promise<Pulled> {
  await mkdir(input.into, { recursive: true, mode: 0o700 });
  const folder = await realpath(input.into);
  const lock = await lockFolder(folder, { command: "holdfast inbox pull" }).catch((error: unknown) => {
    if (!(error instanceof FolderLocked)) throw error;
    throw new Problem(
      `Another process pulls into ${folder}.`,
      "Let it, or give this one a folder of its own.",
      EXIT.temporary,
      { cause: error },
    );
  });
  try {
    return await pullInto(input, folder);
  } finally {
    await lock.release();
  }
}

async function pullInto(input: PullInput, folder: string): Promise<Pulled> {
  const { once, signal, onFailed } = input;
  const alarm = makeAlarm();
  signal.addEventListener("abort", () => alarm.ring());
  let total = 0;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    let failed = 0;
    try {
      const round = await pullAll(input, folder);
      total += round.pulled;
      failed = round.failed;
      if (once && round.failed === 0) break;
      if (round.failed === 0) pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      if (signal.aborted) break;
      // A wrong token or a wrong recipient does not get better by asking again.
      const { exitCode } = explain(error);
      if (once || exitCode === EXIT.usage || isRefused(error)) throw error;
      onFailed(error, undefined);
      failed = 1;
    }
    if (failed === 0) continue;
    if (once) return { pulled: total, failed };
    await alarm.wait(jitter(pauseMs));
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
  return { pulled: total, failed: 0 };
}

const isRefused = (error: unknown): boolean =>
  error instanceof Problem && /HTTP_(UNAUTHORIZED|FORBIDDEN)/.test(error.code ?? "");

/** Everything that waits now; if nothing does, as soon as something does. */
async function pullAll(input: PullInput, folder: string): Promise<Pulled> {
  const { api, recipient, once, signal, onFailed } = input;
  let cursor: string | undefined;
  let pulled = 0;
  let failed = 0;
  do {
    const query = {
      state: "waiting,fetched",
      limit: PAGE,
      cursor,
      wait: cursor === undefined ? (once ? "0s" : WAIT) : undefined,
    };
    const page = await api.list(recipient, query, signal);
    for (const parcel of page.parcels) {
      if (signal.aborted) return { pulled, failed };
      try {
        await pullOne(input, parcel, folder);
        pulled += 1;
      } catch (error) {
        if (signal.aborted) return { pulled, failed };
        // It expired, or another consumer acked it and its time ended: there is nothing to fetch.
        if (explain(error).exitCode === EXIT.notFound) continue;
        failed += 1;
        onFailed(error, parcel);
      }
    }
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return { pulled, failed };
}

async function pullOne(
  { api, recipient, signal, onPulled }: PullInput,
  parcel: ParcelView,
  folder: string,
): Promise<void> {
  const { id, name, size, sha256 } = parcel;
  const progress = showProgress(name, size);
  const read = (start: number): AsyncIterable<Uint8Array> => api.content(recipient, id, start, signal);
  const saved = await saveFile({ id, name, size, sha256, read }, folder, (done) => progress.update(done)).finally(() =>
    progress.end(),
  );
  await api.ack(recipient, id);
  onPulled(parcel, saved.path, saved.wasThere);
}
