// One link: is it there already, is it this host's turn, does the site want it, fetch, read, hand back.
import type { Batch, Holdfast, ItemContext, ItemEnd } from "holdfast";
import { isConsentWall } from "./extract/consent.ts";
import type { Extractor, ReadArticle } from "./extract/extractor.ts";
import type { FetchPage } from "./fetching/fetch-page.ts";
import type { Politeness } from "./fetching/politeness.ts";
import type { Robots } from "./fetching/robots.ts";
import type { Library } from "./library.ts";
import { canonicalise } from "./links/canonical.ts";
import type { Tally } from "./tally.ts";
import { LaterProblem, PageProblem } from "./problems.ts";

export interface Link {
  url: string;
  title?: string;
  /** Wanted also if the owner has it: from a device that is gone, say. */
  again?: boolean;
}

export type Outcome = "saved" | "duplicate" | "consent-wall";

type Facts = "title" | "byline" | "siteName" | "excerpt" | "publishedAt" | "language" | "words" | "html";

/** What a client takes: all that is known of the article, as JSON. */
export interface Article extends Pick<ReadArticle, Facts> {
  /** What was asked for. */
  asked: string;
  /** Where it was found. */
  url: string;
  /** The page shows its consent dialogue. */
  warning: "consent-wall" | null;
}

export interface ImportTools {
  hf: Holdfast;
  library: Library;
  politeness: Politeness;
  robots: Robots | undefined;
  fetchPage: FetchPage;
  extractor: Extractor;
  tally: Tally;
}

const LEAST_WORDS = 10;

export function makeImportOne({ hf, library, politeness, robots, fetchPage, extractor, tally }: ImportTools) {
  return async function importOne(item: ItemContext<Link, Outcome>): Promise<ItemEnd<Outcome>> {
    const { signal, batchId, seq } = item;
    const { url, again = false } = item.payload;
    const { owner, createdAt } = await ownerOf(hf, batchId);
    const place = { batchId, seq, ...(again && { since: createdAt }) };
    const isThere = async (address: string): Promise<boolean> =>
      (await library.known(owner, [address], place)).size > 0;
    const ask = async (address: string, within: AbortSignal, from?: string): Promise<void> => {
      const pauseMs = await robots?.check(address, within, from);
      if (pauseMs !== undefined) await politeness.holdOff(new URL(address).host, pauseMs);
    };
    if (await isThere(url)) return "duplicate";
    const { host } = new URL(url);
    const leave = await politeness.enter(host, signal);
    const began = performance.now();
    try {
      await ask(url, signal);
      const page = await fetchPage(url, signal, { beforeRedirect: (next, within) => ask(next, within, url) });
      const found = canonicalise(page.url);
      const foundAt = "url" in found ? found.url : url;
      if (foundAt !== url && (await isThere(foundAt))) return "duplicate";
      const { text, html, words, found: isArticle, ...facts } = await extractor.read(page, signal);
      const isWall = isConsentWall({ text, words });
      if (!isWall && (!isArticle || words < LEAST_WORDS)) {
        throw new PageProblem("no-article", `${host} has a page there, and no article on it.`);
      }
      const { title, byline, siteName, excerpt, publishedAt, language } = facts;
      const article: Article = {
        asked: url,
        url: foundAt,
        warning: isWall ? "consent-wall" : null,
        title,
        byline,
        siteName,
        excerpt,
        publishedAt,
        language,
        words,
        html,
      };
      const handed = await item.handBack(article, { name: "article.json", type: "application/json" });
      tally.item(isWall ? "consent_wall" : "extracted");
      return handed;
    } catch (error) {
      if (error instanceof LaterProblem) await politeness.holdOff(host, error.delayMs);
      throw error;
    } finally {
      tally.took((performance.now() - began) / 1_000);
      await leave().catch(() => undefined);
    }
  };
}

/** A batch never changes hands. */
const owners = new Map<string, { owner: string; createdAt: Date }>();
async function ownerOf(hf: Holdfast, batchId: string): Promise<{ owner: string; createdAt: Date }> {
  const known = owners.get(batchId);
  if (known !== undefined) return known;
  const batch: Batch | undefined = await hf.batches.get(batchId);
  if (!batch || batch.owner === null) throw new PageProblem("unreadable", "This import belongs to nobody.");
  if (owners.size > 1_000) owners.clear();
  const { owner, createdAt } = batch;
  owners.set(batchId, { owner, createdAt });
  return { owner, createdAt };
}
