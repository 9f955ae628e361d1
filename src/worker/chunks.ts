// A long list of items, worked on chunk by chunk. Each chunk's rows, the place it ends at and the progress are one
// fenced commit; the next attempt starts where the last commit ended.
//
// The list is recognised again by the payload's version and, by place, by a fingerprint of the items; with a `key` by
// the keys themselves. A list that is not the same starts from its beginning.
// A chunk whose call is too slow is halved and tried again, and grows back after a few that were not; the size is kept
// with the place, so that the next attempt does not start too big again.
import { createHash } from "node:crypto";
import { OptionInvalid } from "../errors.ts";
import type { Chunk, ChunkOptions, JobTransaction } from "../job/handler.ts";
import { cleanText } from "../job/storable.ts";
import { durationMs } from "../shared/duration.ts";
import { progressIfRunning } from "../store/jobs/progress.ts";
import { clearKeys, readNote, savedKeys, saveKeys, writeNote } from "../store/notes/notes.ts";
import type { Store } from "../store/sql.ts";
import { checkNoteName, fenced, payloadVersion } from "./fenced.ts";
import { type Run, signalOf } from "./run.ts";

interface ChunksNote {
  version: string;
  fingerprint: string;
  /** Items saved, from the beginning. */
  done: number;
  /** Items per chunk that were not too slow. */
  size: number;
}

type ChunkState = "open" | "saving" | "saved" | "too-slow";

export const CHUNK_DEFAULTS = { size: 32 } as const;
const GROW_AFTER = 4;
const MAX_SIZE = 100_000;

export async function* chunksOf<Item>(
  store: Store,
  run: Run,
  name: string,
  list: Iterable<Item>,
  options: ChunkOptions<Item>,
): AsyncGenerator<Chunk<Item>> {
  checkNoteName("The chunks' name", name);
  const fullSize = options.size ?? CHUNK_DEFAULTS.size;
  if (!Number.isInteger(fullSize) || fullSize < 1 || fullSize > MAX_SIZE) {
    throw new OptionInvalid(
      `chunks("${name}").size is ${String(fullSize)}.`,
      `Give a whole number from 1 to ${MAX_SIZE}.`,
    );
  }
  const timeoutMs =
    options.callTimeout === undefined
      ? run.kind.callTimeoutMs
      : durationMs(`chunks("${name}").callTimeout`, options.callTimeout);
  const all = [...list];
  const version = payloadVersion(run);
  const fingerprint = options.key ? "keys" : fingerprintOf(all);
  const noted = (await readNote<ChunksNote>(store, run.job.id, "chunks", name))?.value;
  const isSame = noted?.version === version && noted.fingerprint === fingerprint;
  let isFresh = !isSame;
  let size = Math.min(noted?.size ?? fullSize, fullSize);
  let good = 0;

  const keyed = options.key && keyItems(name, all, options.key);
  const saved = keyed && isSame ? await savedKeys(store, run.job.id, name) : new Set<string>();
  const open = keyed ? keyed.filter(({ key }) => !saved.has(key)) : undefined;
  const total = all.length;
  const items = open ? open.map(({ item }) => item) : all;
  const before = open ? total - items.length : 0;
  let place = !open && isSame ? Math.min(noted.done, total) : 0;

  while (place < items.length) {
    signalOf(run).throwIfAborted();
    const end = Math.min(place + size, items.length);
    const part = items.slice(place, end);
    let state: ChunkState = "open";
    /** A save failed, perhaps after its commit. */
    let isUnsure = false;

    const isSavedAlready = async (txStore: Store): Promise<boolean> => {
      const now = (await readNote<ChunksNote>(txStore, run.job.id, "chunks", name))?.value;
      if (now?.version !== version || now.fingerprint !== fingerprint) return false;
      return open ? (await savedKeys(txStore, run.job.id, name)).has(open[place]!.key) : now.done >= end;
    };

    const chunk: Chunk<Item> = {
      items: part,
      start: before + place,
      signal: signalOf(run),
      async call(work) {
        if (timeoutMs === undefined) return await work(part, signalOf(run));
        const result = await withTimeout(timeoutMs, signalOf(run), (signal) => work(part, signal));
        if (result !== TOO_SLOW) return result;
        if (part.length === 1) {
          throw new Error(`One item of chunks("${name}") took longer than its call timeout of ${timeoutMs} ms.`);
        }
        state = "too-slow";
        size = Math.max(1, Math.floor(part.length / 2));
        good = 0;
        // Kept at once: if this attempt ends here, the next one must not start with the same size.
        await keepSize(store, run, name, { version, fingerprint, done: open ? 0 : place, size }, isFresh);
        isFresh = false;
        return undefined;
      },
      async save(work) {
        if (state === "too-slow") {
          throw new Error(`A chunk of "${name}" was too slow, so its work is not done: continue instead of saving it.`);
        }
        if (state !== "open") throw new Error(`A chunk of "${name}" was saved twice.`);
        state = "saving";
        const saving = async (tx: JobTransaction, txStore: Store): Promise<void> => {
          if (isUnsure && (await isSavedAlready(txStore))) return;
          await work?.(tx);
          const done = before + end;
          if (isFresh && keyed) await clearKeys(txStore, run.job.id, name);
          if (open)
            await saveKeys(
              txStore,
              run.job.id,
              name,
              open.slice(place, end).map(({ key }) => key),
            );
          const note: ChunksNote = { version, fingerprint, done: open ? 0 : end, size };
          await writeNote(txStore, run.job.id, "chunks", name, JSON.stringify(note));
          await progressIfRunning(txStore, [
            { id: run.job.id, token: run.token, done, total, note: cleanText(options.note ?? name, 500) },
          ]);
        };
        await fenced(store, run, saving, true).catch((error: unknown) => {
          state = "open";
          isUnsure = true;
          throw error;
        });
        isFresh = false;
        state = "saved";
      },
    };
    yield chunk;

    // Read again: the consumer changed it through the methods above.
    switch (state as ChunkState) {
      case "saved":
        place = end;
        good += 1;
        if (good >= GROW_AFTER && size < fullSize) {
          size = Math.min(fullSize, size * 2);
          good = 0;
        }
        break;
      case "too-slow":
        break;
      case "saving":
        throw new Error(`A chunk of "${name}" was still being saved: wait for chunk.save().`);
      case "open":
        throw new Error(`A chunk of "${name}" was neither saved nor too slow: call chunk.save() for each one.`);
    }
  }
}

async function keepSize(store: Store, run: Run, name: string, note: ChunksNote, isFresh: boolean): Promise<void> {
  await fenced(store, run, async (_tx: JobTransaction, txStore) => {
    if (isFresh) await clearKeys(txStore, run.job.id, name);
    await writeNote(txStore, run.job.id, "chunks", name, JSON.stringify(note));
  });
}

function fingerprintOf(items: readonly unknown[]): string {
  const hash = createHash("sha256");
  for (const item of items) hash.update(JSON.stringify(item) ?? "undefined").update("\n");
  return hash.digest("hex").slice(0, 16);
}

function keyItems<Item>(name: string, items: readonly Item[], keyOf: (item: Item) => string) {
  const seen = new Set<string>();
  return items.map((item) => {
    const key = keyOf(item);
    if (typeof key !== "string" || key === "" || cleanText(key, 500) !== key || seen.has(key)) {
      throw new OptionInvalid(
        `chunks("${name}").key gave ${JSON.stringify(key)}${seen.has(key) ? " twice" : ""}.`,
        "Give each item a text of its own of 1 to 500 characters.",
      );
    }
    seen.add(key);
    return { item, key };
  });
}

const TOO_SLOW = Symbol("too slow");

async function withTimeout<T>(
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | typeof TOO_SLOW> {
  const timeout = AbortSignal.timeout(ms);
  const signal = AbortSignal.any([outer, timeout]);
  let timer: NodeJS.Timeout | undefined;
  // The work may not heed its signal: it is not waited for.
  const late = new Promise<typeof TOO_SLOW>((resolve) => (timer = setTimeout(() => resolve(TOO_SLOW), ms + 50)));
  const running = work(signal);
  running.catch(() => undefined);
  try {
    return await Promise.race([running, late]);
  } catch (error) {
    if (timeout.aborted && !outer.aborted) return TOO_SLOW;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
