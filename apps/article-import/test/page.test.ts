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
  const isPlain = ({ summary, body, urlHash }) =>
    /127\\.0\\.0\\.1|http|the |green|Gazette/.test(text(summary.data) + text(body.data)) || !/^[0-9a-f]{64}$/.test(urlHash);
  const plain = rows.filter(isPlain);
  const exported = await crypto.subtle.exportKey("raw", key).then(() => true, () => false);
  return { plain: plain.map((row) => row.id), exported };
})()`;
/** To a browser, a host on another machine. */
const ELSEWHERE = "importer.example";
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

  async function open(context: BrowserContext, shown = token, at = url): Promise<Page> {
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
    });
    page.on("dialog", (dialog) => void dialog.accept());
    await page.goto(at);
    await page.fill("#token", shown);
    await page.keyboard.press("Enter");
    await page.waitForSelector("main h1");
    return page;
  }

  beforeAll(async () => {
    site = await SampleSite.start({ port: 0, slowMs: 300 });
    const app = articleImport({ hostDelay: "0s", perHost: 10, ladder: ["1s", "1s"], allowOrigins: [site.url] }, {});
    const kinds = await prepareApps(bench.hf, [app]);
    const server = await serve({
      hf: bench.hf,
      kinds,
      apps: [app],
      port: 0,
      token: "an-admin-of-the-importer-tests",
      allowedHosts: [ELSEWHERE],
    });
    const stopApps = await startApps(bench.hf, [app], { url: server.url });
    worker = await bench.hf.work(kinds);
    // One user: a token that is bound to an owner.
    ({ token } = await bench.hf.tokens.create({ name: "ada", role: "operator", owner: "ada" }));
    browser = await launchChromium([`--host-resolver-rules=MAP ${ELSEWHERE} 127.0.0.1`]);
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

  const stored = (page: Page, owner = "ada"): Promise<number> =>
    page.evaluate(`new Promise((resolve) => {
      const opening = indexedDB.open("article-import ${owner}");
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
    // An address that means nothing is the list of imports.
    for (const nowhere of ["#/%", "#/constructor"]) {
      await first.goto(`${url}#/articles`);
      await first.waitForSelector('#nav a[aria-current][href="#/articles"]');
      await first.goto(url + nowhere);
      await first.waitForSelector("text=Nothing here yet.");
    }
    expect(faults).toEqual([]);
    await desktop.close();
    await phone.close();
  }, 180_000);

  /** Somebody else, with a token and the routes. */
  async function meet(owner: string) {
    const { token: own } = await bench.hf.tokens.create({ name: owner, role: "operator", owner });
    // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not used
    const call = async (method: string, path: string, body?: unknown): Promise<any> => {
      const answer = await fetch(new URL(`/article-import${path}`, url), {
        method,
        headers: { authorization: `Bearer ${own}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return await answer.json();
    };
    const importOf = async (...paths: string[]): Promise<string> => {
      const { id } = await call("POST", "/imports", { text: paths.map((path) => site.url + path).join("\n") });
      return id as string;
    };
    return { own, call, importOf };
  }

  test("on plain http from another machine an import can be started, and what the browser cannot do there stays told", async () => {
    const { own, importOf } = await meet("bea");
    const context = await browser.newContext({ locale: "en-GB" });
    const page = await open(context, own, url.replace("127.0.0.1", ELSEWHERE));
    expect(await page.evaluate("isSecureContext")).toBe(false);
    const warning = page.locator('#trouble:has-text("This browser cannot encrypt here.")');
    await warning.waitFor();
    await page.click("#nav >> text=New import");
    await page.fill("#links", `${site.url}/many/31`);
    await page.click("text=Import 1 link");
    await page.waitForSelector('[data-count="handed-over"]:text-is("1")');
    await warning.waitFor();
    // The page looks again by itself.
    await page.click("#nav >> text=Imports");
    await page.waitForSelector(".cards li");
    await importOf("/many/32");
    await expect.poll(() => page.locator(".cards > li").count()).toBe(2);
    await warning.waitFor();
    await page.selectOption("#language", "de");
    await page.waitForSelector('#trouble:has-text("Dieser Browser kann hier nicht verschlüsseln.")');
    expect(faults).toEqual([]);
    await context.close();
  }, 60_000);

  test("an answer that comes late draws neither over a newer one nor over another view", async () => {
    const { own, call, importOf } = await meet("cyd");
    const id = await importOf("/never");
    await call("POST", `/imports/${id}/pause`, {});
    const context = await browser.newContext({ locale: "en-GB" });
    const page = await open(context, own, `${url}#/imports/${id}`);
    await page.waitForSelector('#import-state:has-text("paused")');
    const twoFrames = () =>
      page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    /** The next look at the import is answered at once, and its answer comes when it is let go. */
    async function holdNext(look: () => Promise<unknown>): Promise<() => Promise<void>> {
      let letGo = (): void => {};
      const held = new Promise<void>((resolve) => (letGo = resolve));
      let isHeld = (): void => {};
      const holding = new Promise<void>((resolve) => (isHeld = resolve));
      await page.route(
        `**/article-import/imports/${id}`,
        async (route) => {
          const response = await route.fetch();
          isHeld();
          await held;
          await route.fulfill({ response });
        },
        { times: 1 },
      );
      await look();
      await holding;
      return async () => {
        const answered = page.waitForResponse(`**/article-import/imports/${id}`);
        letGo();
        await (await answered).finished();
      };
    }

    const letGo = await holdNext(() => page.evaluate('document.dispatchEvent(new Event("visibilitychange"))'));
    await call("POST", `/imports/${id}/cancel`, {});
    await page.waitForSelector('#import-state:has-text("cancelled")');
    await page.evaluate(`globalThis.seen = []; new MutationObserver(() => {
      seen.push(document.getElementById("import-state")?.textContent);
    }).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true });`);
    const items = page.waitForResponse("**/items?*");
    await letGo();
    await (await items).finished();
    await twoFrames();
    expect(await page.evaluate("seen.filter((text) => text !== 'cancelled')")).toEqual([]);

    await call("DELETE", `/imports/${id}`);
    await page.waitForSelector("text=There is no such import.");
    await page.click("#nav >> text=Imports");
    const gone = await holdNext(() => page.evaluate(`location.hash = "#/imports/${id}"`));
    await page.click("#nav >> text=New import");
    await page.fill("#links", "https://a.example/kept");
    await gone();
    await twoFrames();
    expect(await page.inputValue("#links")).toBe("https://a.example/kept");
    expect(faults).toEqual([]);
    await context.close();
  }, 60_000);

  test("an article that cannot be settled does not keep the others waiting", async () => {
    const { own, call, importOf } = await meet("dan");
    const countsOf = async (id: string) => (await call("GET", `/imports/${id}`)).counts;
    const context = await browser.newContext({ locale: "en-GB" });
    const stuck = await importOf("/many/41");
    const ack = `**/article-import/imports/${stuck}/items/1/ack`;
    await context.route(ack, (route) => route.fulfill({ status: 500, json: {} }));
    const page = await open(context, own);
    await expect.poll(() => stored(page, "dan"), { timeout: 20_000 }).toBe(1);
    // The next start finds it stored, and not acked.
    await page.reload();
    const other = await importOf("/many/42");
    await expect.poll(() => countsOf(other), { timeout: 20_000 }).toMatchObject({ saved: 1 });
    expect(await countsOf(stuck)).toMatchObject({ "handed-over": 1 });
    await context.unroute(ack);
    await expect.poll(() => countsOf(stuck), { timeout: 20_000 }).toMatchObject({ saved: 1 });
    expect(await stored(page, "dan")).toBe(2);
    await context.close();
  }, 90_000);
});
