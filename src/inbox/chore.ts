// The inbox's chore: ends what nobody acked in time, and removes content, broken puts and tombstones when their time is
// over. Every step is one statement, bounded in rows and bytes; what does not fit in one run is for the next, soon.
import { type Chore, type ChoreContext, defineChore } from "../job/define-chore.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import type { ResolvedInboxOptions } from "../options/inbox.ts";
import type { Emitter } from "../shared/emitter.ts";
import { sleep } from "../shared/sleep.ts";
import { expireParcels } from "../store/inbox/expire.ts";
import { forgetInboxes, previewPurge, purgeContent, purgeDrafts, purgeTombstones } from "../store/inbox/purge.ts";
import { listInboxes } from "../store/inbox/stats.ts";
import type { Store } from "../store/sql.ts";
import { CHUNK_BYTES } from "./put.ts";
import { findStuck } from "./stuck.ts";

export interface InboxChoreInput {
  store: Store;
  limits: ResolvedInboxOptions;
  events: Emitter<HoldfastEvents>;
  /** Jobs of these kinds were inserted for parcels that expired. */
  onFollowed(kinds: string[]): void;
}

/** Parcels, and bytes, that one statement may touch. */
const PARCELS = 500;
const CHUNKS = (16 * 1_048_576) / CHUNK_BYTES;
/** Inboxes that one run looks at: so many, so often. */
const PAGE = 100;
const MOST_PAGES = 10;
const MOST_REMEMBERED = 10_000;

const INBOX_CHORE = "purge-inbox";

export function makeInboxChore({ store, limits, events, onFollowed }: InboxChoreInput): Chore {
  /** Those that were told of. */
  let stuck = new Set<string>();

  /** Recipients whose parcels do not move. Some pages in each run; the next goes on behind them. */
  let lookedUpTo = "";
  async function lookForStuck(context: ChoreContext): Promise<void> {
    for (let pages = 0; pages < MOST_PAGES && context.hasTime(); pages += 1) {
      if (lookedUpTo === "") stuck = new Set([...stuck].slice(-MOST_REMEMBERED));
      const inboxes = await listInboxes(store, lookedUpTo, PAGE);
      for (const inbox of inboxes) {
        const { recipient } = inbox;
        const found = findStuck(inbox, limits.stuckAfterMs);
        if (found && !stuck.has(recipient)) events.emit("inbox.stuck", { recipient, ...found });
        if (found) stuck.add(recipient);
        else stuck.delete(recipient);
      }
      lookedUpTo = inboxes.length < PAGE ? "" : inboxes.at(-1)!.recipient;
      if (lookedUpTo === "") return;
    }
  }

  async function expire(context: ChoreContext): Promise<boolean> {
    return await repeat(context, async () => {
      const expired = await expireParcels(store, Math.min(PARCELS, context.batchSize));
      for (const { id: parcelId, recipient, name, size, reason } of expired) {
        events.emit("parcel.expired", { parcelId, recipient, name, size, reason });
      }
      context.count("never-fetched", expired.filter(({ reason }) => reason === "never fetched").length);
      context.count("never-acked", expired.filter(({ reason }) => reason !== "never fetched").length);
      const kinds = new Set(expired.flatMap(({ kind }) => kind ?? []));
      if (kinds.size > 0) onFollowed([...kinds]);
      return expired.length >= Math.min(PARCELS, context.batchSize);
    });
  }

  async function purge(context: ChoreContext): Promise<boolean> {
    const steps = { parcels: PARCELS, chunks: CHUNKS };
    const content = await repeat(context, async () => {
      const { acked, expired, chunks } = await purgeContent(store, steps);
      context.count("acked", acked);
      context.count("expired", expired);
      return chunks >= CHUNKS || acked + expired >= PARCELS;
    });
    const drafts = await repeat(context, async () => {
      const { drafts: gone, chunks } = await purgeDrafts(store, limits.draftTimeoutMs, steps);
      context.count("drafts", gone);
      return chunks >= CHUNKS || gone >= PARCELS;
    });
    await context.inBatches("tombstones", (limit) => purgeTombstones(store, limits.keepTombstonesMs, limit));
    await context.inBatches("inboxes", (limit) => forgetInboxes(store, limits.keepTombstonesMs, limit));
    return content || drafts;
  }

  return defineChore(INBOX_CHORE, {
    every: `${limits.purgeEveryMs}ms`,
    deadline: "30s",
    budget: "10s",
    async run(context) {
      await lookForStuck(context);
      const isLeft = await expire(context);
      return (await purge(context)) || isLeft ? { more: true } : undefined;
    },
    async preview({ limit }) {
      const found = await previewPurge(store, limits.draftTimeoutMs, limit);
      return {
        "never-fetched": found.never_fetched,
        "never-acked": found.never_acked,
        acked: found.acked,
        drafts: found.drafts,
      };
    },
  });
}

/** While there is more and time for it; half of the database's time is for others. True if something is left. */
async function repeat(context: ChoreContext, step: () => Promise<boolean>): Promise<boolean> {
  for (;;) {
    context.signal.throwIfAborted();
    const sentAt = performance.now();
    if (!(await step())) return false;
    if (!context.hasTime()) return true;
    await sleep(performance.now() - sentAt);
  }
}
