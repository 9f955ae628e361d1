// What pages of apps share, as docs/apps.md shows it: the page there, in a real browser, with the dashboard's token.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineApp, prepareApps } from "#src/index.js";
import { serve, type HttpServer } from "#src/http/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { assertAccessible, assertFits, launch, openPage } from "./scene.ts";

const TOKEN = "a-token-for-the-tests-of-pages";

describe("a page of an app", () => {
  const bench = useHoldfast("embedded");
  const folder = mkdtempSync(join(tmpdir(), "holdfast-app-page-"));
  let guests = [{ name: "Ada" }, { name: "<b>Grace</b>" }];
  let server: HttpServer;
  let browser: Browser;

  beforeAll(async () => {
    const text = readFileSync(new URL("../../docs/apps.md", import.meta.url), "utf8");
    const block = (language: string): string => new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "ms").exec(text)![1]!;
    writeFileSync(join(folder, "index.html"), block("html"));
    writeFileSync(join(folder, "page.js"), block("js"));
    const app = defineApp({
      name: "guests",
      routes: [{ method: "GET", path: "/guests", auth: "token", handle: () => guests }],
      page: { title: "Guests", folder },
    });
    const kinds = await prepareApps(bench.hf, [app]);
    server = await serve({ hf: bench.hf, kinds, apps: [app], port: 0, token: TOKEN });
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    await server.close();
    rmSync(folder, { recursive: true });
  });

  for (const [size, theme] of [
    ["desktop", "light"],
    ["phone", "dark"],
  ] as const) {
    test(`asks for a token until it is right, shows texts as texts, and looks again: ${size}, ${theme}`, async () => {
      guests = [{ name: "Ada" }, { name: "<b>Grace</b>" }];
      const { page, faults } = await openPage(browser, size, theme);
      await page.goto(`${server.url}/apps/guests/`);
      await page.waitForSelector("#sign-in:not([hidden])");
      expect(await page.evaluate("document.activeElement.id")).toBe("token");
      await page.fill("#token", "wrong");
      await page.keyboard.press("Enter");
      await page.waitForSelector('#sign-in:not([hidden]) .why:has-text("not one that this server takes")');
      await page.fill("#token", ` ${TOKEN} `);
      await page.keyboard.press("Enter");
      await page.waitForSelector('#guests li:text-is("<b>Grace</b>")');
      expect(await page.isVisible("#sign-in")).toBe(false);
      await assertAccessible(page, `${size}, ${theme}`);
      await assertFits(page, `${size}, ${theme}`);
      guests = [...guests, { name: "Edsger" }];
      await page.waitForSelector('#guests li:text-is("Edsger")');
      expect(faults).toEqual([]);
      await page.close();
    });
  }

  test("who is signed in at the dashboard is not asked again", async () => {
    const { page } = await openPage(browser, "desktop", "dark");
    await page.goto(server.url);
    await page.fill('input[type="password"]', TOKEN);
    await page.keyboard.press("Enter");
    await page.waitForSelector("main h1");
    await page.goto(`${server.url}/apps/guests/`);
    await page.waitForSelector('#guests li:text-is("Ada")');
    expect(await page.isVisible("#sign-in")).toBe(false);
    await page.close();
  });

  test("both files are there without a token, and without the dashboard", async () => {
    const bare = await serve({ hf: bench.hf, kinds: [], port: 0, token: TOKEN, dashboard: false });
    try {
      for (const [file, type] of [
        ["page.css", "text/css; charset=utf-8"],
        ["page.js", "text/javascript; charset=utf-8"],
      ]) {
        const answer = await fetch(`${bare.url}/apps/${file}`);
        expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
      }
    } finally {
      await bare.close();
    }
  });
});
