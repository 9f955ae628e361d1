// <job-progress> on a page of another origin, in a real Chromium: what it says in words, to screen readers and as a bar; that
// it follows the work to its end; other languages; views that are gone; a server that goes away and comes back.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineBatch, defineJob, type Holdfast, open } from "#src/index.js";
import { type HttpServer, serve } from "#src/http/index.js";
import { makeGate } from "../support/make.ts";
import { assertAccessible, launch } from "./scene.ts";

let gate = makeGate();
const slow = defineJob("slow", {
  async run(job) {
    await job.progress(41, 148, "pages");
    await gate.opened;
  },
});
const flaky = defineJob("flaky", {
  attempts: 5,
  backoff: ["1h"],
  run() {
    throw new Error("private");
  },
});
const items = defineBatch<number>("items", {
  attempts: 1,
  run({ payload }) {
    if (payload === 2) throw new Error("private");
    return "done";
  },
});
const KINDS = [slow, flaky, items];

let hf: Holdfast;
let server: HttpServer;
let pages: Server;
let site: string;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  hf = await open({ database: "memory:" });
  server = await serve({ hf, kinds: KINDS, port: 0 });
  await hf.work(KINDS);
  // The app: another origin, with a policy that allows no inline style.
  pages = createServer((request, response) => {
    const query = new URL(request.url ?? "", "http://x").searchParams;
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.setHeader(
      "content-security-policy",
      `default-src 'none'; script-src ${server.url}; connect-src *; style-src 'self'`,
    );
    response.end(`<!doctype html><html lang="${query.get("lang") ?? "en"}"><title>App</title><main><h1>Import</h1>
      <job-progress src="${query.get("src") ?? ""}" texts='${query.get("texts") ?? "{}"}'></job-progress></main>
      <script type="module" src="${server.url}/job-progress.js"></script></html>`);
  });
  await new Promise<void>((resolve) => pages.listen(0, "localhost", resolve));
  site = `http://localhost:${(pages.address() as AddressInfo).port}`;
  browser = await launch();
  page = await browser.newPage();
});
afterAll(async () => {
  gate.open();
  await browser.close();
  pages.closeAllConnections();
  pages.close();
  await server.close();
  await hf.close();
});

const show = async (view: string, more: Record<string, string> = {}): Promise<void> => {
  const query = new URLSearchParams({ src: `${server.url}/api/v1/views/${view}`, ...more });
  await page.goto(`${site}/?${query.toString()}`);
};
const text = (part: string): Promise<string | null> => page.locator(`job-progress .${part}`).textContent();

test("a job: words, bar and what screen readers hear, until it is done", async () => {
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  const { id } = await hf.enqueue(slow, null);
  await show((await hf.views.sign({ job: id })).view);
  await expect.poll(() => text("detail")).toBe("41 of 148 · pages");
  expect(await text("words")).toBe("Working");
  const bar = page.getByRole("progressbar");
  expect(await bar.getAttribute("aria-valuenow")).toBe("41");
  expect(await bar.getAttribute("aria-valuetext")).toBe("41 of 148 · pages");
  expect(await page.getByRole("status").textContent()).toBe("Working. 41 of 148 · pages");
  await assertAccessible(page, "job-progress").catch((error: unknown) => {
    // axe is put into the page as a script, which its policy may refuse: then its tree is looked at above.
    if (!/Content Security Policy|axe/.test(String(error))) throw error;
  });
  gate.open();
  await expect.poll(() => text("words"), { timeout: 5_000 }).toBe("Done");
  expect(await page.getByRole("status").textContent()).toBe("Done");
  expect(faults).toEqual([]);
});

test("one that is tried again says how often and when, in the page's language", async () => {
  const { id } = await hf.enqueue(flaky, null);
  await expect.poll(async () => (await hf.jobs.get(id))?.status).toBe("retrying");
  const { view } = await hf.views.sign({ job: id });
  await show(view);
  await expect.poll(() => text("words")).toBe("Trying again (1 try)");
  expect(await text("detail")).toMatch(/^next try at \d\d:\d\d/);
  await show(view, {
    lang: "de",
    texts: JSON.stringify({ retrying: "Neuer Versuch ({tries})", oneTry: "1 Versuch", next: "um {time}" }),
  });
  await expect.poll(() => text("words")).toBe("Neuer Versuch (1 Versuch)");
  expect(await text("detail")).toMatch(/^um \d\d:\d\d$/);
});

test("a batch that is done says how many failed", async () => {
  const { id } = await hf.batches.create(items, [1, 2, 3]);
  await hf.batches.wait(id, { timeout: "10s" });
  await show((await hf.views.sign({ batch: id })).view);
  await expect.poll(() => text("words")).toBe("Done, 1 failed");
  expect(await text("detail")).toBe("3 of 3");
});

test("a view that is gone says so and asks no more; a server that is away is waited for", async () => {
  let asked = 0;
  await page.route("**/api/v1/views/**", async (route) => {
    asked += 1;
    await route.continue();
  });
  await show("hv1_nothing");
  await expect.poll(() => text("words")).toBe("Not available any more");
  const before = asked;
  await page.waitForTimeout(600);
  expect(asked).toBe(before);
  await page.unroute("**/api/v1/views/**");

  gate = makeGate();
  const { id } = await hf.enqueue(slow, null);
  const { view } = await hf.views.sign({ job: id });
  await page.route("**/api/v1/views/**", (route) => route.abort());
  await show(view);
  await expect.poll(() => text("words")).toBe("No connection; trying again");
  await page.unroute("**/api/v1/views/**");
  await expect.poll(() => text("words"), { timeout: 8_000 }).toBe("Working");
  gate.open();
});
