// The page in a real Chromium, with the sample workspace of `holdfast dev`: a newcomer drops a file, sees it wait, starts the
// workspace, sees it received, sees one expire and one that is stuck. Desktop and phone, light and dark, by axe.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assertAccessible, assertFits, launch, openPage } from "../../../test/dashboard/scene.ts";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { ADMIN, openScene, type Scene } from "./scene.ts";

/** A folder for pictures, for whoever changes how something looks: PICTURES=/tmp/pictures npx vitest run … */
const pictures = process.env["PICTURES"];

describe("the page", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  let browser: Browser;
  beforeAll(async () => {
    [scene, browser] = await Promise.all([openScene(bench.hf, { offlineAfter: "1m" }, "dev"), launch()]);
  });
  afterAll(() => browser.close());

  async function look(page: Page, name: string): Promise<void> {
    if (pictures === undefined) return;
    await mkdir(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  }

  async function signIn(page: Page): Promise<void> {
    await page.goto(`${scene.url}/apps/chat-uploads/`);
    await page.waitForSelector("#sign-in:not([hidden])");
    await page.fill("#token", ADMIN);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#main:not([hidden])");
  }

  /** As a person does it: over the page, and let go. */
  async function dropFiles(page: Page, files: Record<string, string>): Promise<void> {
    await page.evaluate(`{
      const data = new DataTransfer();
      for (const [name, text] of Object.entries(${JSON.stringify(files)})) data.items.add(new File([text], name));
      const drag = (kind) => document.querySelector("#transcript")
        .dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
      drag("dragenter");
      drag("dragover");
      if (document.querySelector("#drop").hidden) throw new Error("The page does not show that it takes files");
      drag("drop");
      if (!document.querySelector("#drop").hidden) throw new Error("The page still shows that it takes files");
    }`);
    for (const name of Object.keys(files)) await page.waitForSelector(`#attached li.ready:has-text("${name}")`);
  }

  const status = (page: Page, name: string) => page.locator(`.files li:has-text("${name}") .status`).last();
  const shows = (page: Page, name: string, words: RegExp) =>
    expect.poll(() => status(page, name).textContent(), { message: name }).toMatch(words);

  test("a newcomer sees the handoff, the wait, the expiry and the stuck fetch", { timeout: 90_000 }, async () => {
    const { page, faults } = await openPage(browser, "desktop", "light");
    await signIn(page);
    await expect.poll(() => page.textContent("#presence")).toBe("It has never polled.");
    await dropFiles(page, { "cat <b>.txt": "meow", "notes.txt": "some notes" });
    await look(page, "attached");
    await page.fill("#text", "<i>Two files</i>");
    await page.keyboard.press("Enter");
    await shows(page, "cat__b_.txt", /^waiting for workspace$/);
    // What is written is text, whatever it looks like.
    await page.waitForSelector('.said.person .text:has-text("<i>Two files</i>")');
    await bench.hf.clock.advance("61s");
    await shows(page, "notes.txt", /^workspace offline, kept until tomorrow \d/);
    await look(page, "offline");
    await page.click('#sample button:has-text("Start")');
    await shows(page, "cat__b_.txt", /^received \d/);
    await shows(page, "notes.txt", /^received \d/);
    await page.waitForSelector('.said.workspace:has-text("verified, at workspace:/files/")');
    await expect.poll(() => page.textContent("#presence")).toBe("It polls.");
    await look(page, "received");
    await page.click('#sample button:has-text("Stop")');
    await page.waitForSelector('#sample button[data-mood="stopped"][aria-pressed="true"]');
    await page.selectOption("#keep", "1m");
    await dropFiles(page, { "short.txt": "short" });
    await page.click("#send");
    await shows(page, "short.txt", /waiting|offline/);
    await bench.hf.clock.advance("61s");
    await shows(page, "short.txt", /^expired, never fetched$/);
    await page.selectOption("#keep", "");
    await page.click('#sample button:has-text("Poll only")');
    await dropFiles(page, { "stuck.txt": "stuck" });
    await page.click("#send");
    await shows(page, "stuck.txt", /^waiting for workspace$/);
    await bench.hf.clock.advance("61s");
    await shows(page, "stuck.txt", /^workspace polls but does not fetch it, kept until tomorrow/);
    await look(page, "stuck");
    await page.click('#sample button:has-text("Start")');
    await shows(page, "stuck.txt", /^received/);
    expect(faults).toEqual([]);
    await page.close();
  });

  test(
    "what cannot be sent says why, and the rest can; a workspace is added with the command to run",
    { timeout: 60_000 },
    async () => {
      const { page, faults } = await openPage(browser, "phone", "dark");
      await signIn(page);
      await page.setInputFiles("#files", [
        { name: "empty.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) },
        { name: "fine.txt", mimeType: "text/plain", buffer: Buffer.from("fine") },
      ]);
      await page.waitForSelector('#attached li.failed:has-text("is empty")');
      await page.waitForSelector('#attached li.ready:has-text("fine.txt")');
      await page.click('[aria-label="Remove empty.txt"]');
      await page.click("#send");
      await page.waitForSelector('.files li:has-text("fine.txt")');
      await page.fill("#name", "Ada's <laptop>");
      await page.keyboard.press("Enter");
      await page.waitForSelector('#added code:has-text("holdfast workspace pull")');
      await expect.poll(() => page.textContent("#chat-title")).toBe("Ada's <laptop>");
      const command = (await page.textContent("#added code"))!;
      const [, token = "", id = ""] = /HOLDFAST_TOKEN=(\S+) .* pull (\S+)$/.exec(command) ?? [];
      await dropFiles(page, { "for-ada.txt": "hello" });
      await page.click("#send");
      await shows(page, "for-ada.txt", /^waiting/);
      expect(await scene.pull({ id, token })).toMatchObject({ files: 1, messages: 1 });
      await shows(page, "for-ada.txt", /^received/);
      expect(faults).toEqual([]);
      await page.close();
    },
  );

  test("what is written and attached while a message is being sent stays", { timeout: 60_000 }, async () => {
    const { page, faults } = await openPage(browser, "desktop", "light");
    await signIn(page);
    await dropFiles(page, { "first.txt": "first" });
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await page.route("**/chat/messages", async (route) => {
      await held;
      await route.continue();
    });
    await page.fill("#text", "The first");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.isDisabled("#send")).toBe(true);
    await page.locator("#text").pressSequentially(" and the second");
    await dropFiles(page, { "second.txt": "second" });
    letGo();
    await shows(page, "first.txt", /waiting|offline|received/);
    await expect.poll(() => page.isDisabled("#send")).toBe(false);
    expect(await page.inputValue("#text")).toBe("and the second");
    expect(await page.locator("#attached li .name").allTextContents()).toEqual(["second.txt"]);
    await page.click("#send");
    await page.waitForSelector('.said.person .text:text-is("and the second")');
    expect(await page.locator('.said.person .text:text-is("The first")').count()).toBe(1);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("a message that is sent again after a lost answer is there once", { timeout: 60_000 }, async () => {
    const { page } = await openPage(browser, "desktop", "light");
    await signIn(page);
    let sent = 0;
    // The server has it; the browser does not hear of it, nor of anything else for a while.
    await page.route("**/chat/messages", async (route) => {
      sent += 1;
      await route.fetch();
      await route.abort();
    });
    await page.route("**/chat", (route) => route.abort());
    await dropFiles(page, { "lost.txt": "lost" });
    await page.fill("#text", "Lost on the way back");
    await page.click("#send");
    await expect.poll(() => page.textContent("#note")).not.toBe("");
    await expect.poll(() => page.isDisabled("#send")).toBe(false);
    expect(await page.inputValue("#text")).toBe("Lost on the way back");
    await page.unroute("**/chat/messages");
    await page.click("#send");
    await expect.poll(() => page.inputValue("#text")).toBe("");
    await page.unroute("**/chat");
    const said = page.locator('.said.person .text:text-is("Lost on the way back")');
    await expect.poll(() => said.count()).toBe(1);
    // Who does not press again sees, too, that it was sent.
    await page.route("**/chat/messages", async (route) => {
      sent += 1;
      await route.fetch();
      await route.abort();
    });
    await page.fill("#text", "Lost again");
    await page.click("#send");
    await page.waitForSelector('.said.person .text:text-is("Lost again")');
    await expect.poll(() => page.inputValue("#text")).toBe("");
    expect(sent).toBe(2);
    await page.close();
  });

  test("an upload shows how far it is, and can be taken back", { timeout: 60_000 }, async () => {
    const { page } = await openPage(browser, "desktop", "dark");
    await signIn(page);
    // A line that is slow enough to look at.
    const session = await page.context().newCDPSession(page);
    await session.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: 400_000,
    });
    await page.setInputFiles("#files", { name: "slow.bin", mimeType: "", buffer: Buffer.alloc(1_500_000) });
    await page.waitForSelector("#attached progress");
    const sent = () => page.evaluate("document.querySelector('#attached progress').value");
    await expect.poll(sent).toBeGreaterThan(0.1);
    expect(await page.isDisabled("#send")).toBe(true);
    await look(page, "uploading");
    await page.click('[aria-label="Remove slow.bin"]');
    await expect.poll(() => page.locator("#attached li").count()).toBe(0);
    expect(await page.isDisabled("#send")).toBe(false);
    await page.close();
  });

  for (const size of ["desktop", "phone"] as const) {
    for (const theme of ["light", "dark"] as const) {
      test(`fits and is accessible: ${size}, ${theme}`, { timeout: 60_000 }, async () => {
        const { page, faults } = await openPage(browser, size, theme);
        await page.goto(`${scene.url}/apps/chat-uploads/`);
        await page.waitForSelector("#sign-in:not([hidden])");
        await assertAccessible(page, `sign-in, ${size}, ${theme}`);
        await signIn(page);
        await page.waitForSelector(".said");
        const left =
          "{ const box = document.querySelector('#transcript'); box.scrollHeight - box.scrollTop - box.clientHeight }";
        expect(await page.evaluate(left)).toBeLessThan(2);
        await page.setInputFiles("#files", [
          {
            name: "a-file-with-quite-a-long-name-that-does-not-fit-on-a-phone.txt",
            mimeType: "",
            buffer: Buffer.from("x"),
          },
          { name: "empty.txt", mimeType: "", buffer: Buffer.alloc(0) },
        ]);
        await page.waitForSelector("#attached li.ready");
        await look(page, `chat-${size}-${theme}`);
        await assertFits(page, `${size}, ${theme}`);
        await assertAccessible(page, `chat, ${size}, ${theme}`);
        expect(faults).toEqual([]);
        await page.close();
      });
    }
  }
});
