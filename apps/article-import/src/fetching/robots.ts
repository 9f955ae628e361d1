// What a site asks robots for (RFC 9309): looked up once an hour for each host, kept where all processes find it. A site
// that has no robots.txt allows everything; one that cannot say (5xx, silence) allows nothing for now.
import robotsParser from "robots-parser";
import type { Holdfast } from "holdfast";
import { PageProblem, PassingProblem } from "../problems.ts";
import type { FetchPage } from "./fetch-page.ts";

export interface Robots {
  /**
   * Throws if the site does not want it. Gives the pause that the site asks for between two pages, if it asks for one.
   * `from` is the address that redirected to it.
   */
  check(url: string, signal: AbortSignal, from?: string): Promise<number | undefined>;
}

/** The package says that it has a default export; what it is, is the function. */
const parse = robotsParser as unknown as (
  url: string,
  text: string,
) => { isAllowed(url: string, agent: string): boolean | undefined; getCrawlDelay(agent: string): number | undefined };

const LONGEST_PAUSE_MS = 60_000;
const KEEP = "1 hour";
const MAX_BYTES = 512_000;

export function makeRobots(hf: Holdfast, fetchPage: FetchPage, userAgent: string): Robots {
  const name = userAgent.split("/")[0]!;

  async function read(origin: string, signal: AbortSignal, from: string | undefined): Promise<string> {
    const { rows } = await hf.sql.query<{ robots: string }>(
      "select robots from :schema.articles_hosts where host = $1 and robots_until_at > :schema.clock()",
      [`robots ${origin}`],
    );
    if (rows[0]) return rows[0].robots;
    const { status, bytes } = await fetchPage(`${origin}/robots.txt`, signal, {
      types: /./,
      maxBytes: MAX_BYTES,
      anyStatus: true,
      ...(from !== undefined && { from }),
    });
    if (status === 429 || status >= 500) {
      throw new PassingProblem("robots", `${new URL(origin).host} cannot say what robots may read (${status}).`);
    }
    // No rules: everything is allowed.
    const text = status >= 200 && status < 300 ? new TextDecoder().decode(bytes).replaceAll("\0", "") : "";
    await hf.sql.query(
      `insert into :schema.articles_hosts as h (host, next_at, robots, robots_until_at)
       values ($1, :schema.clock(), $2, :schema.clock() + interval '${KEEP}')
       on conflict (host) do update set robots = excluded.robots, robots_until_at = excluded.robots_until_at`,
      [`robots ${origin}`, text],
    );
    return text;
  }

  return {
    async check(url, signal, from) {
      const { origin, host } = new URL(url);
      const text = await read(origin, signal, from);
      const rules = parse(`${origin}/robots.txt`, text);
      if (rules.isAllowed(url, name) === false) {
        throw new PageProblem("robots", `${host} does not want robots to read this page (robots.txt).`);
      }
      const seconds = rules.getCrawlDelay(name);
      return seconds === undefined ? undefined : Math.min(seconds * 1_000, LONGEST_PAUSE_MS);
    },
  };
}
