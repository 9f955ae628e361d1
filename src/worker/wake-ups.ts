// Hints that something is due. Inside the process they are calls; between processes they are NOTIFYs, sent after the
// commit and never more often than every few milliseconds. Nothing rests on them: polling finds everything.
import { createHash } from "node:crypto";
import type { Db, Listener } from "../db/db.ts";
import { uuidv7 } from "../shared/uuid.ts";
import type { WakeUp } from "./claim-loop.ts";

export interface ProcessWakeUp extends WakeUp {
  /** Running jobs that were asked to stop. */
  cancelIds?: readonly string[];
  /** Runs that are over because their jobs were released. */
  releasedTokens?: readonly string[];
}

export interface WakeUps {
  /** Tells this process and the others. */
  send(wakeUp: ProcessWakeUp): void;
  /** Calls back with every hint, from here and from elsewhere. The function returned ends that. */
  subscribe(hear: (wakeUp: ProcessWakeUp) => void): () => void;
  listen(): Promise<void>;
  close(): Promise<void>;
}

const GAP_MS = 20;
const MAX_IDS = 100;
const MAX_BYTES = 7_900;
const MAX_CHANNEL_BYTES = 63;

interface Message {
  /** Who sent it: our own come back to us and are not news. */
  from: string;
  lanes?: [kind: string, rank: number | null][];
  ids?: [id: string, rank: number | null][];
  cancelIds?: string[];
  releasedTokens?: string[];
  everything?: boolean;
}

/** It names nothing: whoever hears it looks at everything. */
export const isPlain = ({ kind, ids, cancelIds, releasedTokens }: ProcessWakeUp): boolean =>
  kind === undefined && !ids && !cancelIds && !releasedTokens;

/** One per schema, and never longer than Postgres allows a channel's name to be. */
function channelOf(schema: string): string {
  const channel = `holdfast:${schema}`;
  if (Buffer.byteLength(channel) <= MAX_CHANNEL_BYTES) return channel;
  return `holdfast:${createHash("sha256").update(schema).digest("hex").slice(0, 40)}`;
}

export interface WakeUpsInput {
  db: Db;
  schema: string;
  /** Once for each hint, whatever it names. */
  onHeard(from: "here" | "elsewhere"): void;
  onTrouble(error: unknown): void;
}

export function makeWakeUps({ db, schema, onHeard, onTrouble }: WakeUpsInput): WakeUps {
  const channel = channelOf(schema);
  const from = uuidv7().slice(-12);
  const hearers = new Set<(wakeUp: ProcessWakeUp) => void>();
  const lanes = new Map<string, [string, number | null]>();
  const ids = new Map<string, number | null>();
  let cancelIds = new Set<string>();
  let releasedTokens = new Set<string>();
  let everything = false;
  let timer: NodeJS.Timeout | undefined;
  let lastSentAt = -Infinity;
  let listening: Promise<Listener> | undefined;
  let closed = false;

  function hear(wakeUp: ProcessWakeUp): void {
    for (const hearer of hearers) hearer(wakeUp);
  }

  function flush(): void {
    timer = undefined;
    if (closed) return;
    lastSentAt = performance.now();
    const message: Message = { from };
    if (lanes.size > 0) message.lanes = [...lanes.values()].slice(0, 50);
    if (lanes.size > 50 || ids.size > MAX_IDS) everything = true;
    if (ids.size > 0) message.ids = [...ids].slice(0, MAX_IDS);
    const toCancel = [...cancelIds];
    if (toCancel.length > 0) message.cancelIds = toCancel.slice(0, MAX_IDS);
    // What is beyond is refused when it settles: this only makes it sooner.
    if (releasedTokens.size > 0) message.releasedTokens = [...releasedTokens].slice(0, MAX_IDS);
    releasedTokens = new Set();
    if (everything) message.everything = true;
    lanes.clear();
    ids.clear();
    everything = false;
    let text = JSON.stringify(message);
    // Postgres takes no more. Cancels that do not fit come with the next message: a beat would bring them too, but later.
    const isTooLong = Buffer.byteLength(text) > MAX_BYTES;
    if (isTooLong) text = JSON.stringify({ from, everything: true } satisfies Message);
    cancelIds = new Set(isTooLong ? toCancel : toCancel.slice(MAX_IDS));
    if (cancelIds.size > 0) timer = setTimeout(flush, GAP_MS);
    db.notify(channel, text).catch(onTrouble);
  }

  return {
    send(wakeUp) {
      onHeard("here");
      hear(wakeUp);
      // An embedded database has no other process to tell.
      if (db.tier === "embedded" || closed) return;
      if (wakeUp.inMs !== undefined && wakeUp.inMs > 0) return;
      if (wakeUp.kind !== undefined) lanes.set(`${wakeUp.kind} ${wakeUp.rank}`, [wakeUp.kind, wakeUp.rank ?? null]);
      for (const id of wakeUp.ids ?? []) ids.set(id, wakeUp.rank ?? null);
      for (const id of wakeUp.cancelIds ?? []) cancelIds.add(id);
      for (const token of wakeUp.releasedTokens ?? []) releasedTokens.add(token);
      if (isPlain(wakeUp)) everything = true;
      if (timer) return;
      const wait = GAP_MS - (performance.now() - lastSentAt);
      if (wait <= 0) flush();
      else timer = setTimeout(flush, wait);
    },
    subscribe(hearer) {
      hearers.add(hearer);
      return () => void hearers.delete(hearer);
    },
    async listen() {
      if (db.tier === "embedded") return;
      listening ??= db.listen(channel, {
        onMessage(payload) {
          try {
            const message = JSON.parse(payload) as Message;
            if (message.from === from) return;
            onHeard("elsewhere");
            if (message.releasedTokens) hear({ releasedTokens: message.releasedTokens });
            if (message.cancelIds) hear({ cancelIds: message.cancelIds });
            for (const [id, rank] of message.ids ?? []) hear({ ids: [id], rank: rank ?? undefined });
            for (const [kind, rank] of message.lanes ?? []) hear({ kind, rank: rank ?? undefined });
            if (message.everything) hear({});
          } catch (error) {
            onTrouble(error);
          }
        },
        // Notifications may have been missed: look at everything once.
        onReady: () => hear({}),
        onDown: (reason) => onTrouble(new Error(`LISTEN is down (${reason}); polling goes on.`)),
      });
      await listening;
    },
    async close() {
      // What was released last must be known elsewhere now, not at the next poll.
      if (timer) {
        clearTimeout(timer);
        flush();
      }
      closed = true;
      await (await listening?.catch(() => undefined))?.close();
    },
  };
}
