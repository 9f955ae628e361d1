// The page in a real browser, with two browser contexts of one user: a desktop and a phone. The links are those of the sample
// site, as a newcomer sees them.
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prepareApps, startApps, type Worker } from "holdfast";
import { serve } from "holdfast/http";
import { launchChromium } from "../../../test/dashboard/chromium.mjs";
import { assertAccessible, assertFits } from "../../../test/dashboard/scene.ts";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { articleImport, SampleSite } from "../src/index.ts";

/** What is readable in the stored rows, and whether the key can be taken out. */
const LOOK_INSIDE = `(async () => {
  const done = (request) => new Promise((resolve, reject) => { request.onsuccess = () => resolve(request.result); request.onerror = reject; });
  const db = await done(indexedDB.open("article-import ada"));
  const rows = await done(db.transaction("articles").objectStore("articles").getAll());
  const key = await done(db.transaction("keys").objectStore("keys").get("main"));
  db.close();
  const text = (bytes) => new TextDecoder("latin1").decode(bytes);
  const plain = rows.filter((row) => /127|http|the |green|Gazette/.test(text(row.summary.data) + text(row.body.data) + row.urlHash));
  const exported = await crypto.subtle.exportKey("raw", key).then(() => true, () => false);
  return { plain: plain.map((row) => row.id), exported };
})()`;
const LOCKS = `navigator.locks.query().then(({ held, pending }) => [held.length, pending.length])`;

describe("the page", () => {
  const bench = useHoldfast("server");
  const stops: (() => unknown)[] = [];
  const faults: string[] = [];
  let browser: Browser;
  let site: SampleSite;
  let worker: Worker;
  let url = "";
  let token = "";

  async function open(context: BrowserContext): Promise<Page> {
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
    });
    page.on("dialog", (dialog) => void dialog.accept());
    await page.goto(url);
    await page.fill("#token", token);
    await page.keyboard.press("Enter");
    await page.waitForSelector("main h1");
    return page;
  }

  beforeAll(async () => {
    site = await SampleSite.start({ port: 0, slowMs: 300 });
    const app = articleImport({ hostDelay: "0s", perHost: 10, ladder: ["1s", "1s"], allowOrigins: [site.url] }, {});
    const kinds = await prepareApps(bench.hf, [app]);
    const server = await serve({ hf: bench.hf, kinds, apps: [app], port: 0, token: "an-admin-of-the-importer-tests" });
    const stopApps = await startApps(bench.hf, [app], { url: server.url });
    worker = await bench.hf.work(kinds);
    // One user: a token that is bound to an owner.
    ({ token } = await bench.hf.tokens.create({ name: "ada", role: "operator", owner: "ada" }));
    browser = await launchChromium();
    stops.push(
      () => browser.close(),
      () => worker.stop(),
      stopApps,
      () => server.close(),
      () => site.close(),
    );
    url = `${server.url}/apps/article-import/`;
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });

  const stored = (page: Page): Promise<number> =>
    page.evaluate(`new Promise((resolve) => {
      const opening = indexedDB.open("article-import ada");
      opening.onsuccess = () => {
        const counting = opening.result.transaction("articles").objectStore("articles").count();
        counting.onsuccess = () => { resolve(counting.result); opening.result.close(); };
      };
    })`);

  test("a desktop imports, a phone sees it go on; each article is on one of them; both read, retry and delete", async () => {
    const desktop = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      colorScheme: "light",
      locale: "en-GB",
    });
    const phone = await browser.newContext({
      viewport: { width: 320, height: 640 },
      colorScheme: "dark",
      locale: "de-DE",
    });
    const first = await open(desktop);
    await first.click("#nav >> text=New import");
    await first.fill("#links", [...site.links(), "nonsense ftp://files.example/x"].join("\n"));
    await first.waitForSelector("text=25 links, 1 duplicate, 2 invalid, 0 saved already");
    await assertAccessible(first, "new, desktop, light");
    await first.click("summary");
    await first.waitForSelector("text=neither http nor https");
    await first.fill("#name", "Monday <b>reading</b>");
    await first.click("text=Import 25 links");
    await first.waitForSelector('h1:has-text("Monday <b>reading</b>")');

    const second = await open(phone);
    await second.click('a:has-text("Monday")');
    // On a busy machine 25 pages and their retries take a while.
    await second.waitForSelector('#import-state:has-text("fertig")', { timeout: 60_000 });
    await first.waitForSelector('#import-state:has-text("done")');
    await first.waitForSelector('#told:has-text("finished. 17 saved, 7 failed")');
    const counter = (page: Page, state: string): Promise<string | null> => page.textContent(`[data-count="${state}"]`);
    for (const page of [first, second]) {
      await expect.poll(() => counter(page, "error")).toBe("7");
      expect(await counter(page, "consent-wall")).toBe("1");
      expect(Number(await counter(page, "saved"))).toBe(16);
      expect(await counter(page, "duplicate")).toBe("1");
    }
    // Two devices, one article each.
    expect((await stored(first)) + (await stored(second))).toBe(17);
    // Encrypted, with a key that the page itself cannot read.
    const holder = (await stored(first)) > 0 ? first : second;
    expect(await holder.evaluate(LOOK_INSIDE)).toEqual({ plain: [], exported: false });
    // One tab at a time takes articles.
    const tab = await open(desktop);
    await expect.poll(() => tab.evaluate(LOCKS)).toEqual([1, 1]);
    await tab.close();
    // The reason, in the language of each.
    await first.waitForSelector('.why:has-text("has no such page (404)")');
    await second.waitForSelector('.why:has-text("Diese Seite gibt es nicht (404)")');
    for (const [page, where] of [
      [first, "import, desktop, light"],
      [second, "import, phone, dark"],
    ] as const) {
      await assertAccessible(page, where);
      await assertFits(page, where);
    }

    // Whoever has it reads it.
    const reading = (await stored(first)) > 0 ? first : second;
    await reading.click('.items a[href^="#/read/"] >> nth=0');
    await reading.waitForSelector(".reader .text p");
    await assertAccessible(reading, "reader");
    await assertFits(reading, "reader");
    await reading.goBack();

    // Retrying one, then all that failed.
    const before = site.asked.get("/missing");
    await first.click('.items li:has-text("/missing") >> text=Retry');
    await expect.poll(() => site.asked.get("/missing")).toBe(before! + 1);
    await first.waitForSelector('#import-state:has-text("done")');
    await first.click("text=/Retry 7 failed/");
    await expect.poll(() => site.asked.get("/missing")).toBe(before! + 2);
    await first.waitForSelector('#import-state:has-text("done")');

    await second.goto(`${url}#/new`);
    await second.fill("#links", [...site.links(), "nonsense ftp://files.example/x"].join("\n"));
    await second.waitForSelector("text=17 schon gespeichert");
    await assertAccessible(second, "new, phone, dark");
    await assertFits(second, "new, phone");
    await second.goto(`${url}#/articles`);
    await second.waitForSelector("h1");
    await assertFits(second, "articles, phone");
    await second.goto(`${url}#/list/errors`);
    await second.waitForSelector('.cards a:has-text("Monday")');
    await assertAccessible(second, "list, phone, dark");
    await assertFits(second, "list, phone");
    await first.click('[data-id="delete"]');
    await first.waitForSelector("text=Nothing here yet.");
    await second.waitForSelector("text=Hier ist noch nichts.");
    await first.goto(`${url}#/articles`);
    await expect.poll(() => first.locator(".cards li").count()).toBe(await stored(first));
    await assertAccessible(first, "articles");
    expect(faults).toEqual([]);
    await desktop.close();
    await phone.close();
  }, 180_000);
});
