// The page in a real browser, with the sample bots: a newcomer writes, sees it handled, fail, retry, die, and retries it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prepareApps, startApps } from "holdfast";
import { serve } from "holdfast/http";
import { launchChromium } from "../../../test/dashboard/chromium.mjs";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { telegramGateway } from "../src/index.ts";
import { ADMIN } from "./scene.ts";

describe("the page", () => {
  const bench = useHoldfast("server");
  const stops: (() => unknown)[] = [];
  let browser: Awaited<ReturnType<typeof launchChromium>>;
  let url = "";
  beforeAll(async () => {
    const app = telegramGateway(undefined, {});
    const kinds = await prepareApps(bench.hf, [app]);
    const server = await serve({ hf: bench.hf, kinds, apps: [app], port: 0, token: ADMIN });
    const worker = await bench.hf.work(kinds);
    const stopApps = await startApps(bench.hf, [app], { mode: "dev", url: server.url });
    browser = await launchChromium();
    stops.push(
      () => browser.close(),
      stopApps,
      () => worker.stop(),
      () => server.close(),
    );
    url = `${server.url}/apps/telegram-gateway/`;
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });

  test("asks for the token; a message is answered; one that fails is retried, dies once, and is retried by hand", async () => {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(url);
    await page.waitForSelector("#sign-in:not([hidden])");
    await page.fill("#token", ADMIN);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#typing:not([hidden])");
    const write = async (bot: string, text: string): Promise<void> => {
      await page.click(`#bots [data-id="${bot}"]`);
      await page.fill("#text", text);
      await page.keyboard.press("Enter");
    };
    // What is written is text, whatever it looks like.
    await write("echo", "<b>hello</b>");
    await page.waitForSelector('.said.bot:has-text("<b>hello</b>")');
    await write("broken", "please fail");
    await page.waitForSelector('.said.user .badge.retrying:has-text("retrying (1 try)")');
    for (const [index, pause] of (["2s", "4s", "6s"] as const).entries()) {
      await bench.hf.clock.advance(pause);
      await page.waitForSelector(`.said.user .badge.retrying:has-text("(${index + 2} tries)")`);
    }
    await bench.hf.clock.advance("8s");
    await page.waitForSelector('.said.user .badge.dead:has-text("dead after 5 tries")');
    await page.waitForSelector('.said.bot:has-text("could not be done")');
    expect(await page.textContent(".said.user .why")).toBe("This bot always fails");
    await page.click("text=Deliver again");
    await page.waitForSelector('#note:has-text("it was known, and nothing ran")');
    await page.click(".said.user >> text=Retry");
    await page.waitForSelector(".said.user .badge.retrying");
    expect(await page.locator(".said.bot").count()).toBe(2);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(faults).toEqual([]);
  }, 60_000);
});
