// How many updates came to what. Counted in memory and added to the table once a second and at the end: the webhook does
// not wait for it, and a process that is killed loses a second of counting, never an update.
import type { Holdfast } from "holdfast";

export const COUNTED = [
  "accepted",
  "duplicate",
  "conflict",
  "dropped",
  "refused",
  "handled",
  "failed",
  "unavailable",
  "unstorable",
] as const;
export type Counted = (typeof COUNTED)[number];

const FLUSH_EVERY_MS = 1_000;
/** At the end: a process that stops does not wait for a database that is away. */
const STOP_MS = 3_000;

export interface Counts {
  add(bot: string, what: Counted): void;
  /** By bot, with what is not written yet. */
  read(): Promise<Record<string, Partial<Record<Counted, number>>>>;
  start(onTrouble: (error: unknown) => void): void;
  stop(): Promise<void>;
}

export function makeCounts(hf: Holdfast): Counts {
  let waiting = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let isFlushing = false;
  let last: Promise<unknown> = Promise.resolve();

  /** One after the other: what is being written is neither in the table nor waiting, or in both. */
  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return await turn;
  }

  async function flush(): Promise<void> {
    if (waiting.size === 0) return;
    const taken = waiting;
    waiting = new Map();
    // In one order everywhere, so that two processes do not wait for each other.
    const rows = [...taken].map(([name, total]) => ({ name, total })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    try {
      await hf.sql.query(
        `insert into :schema.telegram_counts as c (bot, what, total)
         select split_part(r.name, ' ', 1), split_part(r.name, ' ', 2), r.total
         from jsonb_to_recordset($1::text::jsonb) as r(name text, total bigint) order by 1, 2
         on conflict (bot, what) do update set total = c.total + excluded.total`,
        [JSON.stringify(rows)],
      );
    } catch (error) {
      for (const [name, total] of taken) waiting.set(name, (waiting.get(name) ?? 0) + total);
      throw error;
    }
  }

  async function readAll(): Promise<Record<string, Partial<Record<Counted, number>>>> {
    const { rows } = await hf.sql.query<{ bot: string; what: Counted; total: string }>(
      "select bot, what, total::text as total from :schema.telegram_counts limit 10000",
    );
    const counts: Record<string, Partial<Record<Counted, number>>> = {};
    const add = (bot: string, what: Counted, total: number): void => {
      const of = (counts[bot] ??= {});
      of[what] = (of[what] ?? 0) + total;
    };
    for (const { bot, what, total } of rows) add(bot, what, Number(total));
    for (const [name, total] of waiting) {
      const [bot = "", what] = name.split(" ");
      add(bot, what as Counted, total);
    }
    return counts;
  }

  return {
    add(bot, what) {
      const name = `${bot} ${what}`;
      waiting.set(name, (waiting.get(name) ?? 0) + 1);
    },
    read: () => inTurn(readAll),
    start(onTrouble) {
      timer = setInterval(() => {
        // One that takes long is not joined by one more every second.
        if (isFlushing) return;
        isFlushing = true;
        void inTurn(flush)
          .catch(onTrouble)
          .finally(() => (isFlushing = false));
      }, FLUSH_EVERY_MS);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      let late: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => (late = setTimeout(resolve, STOP_MS)));
      await Promise.race([inTurn(flush), limit]).finally(() => clearTimeout(late));
    },
  };
}
