// Watches a Db: for how long it has answered without interruption, and whether notifications arrive. Whoever judges others
// by their silence (lease expiry) asks this first: perhaps nobody could be heard.
import { performance } from "node:perf_hooks";
import type { Pulses } from "../shared/pulse.ts";
import { DatabaseUnavailable } from "../errors.ts";
import type { Db, Listener, ListenHandlers, Queryable, QueryOptions } from "./db.ts";
import { isConnectionTrouble, isPoolBusy } from "./retryable.ts";

export interface WatchedDb {
  db: Db;
  /** Infinity until the first trouble. */
  seenForMs(): number;
  /** False while a listener hears nothing: then polling is all there is. */
  hearsAll(): boolean;
}

export function watchHealth(db: Db, pulses: Pulses): WatchedDb {
  let lastTroubleAt = -Infinity;
  /** When the newest of the calls that were answered had been sent. */
  let heardSince = -Infinity;
  const deaf = new Set<object>();
  async function noted<T>(send: () => Promise<T>, isForeign?: (error: unknown) => boolean): Promise<T> {
    const sentAt = performance.now();
    try {
      const answer = await send();
      heardSince = Math.max(heardSince, sentAt);
      return answer;
    } catch (error) {
      // A call that takes too long while others are answered says nothing about the server.
      const isNews = isConnectionTrouble(error) && heardSince <= sentAt;
      if (isNews && !isPoolBusy(error) && !isForeign?.(error)) lastTroubleAt = performance.now();
      throw error;
    }
  }

  /** What `work` meets elsewhere is no trouble of this database: its own calls say DatabaseUnavailable. */
  async function transaction<T>(work: (tx: Queryable) => Promise<T>, options?: QueryOptions): Promise<T> {
    let foreign: unknown;
    const watched = async (tx: Queryable): Promise<T> => {
      try {
        return await work(tx);
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) foreign = error;
        throw error;
      }
    };
    return await noted(
      () => db.transaction(watched, options),
      (error) => error === foreign,
    );
  }

  async function listen(channel: string, handlers: ListenHandlers): Promise<Listener> {
    // An embedded database calls its listeners itself: there is nothing that could stop.
    if (db.tier === "embedded") return await db.listen(channel, handlers);
    const pulse = pulses.register(`listener of ${channel}`);
    const id = {};
    deaf.add(id);
    const over = (): void => {
      pulse.end();
      deaf.delete(id);
    };
    try {
      const listener = await db.listen(channel, {
        onMessage: (payload) => handlers.onMessage(payload),
        onReady() {
          deaf.delete(id);
          handlers.onReady?.();
        },
        onDown(reason) {
          deaf.add(id);
          handlers.onDown?.(reason);
        },
        onTurn: (nextInMs) => pulse.beat(nextInMs),
      });
      return {
        async close() {
          over();
          await listener.close();
        },
      };
    } catch (error) {
      over();
      throw error;
    }
  }

  return {
    seenForMs: () => performance.now() - lastTroubleAt,
    hearsAll: () => deaf.size === 0,
    db: {
      tier: db.tier,
      query: (text, values, options) => noted(() => db.query(text, values, options)),
      copyIn: db.copyIn && ((text, parts, options) => noted(() => db.copyIn!(text, parts, options))),
      transaction,
      script: (text, options) => noted(() => db.script(text, options)),
      listen,
      assertOutside: () => db.assertOutside(),
      load: () => db.load(),
      notify: (channel, payload) => noted(() => db.notify(channel, payload)),
      close: () => db.close(),
    },
  };
}
