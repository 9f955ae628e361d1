// Hints that something arrived: calls inside the process, NOTIFY between processes, after the commit and never more often
// than every few milliseconds. Nothing rests on them: poll() looks by itself.
import { createHash } from "node:crypto";
import type { Db, Listener } from "../db/db.ts";

export interface InboxWake {
  /** To this process and the others. */
  send(recipient: string): void;
  /** Everybody here should look: after a commit of the caller's own. */
  sendAll(): void;
  /** Listening begins with the first subscriber. */
  subscribe(recipient: string, ring: () => void): () => void;
  close(): Promise<void>;
}

const GAP_MS = 20;
/** More names than fit in a message: everybody looks. */
const MOST_NAMES = 30;
const EVERYBODY = "*";

/** A name that Postgres can keep, whatever the schema is called. */
const channelOf = (schema: string): string =>
  `holdfast_inbox_${createHash("sha256").update(schema).digest("hex").slice(0, 32)}`;

export function makeInboxWake(db: Db, schema: string, onTrouble: (error: unknown) => void): InboxWake {
  const channel = channelOf(schema);
  const bells = new Map<string, Set<() => void>>();
  let waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let lastSentAt = -Infinity;
  let listening: Promise<Listener> | undefined;
  let closed = false;

  function ring(recipient: string): void {
    const sets = recipient === EVERYBODY ? [...bells.values()] : [bells.get(recipient) ?? []];
    for (const set of sets) for (const bell of set) bell();
  }

  function flush(): void {
    timer = undefined;
    if (closed) return;
    lastSentAt = performance.now();
    const names = waiting.size > MOST_NAMES ? [EVERYBODY] : [...waiting];
    waiting = new Set();
    // Names hold no comma.
    db.notify(channel, names.join(",")).catch(onTrouble);
  }

  function tell(recipient: string): void {
    ring(recipient);
    // An embedded database has no other process to tell.
    if (db.tier === "embedded" || closed) return;
    waiting.add(recipient);
    if (timer) return;
    const wait = GAP_MS - (performance.now() - lastSentAt);
    if (wait <= 0) flush();
    else timer = setTimeout(flush, wait);
  }

  function listen(): void {
    if (db.tier === "embedded" || listening) return;
    listening = db.listen(channel, {
      onMessage: (payload) => payload.split(",").forEach(ring),
      // Notifications may have been missed.
      onReady: () => ring(EVERYBODY),
      onDown: (reason) => onTrouble(new Error(`LISTEN is down (${reason}); polling goes on.`)),
    });
    // A database that refuses LISTEN (a pooler, a missing right) is no reason not to poll.
    listening.catch(onTrouble);
  }

  return {
    send: tell,
    sendAll: () => tell(EVERYBODY),
    subscribe(recipient, bell) {
      let set = bells.get(recipient);
      if (!set) bells.set(recipient, (set = new Set()));
      set.add(bell);
      listen();
      return () => {
        set.delete(bell);
        if (set.size === 0 && bells.get(recipient) === set) bells.delete(recipient);
      };
    },
    async close() {
      if (timer) {
        clearTimeout(timer);
        flush();
      }
      closed = true;
      ring(EVERYBODY);
      await (await listening?.catch(() => undefined))?.close();
    },
  };
}
