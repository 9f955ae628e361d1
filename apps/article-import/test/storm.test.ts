// The storm in small: 60 links. `npm run storm -w apps/article-import` is the full one.
import { expect, test } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { SampleSite } from "../src/index.ts";
import { storm } from "../storm/storm.mjs";

test("60 links while the server is killed twice and the browser is closed in between: all of them end, once, and are counted", async () => {
  const database = await createDatabase();
  const site = await SampleSite.start({ port: 0 });
  try {
    const links = Number(process.env["STORM_LINKS"] ?? 60);
    const result = await storm({ database: database.url, siteUrl: site.url, links });
    expect(result.kills).toBe(2);
    expect(result.kept).toMatchObject({ articles: result.counts.saved + result.counts["consent-wall"], unsettled: 0 });
    // Otherwise the browser took nothing before it was closed, or everything.
    expect(result.takenBefore).toBeGreaterThan(0);
    expect(result.takenBefore).toBeLessThan(result.kept.articles);
  } finally {
    await site.close();
    await database.drop();
  }
}, 120_000);
