// A batch from a request: a list in JSON, or lines, of which no more than a part is held.
//
// A list is taken as a whole or not at all. Lines are taken as they come. If they break off or one of them is wrong, what
// came before is there: with a key the sender goes on by sending all of it again; without one nobody could, so the batch
// is cancelled.
import { MAIN_WRITER } from "../batches/make-batches.ts";
import type { CreateBatchOptions } from "../batches/create-options.ts";
import type { Holdfast } from "../client/client.ts";
import { HoldfastError } from "../errors.ts";
import type { AnyBatchKind } from "../job/define-batch.ts";
import { Refusal } from "./errors.ts";

export interface FromLines {
  kind: AnyBatchKind;
  lines: AsyncGenerator<unknown, void>;
  options: CreateBatchOptions;
  /** Who asks, for the log. */
  by: string;
}

export interface Created {
  id: string;
  created: boolean;
  added: number;
}

/** So many lines are read before anything is stored: what is wrong at the beginning leaves nothing behind. */
const FIRST = 1_000;

export async function createFromLines(hf: Holdfast, { kind, lines, options, by }: FromLines): Promise<Created> {
  const first: unknown[] = [];
  let isAll = false;
  while (first.length < FIRST && !isAll) {
    const { done, value } = await lines.next();
    if (done) isAll = true;
    else first.push(value);
  }
  if (isAll) return await hf.batches.create(kind, first, options);
  const { id, created, added } = await hf.batches.create(kind, first, { ...options, open: true });
  const isComplete = !created && (await hf.batches.get(id))?.closed !== false;
  if (isComplete) {
    // Read to its end: a sender that is still writing would not see the answer.
    for await (const _ of lines);
    return { id, created, added };
  }
  const rest = { writer: MAIN_WRITER, from: first.length, close: options.open !== true && options.total === undefined };
  try {
    const more = await hf.batches.add(kind, id, lines, rest);
    return { id, created, added: added + more.added };
  } catch (error) {
    const isLeft = options.key !== undefined;
    if (!isLeft) await hf.batches.cancel(id, { by }).catch(() => {});
    throw explained(error, id, isLeft);
  }
}

function explained(error: unknown, id: string, isLeft: boolean): unknown {
  if (!(error instanceof HoldfastError) && !(error instanceof Refusal)) return error;
  const what = isLeft
    ? `Batch ${id} has what came before; send all of it again under the same key.`
    : `Batch ${id} has what came before, and is cancelled.`;
  error.message = `${error.message} ${what}`;
  return error;
}
