// So many at a time and so long between two, for each host, over all processes: the tables are the only ones that know.
// Whoever would have to wait long is sent away (Snooze: no attempt is used, and its slot is somebody else's meanwhile).
import { setTimeout as sleep } from "node:timers/promises";
import { type Holdfast, Snooze } from "holdfast";

export interface PolitenessOptions {
  /** No visit takes longer: a place that was taken before that is free, because who had it is gone. */
  longestVisitMs: number;
  /** Pages of one host at a time. */
  perHost: number;
  /** Between the starts of two. */
  delayMs: number;
}

export interface Politeness {
  /** Resolves when it is this one's turn; what it returns says that the visit is over. */
  enter(host: string, signal: AbortSignal): Promise<() => Promise<void>>;
  /** The host asked everybody to come back later. */
  holdOff(host: string, forMs: number): Promise<void>;
}

/** Whose it is shows by when it ends: nobody else can take it before. */
interface Place {
  place: number;
  until: string;
}

/** Whoever is told to end ends a little later. */
const GRACE_MS = 30_000;
/** Who has to wait longer than this waits outside. */
const PATIENCE_MS = 2_000;
const LOOK_EVERY_MS = 100;
const MOST_SNOOZE_MS = 60_000;

export function makePoliteness(hf: Holdfast, { perHost, delayMs, longestVisitMs }: PolitenessOptions): Politeness {
  async function takePlace(host: string): Promise<Place | undefined> {
    const { rows } = await hf.sql.query<Place>(
      `insert into :schema.articles_visits as v (host, place, until_at)
       select $1, p.place, :schema.clock() + $3 * interval '1 millisecond' from (
         select s.place from generate_series(1, $2::integer) as s (place)
         where not exists (select 1 from :schema.articles_visits o
           where o.host = $1 and o.place = s.place and o.until_at > :schema.clock())
         order by random() limit 1) p
       on conflict (host, place) do update set until_at = excluded.until_at where v.until_at <= :schema.clock()
       returning v.place, v.until_at::text as until`,
      [host, perHost, longestVisitMs + GRACE_MS],
    );
    return rows[0];
  }

  /** In how many milliseconds its turn is; undefined: too far away to wait for. */
  async function takeTurn(host: string): Promise<number | undefined> {
    const { rows } = await hf.sql.query<{ wait: string }>(
      `insert into :schema.articles_hosts as h (host, next_at) values ($1, :schema.clock() + $2 * interval '1 millisecond')
       on conflict (host) do update set next_at = greatest(h.next_at, :schema.clock()) + $2 * interval '1 millisecond'
         where h.next_at <= :schema.clock() + $3 * interval '1 millisecond'
       returning extract(epoch from next_at - :schema.clock()) * 1000 - $2 as wait`,
      [host, delayMs, PATIENCE_MS],
    );
    return rows[0] === undefined ? undefined : Math.max(0, Number(rows[0].wait));
  }

  async function untilTurn(host: string): Promise<number> {
    const { rows } = await hf.sql.query<{ wait: string }>(
      "select extract(epoch from next_at - :schema.clock()) * 1000 as wait from :schema.articles_hosts where host = $1",
      [host],
    );
    return Math.max(delayMs, Number(rows[0]?.wait ?? 0));
  }

  /** Only its own: one that stayed too long may find somebody else in its place. */
  const leave = async (host: string, { place, until }: Place): Promise<void> => {
    await hf.sql.query(
      `update :schema.articles_visits set until_at = :schema.clock()
       where host = $1 and place = $2 and until_at = $3::text::timestamptz`,
      [host, place, until],
    );
  };

  return {
    async enter(host, signal) {
      let place = await takePlace(host);
      for (const until = performance.now() + PATIENCE_MS; place === undefined; place = await takePlace(host)) {
        if (performance.now() > until) throw away(Math.max(1_000, delayMs), host);
        await sleep(LOOK_EVERY_MS, undefined, { signal });
      }
      try {
        const wait = await takeTurn(host);
        if (wait === undefined) throw away(await untilTurn(host), host);
        if (wait > 0) await sleep(wait, undefined, { signal });
      } catch (error) {
        await leave(host, place);
        throw error;
      }
      return () => leave(host, place);
    },
    async holdOff(host, forMs) {
      await hf.sql.query(
        `insert into :schema.articles_hosts as h (host, next_at) values ($1, :schema.clock() + $2 * interval '1 millisecond')
         on conflict (host) do update set next_at = greatest(h.next_at, excluded.next_at)`,
        [host, forMs],
      );
    },
  };
}

/** Not all at the same moment. */
function away(ms: number, host: string): Snooze {
  const spread = Math.round(Math.min(ms, MOST_SNOOZE_MS) * (1 + Math.random() / 2));
  return new Snooze(`${spread}ms`, `${host} has enough visitors from here.`);
}
