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
  let flushing: Promise<void> = Promise.resolve();

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

  return {
    add(bot, what) {
      const name = `${bot} ${what}`;
      waiting.set(name, (waiting.get(name) ?? 0) + 1);
    },
    async read() {
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
    },
    start(onTrouble) {
      timer = setInterval(() => {
        flushing = flushing.then(flush).catch(onTrouble);
      }, FLUSH_EVERY_MS);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      await flushing;
      await flush();
    },
  };
}
