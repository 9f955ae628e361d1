// hf.batches.changes: what happened since, for clients that keep a copy of batches and items. A change names the items it
// is about; they come with it as they are now, so that a client that is far behind does not learn every step.
import { OptionInvalid } from "../errors.ts";
import type { Batch, BatchItem } from "../job/batch.ts";
import { checkInboxName } from "../shared/inbox-name.ts";
import { checkLimit } from "../shared/page.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { type ChangeRow, feedEnds, readChanges, sequenceChanges } from "../store/batches/changes.ts";
import { readItems } from "../store/batches/items.ts";
import { readBatch } from "../store/batches/read.ts";
import type { Store } from "../store/sql.ts";

/** From where on to read the feed, and whose. */
export interface ChangesOptions {
  /** The `next` of the last answer; nothing: from the beginning. */
  since?: string;
  owner?: string;
  limit?: number;
}

/** One thing that happened to a batch, with a number that only grows. */
export interface Change {
  seq: string;
  batchId: string;
  owner: string | null;
  /** created, added, started, settled, paused, resumed, cancelled, retried, acked, expired, fields, healed, abandoned, deleted. */
  what: string;
  by: string | null;
  at: Date | null;
  /** Items that it is about, by number. */
  seqs: number[];
}

/** A part of the feed: what happened, and the batches and items it is about as they are now. */
export interface Changes {
  changes: Change[];
  /** The batches they are about, as they are now; one that is gone is missing. */
  batches: Batch[];
  /** The items they are about, as they are now, by batch. */
  items: Record<string, BatchItem[]>;
  /** Where to go on. */
  next: string;
  /** There is more right now. */
  more: boolean;
  /** `since` is older than what is kept: read everything anew, and go on from `next`. */
  reset: boolean;
}

const MAX_PAGE = 500;
/** Items that come with one answer. */
const MOST_ITEMS = 2_000;

export async function changesSince(store: Store, options: ChangesOptions): Promise<Changes> {
  refuseUnknown("batches.changes()", options, ["since", "owner", "limit"]);
  const { since = "0", limit = 100 } = options;
  if (typeof since !== "string" || !/^\d{1,18}$/.test(since)) {
    throw new OptionInvalid(`since is ${JSON.stringify(since)}.`, "Give what the last answer called `next`.");
  }
  checkLimit(limit, MAX_PAGE);
  const owner = options.owner === undefined ? undefined : checkInboxName("owner", options.owner);
  await sequenceChanges(store);
  const { first, last } = await feedEnds(store);
  const rows = await readChanges(store, since, limit + 1, owner);
  const page = fitting(rows.slice(0, limit));
  const more = rows.length > page.length;
  // What others own moves the feed on too: a client of one owner does not have to walk past it again.
  const end = BigInt(last ?? "0") > BigInt(since) ? last! : since;
  return {
    changes: page.map(toChange),
    ...(await presentOf(store, page)),
    next: more ? page.at(-1)!.seq : end,
    more,
    reset: since !== "0" && first !== null && BigInt(since) + 1n < BigInt(first),
  };
}

/** As many as bring no more items than fit; at least one. */
function fitting(rows: readonly ChangeRow[]): ChangeRow[] {
  let items = 0;
  const end = rows.findIndex((row, index) => {
    items += row.seqs?.length ?? 0;
    return index > 0 && items > MOST_ITEMS;
  });
  return end === -1 ? [...rows] : rows.slice(0, end);
}

function toChange({ seq, batchId, owner, what, by, at, seqs, deleted }: ChangeRow): Change {
  // Of what is gone only that is left to say.
  return { seq, batchId, owner, what: what ?? (deleted ? "deleted" : "gone"), by, at, seqs: (seqs ?? []).map(Number) };
}

async function presentOf(store: Store, rows: readonly ChangeRow[]): Promise<Pick<Changes, "batches" | "items">> {
  const byBatch = new Map<string, Set<string>>();
  for (const { batchId, seqs } of rows) {
    const known = byBatch.get(batchId) ?? new Set();
    for (const seq of seqs ?? []) known.add(seq);
    byBatch.set(batchId, known);
  }
  const batches: Batch[] = [];
  const items: Record<string, BatchItem[]> = {};
  for (const [batchId, seqs] of byBatch) {
    const batch = await readBatch(store, batchId);
    if (!batch) continue;
    batches.push(batch);
    if (seqs.size > 0) items[batchId] = await readItems(store, batchId, batch.state, [...seqs]);
  }
  return { batches, items };
}
