// Takes items in, from a list or a stream of any length, a part at a time: no more than one part is held. Each part says how
// many came before it, so that a part that is sent again after a lost answer is taken once.
import { isConnectionTrouble } from "../db/retryable.ts";
import { steadily } from "../db/steadily.ts";
import { DatabaseUnavailable, NotFound, OptionInvalid, StateConflict } from "../errors.ts";
import type { AnyBatchKind } from "../job/define-batch.ts";
import { parseItem } from "../job/item.ts";
import { toStorableJson } from "../job/storable.ts";
import { addItems, type Added, type Addition } from "../store/batches/add.ts";
import type { Store } from "../store/sql.ts";

export type Items<Input> = Iterable<Input> | AsyncIterable<Input>;

/** Items in one statement, and their bytes. */
const PART_ITEMS = 1_000;
const PART_BYTES = 1_048_576;
/** While the answer is unknown: whoever adds many items would rather wait than begin again. */
export const PAUSES_MS = [50, 250, 1_000, 2_500, 5_000];

export interface Part {
  items: string[];
  /** How many items of the list come before these. */
  from: number;
  isLast: boolean;
}

/** The items as JSON texts, checked one by one as they come. Of a list all are checked before the first part. */
export async function* partsOf<Input>(where: string, kind: AnyBatchKind, given: Items<Input>): AsyncGenerator<Part> {
  const source = asIterable(where, given);
  if (Array.isArray(given)) for (const [index, item] of given.entries()) await check(where, kind, item, index);
  let items: string[] = [];
  let bytes = 0;
  let from = 0;
  let index = 0;
  for await (const item of source) {
    const text = await check(where, kind, item, index);
    if (items.length > 0 && (items.length >= PART_ITEMS || bytes + text.length > PART_BYTES)) {
      yield { items, from, isLast: false };
      from += items.length;
      items = [];
      bytes = 0;
    }
    items.push(text);
    bytes += text.length;
    index += 1;
  }
  yield { items, from, isLast: true };
}

function asIterable<Input>(where: string, given: Items<Input>): Items<Input> {
  const isList = given !== null && typeof given === "object";
  if (isList && (Symbol.iterator in given || Symbol.asyncIterator in given)) return given;
  throw new OptionInvalid(
    `${where} got ${String(given)} for its items.`,
    "Give an array, or anything `for await` takes.",
  );
}

async function check(where: string, kind: AnyBatchKind, item: unknown, index: number): Promise<string> {
  try {
    const text = toStorableJson(`The item`, item);
    // As it will be when it runs: a schema may change its type, and what is stored is what was given.
    if (kind.batch.schema) await parseItem(kind.kind, kind.batch, JSON.parse(text));
    return text;
  } catch (error) {
    if (error instanceof Error) error.message = `${where} item ${index + 1}: ${error.message}`;
    throw error;
  }
}

export async function addPart(store: Store, addition: Addition, own: boolean): Promise<Added> {
  const add = (): Promise<Added> => addItems(store, addition);
  let added: Added;
  try {
    added = own ? await steadily(add, PAUSES_MS) : await add();
  } catch (error) {
    if (!isConnectionTrouble(error)) throw error;
    throw new DatabaseUnavailable(
      `The database did not confirm that items ${addition.from + 1} and following were added to batch ${addition.batchId}.`,
      "Add them again under the same key, or with the same writer and place: none is taken twice.",
      { cause: error },
    );
  }
  if (added.problem === null) return added;
  const { batchId, from, items } = addition;
  switch (added.problem) {
    case "unknown":
      throw new NotFound(`There is no batch ${batchId}.`, "Check the id; a deleted batch is gone.");
    case "ended":
      throw new StateConflict(`Batch ${batchId} is ${added.state}: nothing can be added.`, "Create a new batch.");
    case "closed":
      throw new StateConflict(
        `Batch ${batchId} is closed: nothing can be added.`,
        "Create it with open: true or a total.",
      );
    case "gap":
      throw new StateConflict(
        `Items of writer ${addition.writer} before number ${from + 1} are missing in batch ${batchId}.`,
        "Add them first: a writer's items are taken in order.",
      );
    case "total":
      throw new StateConflict(
        `Batch ${batchId} was declared with ${added.total} items; there are ${added.count}, and ${items.length} came.`,
        added.count + items.length > added.total!
          ? "Create another batch for the rest."
          : "Add what is missing, or cancel it.",
      );
  }
}
