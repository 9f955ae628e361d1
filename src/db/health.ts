// Knows for how long the database has answered without interruption, as this process saw it. Whoever judges others by
// their silence (lease expiry) asks this first: perhaps nobody could be heard.
import { performance } from "node:perf_hooks";
import type { Db } from "./db.ts";
import { isConnectionTrouble } from "./retryable.ts";

export interface WatchedDb {
  db: Db;
  /** Infinity until the first trouble. */
  seenForMs(): number;
}

export function watchHealth(db: Db): WatchedDb {
  let lastTroubleAt = -Infinity;
  const noted = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      if (isConnectionTrouble(error)) lastTroubleAt = performance.now();
      throw error;
    }
  };
  return {
    seenForMs: () => performance.now() - lastTroubleAt,
    db: {
      tier: db.tier,
      query: (text, values, options) => noted(db.query(text, values, options)),
      transaction: (work, options) => noted(db.transaction(work, options)),
      script: (text, options) => noted(db.script(text, options)),
      listen: (channel, handlers) => db.listen(channel, handlers),
      assertOutside: () => db.assertOutside(),
      notify: (channel, payload) => noted(db.notify(channel, payload)),
      close: () => db.close(),
    },
  };
}
