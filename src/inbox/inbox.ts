// hf.inbox(recipient): put, list, open, ack, poll. It puts the parts together; each is in a file of its own.
import type { Db } from "../db/db.ts";
import { steadily } from "../db/steadily.ts";
import { OptionInvalid } from "../errors.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import type { ResolvedInboxOptions } from "../options/inbox.ts";
import type { Emitter } from "../shared/emitter.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { makeAlarm } from "../shared/sleep.ts";
import { checkId } from "../shared/check-id.ts";
import { checkInboxName } from "../shared/inbox-name.ts";
import { checkLimit, cutPage } from "../shared/page.ts";
import { eitherSignal } from "../shared/either-signal.ts";
import { ackParcels, type Acked } from "../store/inbox/ack.ts";
import { type InboxFigures, readFigures } from "../store/inbox/figures.ts";
import { listParcels } from "../store/inbox/list.ts";
import { markFetched } from "../store/inbox/mark-fetched.ts";
import { notePoll } from "../store/inbox/note-poll.ts";
import { readParcel } from "../store/inbox/read.ts";
import { type Parcel, PARCEL_STATES, type ParcelState } from "../store/inbox/rows.ts";
import { type InboxRow, listInboxes, readInbox } from "../store/inbox/stats.ts";
import type { Store } from "../store/sql.ts";
import type { Content } from "./content.ts";
import { openContent, type OpenedContent, type Range, unknownParcel } from "./open-content.ts";
import { type Arrival, poll, type PollOptions } from "./poll.ts";
import { Draft, makePutter, type PutFiles, type PutParcel } from "./put.ts";
import type { FileOptions, PutOptions } from "./put-options.ts";
import { findStuck, type Stuck } from "./stuck.ts";
import { makeInboxWake } from "./wake.ts";

/** Which parcels of an inbox to list. */
export interface ParcelListOptions {
  state?: ParcelState | readonly ParcelState[];
  order?: "oldest" | "newest";
  limit?: number;
  cursor?: string;
}

/** One page of an inbox. */
export interface ParcelPage {
  parcels: Parcel[];
  next: string | null;
}

/** `hf.inbox(recipient)`: hands files in, and is where the recipient fetches and acks them. */
export interface Inbox {
  readonly recipient: string;
  /** A stream, bytes, text or a JSON value; or a draft. It is visible when the promise resolves, and not before. */
  put(content: Content | Draft, options?: PutOptions): Promise<PutParcel>;
  /** All in one commit, or none. */
  putMany(files: PutFiles, options?: { tx?: Transaction | undefined }): Promise<PutParcel[]>;
  /** Stores content without showing it to anybody, to be put later: inside a short transaction, say. */
  draft(content: Content, options?: FileOptions): Promise<Draft>;
  /** Drafts that will not be put: the janitor removes them when it comes by, without waiting until they are silent. */
  discard(drafts: readonly Draft[]): Promise<void>;
  /** Oldest first unless told otherwise; `next` is the cursor of the following page, or null. */
  list(options?: ParcelListOptions): Promise<ParcelPage>;
  /** What is known of a parcel, also when its content is gone. */
  get(id: string): Promise<Parcel | undefined>;
  open(id: string, range?: Range): Promise<OpenedContent>;
  /** For whoever reads content by another way than open(), which marks it by itself. */
  markFetched(id: string): Promise<void>;
  ack(id: string): Promise<Acked>;
  poll(options?: PollOptions): AsyncGenerator<Arrival, void, undefined>;
  /** Notes that the recipient asked, and resolves at once if something waits, or when something arrives, or in the end. */
  arrival(options: { timeoutMs: number; signal?: AbortSignal }): Promise<void>;
  stats(): Promise<InboxStats>;
}

/** How an inbox stands: what waits, how old it is, who was last heard of, and whether it is stuck. */
export interface InboxStats extends Omit<InboxRow, "waitingForMs" | "unackedForMs" | "polledAgoMs" | "ackedAgoMs"> {
  expired: number;
  /** Why its parcels do not move, if they do not. */
  stuck: Stuck | null;
}

/** `hf.inboxes`: all recipients, and the limits in force. */
export interface Inboxes {
  readonly limits: ResolvedInboxOptions;
  /** In the order of their names. */
  list(options?: { limit?: number; cursor?: string }): Promise<{ inboxes: InboxStats[]; next: string | null }>;
  /** All of them together, for metrics. */
  figures(): Promise<InboxFigures>;
}

export interface InboxRoom {
  inbox(recipient: string): Inbox;
  inboxes: Inboxes;
  wakeAll(): void;
  close(): Promise<void>;
}

export interface InboxRoomInput {
  db: Db;
  store: Store;
  limits: ResolvedInboxOptions;
  events: Emitter<HoldfastEvents>;
}

const MAX_PAGE = 500;
const MAX_INBOXES = 100;
const PARCEL_ID = "The parcel id";
const NOTE_POLL_MS = 5_000;

export function makeInboxRoom({ db, store, limits, events }: InboxRoomInput): InboxRoom {
  const onTrouble = (error: unknown): void => events.emit("trouble", { where: "inbox", error });
  const wake = makeInboxWake(db, store.schema, onTrouble);
  const closing = new AbortController();
  const polledAt = new Map<string, number>();

  function sayPolled(recipient: string): void {
    const now = performance.now();
    if (now - (polledAt.get(recipient) ?? -Infinity) < NOTE_POLL_MS) return;
    // A process that serves many recipients forgets them all from time to time, rather than keeping them for ever.
    if (polledAt.size > 10_000) polledAt.clear();
    polledAt.set(recipient, now);
    notePoll(store, recipient).catch(onTrouble);
  }

  function inbox(given: string): Inbox {
    const recipient = checkInboxName("The recipient", given);
    const putter = makePutter({
      store,
      limits,
      recipient,
      onTrouble,
      onPut(parcels) {
        for (const { id: parcelId, size, created, conflict } of parcels) {
          events.emit("parcel.put", { parcelId, recipient, size, created, conflict });
        }
        wake.send(recipient);
      },
    });

    async function mark(id: string): Promise<boolean> {
      const size = await markFetched(store, recipient, id);
      if (size !== undefined) events.emit("parcel.fetched", { parcelId: id, recipient, size });
      return size !== undefined;
    }

    // Best effort: the bytes have arrived, whatever we can write about it.
    const sayFetched = async ({ id }: Parcel): Promise<void> => void (await mark(id).catch(onTrouble));

    const open = (id: string, range: Range = {}, onFailed?: () => void): Promise<OpenedContent> => {
      refuseUnknown("open()", range, ["start", "end"]);
      return openContent({
        store,
        recipient,
        id: checkId(id, PARCEL_ID),
        range,
        onFetched: sayFetched,
        ...(onFailed && { onFailed }),
      });
    };

    async function ack(id: string): Promise<Acked> {
      const [acked] = await steadily(() => ackParcels(store, recipient, [checkId(id, PARCEL_ID)], limits.keepAckedMs));
      if (!acked) throw unknownParcel(id);
      const { size, ...answer } = acked;
      if (!answer.again) events.emit("parcel.acked", { parcelId: id, recipient, size, gone: answer.gone });
      return answer;
    }

    return {
      recipient,
      async put(content, { tx, ...options } = {}) {
        const file = content instanceof Draft ? content : { ...options, content };
        return (await putter.put([file], tx))[0]!;
      },
      putMany: (files, { tx } = {}) => putter.put(files, tx),
      draft: (content, options = {}) => putter.draft(content, options),
      discard: (drafts) => putter.discard(drafts),
      async list(options = {}) {
        refuseUnknown("list()", options, ["state", "order", "limit", "cursor"]);
        const limit = checkLimit(options.limit ?? 50, MAX_PAGE);
        const states = options.state === undefined ? PARCEL_STATES : [options.state].flat().map(checkState);
        const order = options.order ?? "oldest";
        if (order !== "oldest" && order !== "newest") {
          throw new OptionInvalid(`order is ${JSON.stringify(order)}.`, "Give oldest or newest.");
        }
        const after = options.cursor === undefined ? undefined : checkId(options.cursor, "cursor");
        const found = await listParcels(store, { recipient, states, order, after, limit: limit + 1 });
        const { page: parcels, next } = cutPage(found, limit);
        return { parcels, next };
      },
      get: (id) => readParcel(store, recipient, checkId(id, PARCEL_ID)),
      open: (id, range) => open(id, range),
      async markFetched(id) {
        if (!(await mark(checkId(id, PARCEL_ID)))) throw unknownParcel(id);
      },
      ack,
      poll: (options = {}) =>
        poll(
          {
            store,
            recipient,
            wake,
            closing: closing.signal,
            open,
            ack,
            notePoll: () => sayPolled(recipient),
            onTrouble,
          },
          options,
        ),
      async arrival({ timeoutMs, signal }) {
        sayPolled(recipient);
        const alarm = makeAlarm();
        const ring = (): void => alarm.ring();
        const unsubscribe = wake.subscribe(recipient, ring);
        const over = signal ? eitherSignal(closing.signal, signal) : closing.signal;
        over.addEventListener("abort", ring);
        try {
          const until = performance.now() + timeoutMs;
          for (;;) {
            const [found] = await listParcels(store, {
              recipient,
              states: ["waiting", "fetched"],
              order: "oldest",
              limit: 1,
            });
            const left = until - performance.now();
            if (found || over.aborted || left <= 0) return;
            await alarm.wait(Math.min(left, 2_000));
          }
        } finally {
          over.removeEventListener("abort", ring);
          unsubscribe();
        }
      },
      stats: async () => toStats(await readInbox(store, recipient), limits),
    };
  }

  return {
    inbox,
    inboxes: {
      limits,
      async list({ limit: given = 50, cursor = "" } = {}) {
        const limit = checkLimit(given, MAX_INBOXES);
        const rows = await listInboxes(store, cursor, limit + 1);
        const page = rows.slice(0, limit);
        return {
          inboxes: page.map((row) => toStats(row, limits)),
          next: rows.length > limit ? page.at(-1)!.recipient : null,
        };
      },
      figures: () => readFigures(store),
    },
    wakeAll: () => wake.sendAll(),
    async close() {
      closing.abort();
      await wake.close();
    },
  };
}

function toStats(row: InboxRow, { stuckAfterMs }: ResolvedInboxOptions): InboxStats {
  const { waitingForMs: _w, unackedForMs: _u, polledAgoMs: _p, ackedAgoMs: _a, ...shown } = row;
  return { ...shown, expired: row.neverFetched + row.neverAcked, stuck: findStuck(row, stuckAfterMs) };
}

function checkState(state: ParcelState): ParcelState {
  if (PARCEL_STATES.includes(state)) return state;
  throw new OptionInvalid(`state is ${JSON.stringify(state)}.`, `Give one of ${PARCEL_STATES.join(", ")}.`);
}
