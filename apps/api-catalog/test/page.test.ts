// The page in a real browser, with an embedder that can be made to fail.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launchChromium } from "../../../test/dashboard/chromium.mjs";
import { assertAccessible, assertFits } from "../../../test/dashboard/scene.ts";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { startEmbedder } from "../storm/embedder.mjs";
import { ADMIN, makeDocument, openScene, type Scene } from "./scene.ts";

describe("the page", () => {
  const bench = useHoldfast("server");
  const faults: string[] = [];
  let browser: Browser;
  let embedder: Awaited<ReturnType<typeof startEmbedder>>;
  let scene: Scene;

  beforeAll(async () => {
    embedder = await startEmbedder();
    scene = await openScene(bench.hf, {
      embedder: { provider: "ollama", url: embedder.url, model: "tiny" },
      batchSize: 8,
      attempts: 3,
      embedTimeout: "20s",
      leaseDuration: "1m",
      ladder: ["2500ms"],
      works: false,
    });
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await scene.stopWork();
    await embedder.close();
  });

  async function open(width: number, colorScheme: "light" | "dark"): Promise<Page> {
    const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
    });
    page.on("dialog", (dialog) => void (dialog.type() === "prompt" ? dialog.accept("books") : dialog.accept()));
    await page.goto(`${scene.url}/apps/api-catalog/`);
    for (const token of ["wrong", ADMIN]) {
      await page.fill("#token", token);
      await page.keyboard.press("Enter");
      if (token !== ADMIN) await page.waitForSelector('#sign-in .why:has-text("not one that this server takes")');
    }
    await page.waitForSelector("h1");
    return page;
  }

  test("every badge, the banner, progress, search, re-embed, rename and delete; on a desktop and a phone", async () => {
    const page = await open(1280, "light");
    const badge = (spec: string, text: string) =>
      page.waitForSelector(`[data-spec="${spec}"] .badge:text-is("${text}")`);
    const send = (name: string, document: object) =>
      page.setInputFiles("#files", {
        name: `${name}.json`,
        mimeType: "application/json",
        buffer: Buffer.from(JSON.stringify(document)),
      });

    await page.click("text=Add the sample");
    await badge("bookshop", "queued");
    await page.waitForSelector('#banner:text-is("0/1 specs indexed (0 running, 1 queued, 0 failed)")');
    await page.fill("#question", "money back");
    await page.click("#search button");
    await page.waitForSelector("text=Indexing is still going on");
    await page.waitForSelector('#found li:has-text("/invoices/{invoice}/refund")');
    await scene.work();
    await badge("bookshop", "7/7 indexed");
    await page.waitForSelector('#banner:text-is("All 1 specs indexed")');

    // Long enough to be seen, and for what is done meanwhile, on a busy machine too.
    embedder.state.behave = ({ texts }) => (texts[0]!.includes("/0008") ? { slow: 4_000 } : "ok");
    await send("things", makeDocument(24));
    await badge("things", "indexing 8/24");
    expect(await page.getAttribute('[data-spec="things"] progress', "value")).toBe("8");
    // One of two that cannot be read: the other is there, and the reason stays when the page looks again.
    const file = (name: string, text: string) => ({ name, mimeType: "text/yaml", buffer: Buffer.from(text) });
    const odd = "openapi: 3.0.0\npaths: { /odd: { get: { summary: <img src=x onerror=alert(1)> odd } } }";
    await page.setInputFiles("#files", [file("broken.yaml", "nothing: true"), file("odd.yaml", odd)]);
    await page.waitForSelector('#trouble:has-text("broken: The document says neither")');
    await page.click('[data-spec="odd"] summary');
    await page.waitForResponse((answer) => new URL(answer.url()).pathname === "/api-catalogs/main");
    embedder.state.behave = () => "ok";
    await badge("things", "24/24 indexed");
    await badge("odd", "1/1 indexed");
    expect(await page.textContent("#trouble")).toContain("broken: The document says neither");
    expect(await page.inputValue("#files")).toBe("");
    expect(await page.getAttribute('[data-spec="odd"] details', "open")).toBe("");
    await page.fill("#question", "odd");
    await page.click("#search button");
    await page.waitForSelector('#found li:has-text("<img src=x onerror=alert(1)> odd")');
    expect([await page.locator("#found img").count(), await page.textContent("#trouble")]).toEqual([0, ""]);

    embedder.state.behave = () => "fail";
    await send(
      "bad",
      makeDocument(2, (n) => `bad ${n}`),
    );
    await badge("bad", "retrying (1 try)");
    await page.waitForSelector('[data-spec="bad"] .why:has-text("answered 500: out of memory")');
    await badge("bad", "retrying (2 tries)");
    await badge("bad", "failed");
    await page.waitForSelector('#banner:text-is("3/4 specs indexed (0 running, 0 queued, 1 failed)")');
    await send("none", makeDocument(0));
    await badge("none", "empty");
    const phone = await open(320, "dark");
    await phone.waitForSelector('[data-spec="bad"]');
    for (const [each, where] of [
      [page, "desktop, light"],
      [phone, "phone, dark"],
    ] as const) {
      await assertAccessible(each, where);
      await assertFits(each, where);
    }
    embedder.state.behave = () => "ok";
    await page.click('[data-spec="bad"] >> text=Retry');
    await badge("bad", "2/2 indexed");

    await page.click('[data-spec="bookshop"] >> text=Rename');
    await badge("books", "7/7 indexed");
    await page.click('[data-spec="bad"] >> text=Delete');
    await phone.waitForSelector('[data-spec="bad"]', { state: "detached" });
    expect(faults).toEqual([]);
  }, 120_000);

  describe("somebody goes to another catalog while an answer is on its way", () => {
    let page: Page;
    beforeAll(async () => {
      embedder.state.behave = () => "ok";
      await scene.call("POST", "", { id: "left", name: "Left" });
      await scene.call("POST", "", { id: "right", name: "Right" });
      await scene.call(
        "PUT",
        "/left/specs/lefts",
        makeDocument(1, () => "lefts"),
      );
      await scene.call(
        "PUT",
        "/right/specs/rights",
        makeDocument(1, () => "rights"),
      );
    }, 60_000);
    /** Answers to what matches wait until they are let go; `asked` resolves with the first. */
    async function hold(method: string, path: RegExp) {
      let letGo = (): void => {};
      const told = new Promise<void>((resolve) => (letGo = resolve));
      let isAsked = (): void => {};
      const asked = new Promise<void>((resolve) => (isAsked = resolve));
      await page.route(
        (url) => path.test(url.pathname),
        async (route) => {
          if (route.request().method() !== method) return await route.fallback();
          const response = await route.fetch();
          isAsked();
          await told;
          await route.fulfill({ response });
        },
      );
      return { asked, letGo };
    }
    const go = async (catalog: string) => {
      await page.selectOption("#catalog", catalog);
    };
    const isAt = async (name: string, spec: string) => {
      await page.waitForSelector(`#title:text-is("${name}")`);
      await page.waitForSelector(`[data-spec="${spec}"]`);
    };
    // Nothing is to happen, and nothing says so.
    const settled = async () => await page.waitForTimeout(300);
    const specs = async (catalog: string): Promise<string[]> =>
      (await scene.call("GET", `/${catalog}`)).body.specs.map(({ name }: { name: string }) => name);

    test("the list that comes late is not drawn over the one that is looked at", async () => {
      page = await open(1280, "light");
      await go("right");
      await isAt("Right", "rights");
      const held = await hold("GET", /^\/api-catalogs\/left$/);
      await go("left");
      await held.asked;
      await go("right");
      await isAt("Right", "rights");
      const answered = page.waitForResponse((answer) => new URL(answer.url()).pathname === "/api-catalogs/left");
      held.letGo();
      await answered;
      await settled();
      expect(await page.textContent("#title")).toBe("Right");
      expect(
        await page.locator("[data-spec]").evaluateAll((lines) => lines.map((line) => line.dataset["spec"])),
      ).toEqual(["rights"]);
      await page.context().close();
    }, 60_000);

    test("until its list is there, nothing can be done to specs of the one before", async () => {
      page = await open(1280, "light");
      await go("left");
      await isAt("Left", "lefts");
      const held = await hold("GET", /^\/api-catalogs\/right$/);
      await go("right");
      await held.asked;
      expect([await page.textContent("#title"), await page.locator("[data-spec]").count()]).toEqual(["Right", 0]);
      held.letGo();
      await isAt("Right", "rights");
      await page.context().close();
    }, 60_000);

    test("what a search found there is not shown here", async () => {
      page = await open(1280, "light");
      await go("left");
      await isAt("Left", "lefts");
      const held = await hold("GET", /^\/api-catalogs\/left\/search$/);
      await page.fill("#question", "lefts");
      await page.click("#search button");
      await held.asked;
      await go("right");
      await isAt("Right", "rights");
      const answered = page.waitForResponse((answer) => answer.url().includes("/left/search"));
      held.letGo();
      await answered;
      await settled();
      expect(await page.isVisible("#found")).toBe(false);
      await page.context().close();
    }, 60_000);

    test("files go where they were sent, all of them", async () => {
      page = await open(1280, "light");
      await go("left");
      await isAt("Left", "lefts");
      const held = await hold("PUT", /^\/api-catalogs\/left\/specs\/one$/);
      const file = (name: string) => ({
        name: `${name}.json`,
        mimeType: "application/json",
        buffer: Buffer.from(JSON.stringify(makeDocument(1, () => name))),
      });
      await page.setInputFiles("#files", [file("one"), file("two")]);
      await held.asked;
      await go("right");
      await isAt("Right", "rights");
      held.letGo();
      await page.waitForSelector('#told:has-text("two: 1 operations.")');
      expect([await specs("left"), await specs("right")]).toEqual([["lefts", "one", "two"], ["rights"]]);
      await page.context().close();
      expect(faults).toEqual([]);
    }, 60_000);
  });
});
