// Every screen, in a real Chromium: it shows what is there, fits, passes axe, and throws nothing; light and dark, desktop and
// a phone of 320 pixels.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { assertAccessible, assertFits, launch, openPage, type Scene, settled, SIZES, startScene } from "./scene.ts";

let scene: Scene;
let browser: Browser;
let places: Record<string, [path: string, shows: RegExp]>;

beforeAll(async () => {
  [scene, browser] = await Promise.all([startScene(), launch()]);
  const first = async (query: string): Promise<string> => {
    const { jobs } = (await (await fetch(`${scene.url}/api/v1/jobs?${query}`)).json()) as { jobs: { id: string }[] };
    return jobs[0]!.id;
  };
  const { batches } = (await (await fetch(`${scene.url}/api/v1/batches`)).json()) as { batches: { id: string }[] };
  places = {
    overview: ["", /problems?: queue video has no worker/],
    queues: ["queues", /no worker/],
    queue: ["queues/payments", /payments\.charge/],
    jobs: ["jobs", /dead after 2 tries/],
    "dead job": [`jobs/${await first("status=dead&kind=payments.charge")}`, /ECONNREFUSED/],
    "running job": [`jobs/${await first("status=running&kind=reports.build")}`, /collect/],
    batches: ["batches", /catalog\.import/],
    batch: [`batches/${batches[0]!.id}`, /Product \d+ has no name/],
    errors: ["errors", /Gateway did not answer/],
    dead: ["dead", /Gateway did not answer/],
    workers: ["workers", /web-1:4711/],
    inbox: ["inbox", /has never polled/],
    recipient: ["inbox/ws-17", /photo\.jpg/],
    actions: ["actions", /Nothing was asked for yet/],
    janitor: ["janitor", /expire-leases/],
    enqueue: ["enqueue", /template/],
    system: ["system", /HOLDFAST_TOKEN/],
    nowhere: ["nowhere", /no such page/],
  };
});
afterAll(async () => {
  await browser.close();
  await scene.stop();
});

for (const size of Object.keys(SIZES) as (keyof typeof SIZES)[]) {
  for (const theme of ["light", "dark"] as const) {
    test(`every screen, ${size}, ${theme}`, { timeout: 60_000 }, async () => {
      const { page, faults } = await openPage(browser, size, theme);
      for (const [name, [path, shows]] of Object.entries(places)) {
        await page.goto(`${scene.url}/#/${path}`);
        await settled(page);
        await expect.poll(() => page.locator("main").textContent(), { message: name, timeout: 5_000 }).toMatch(shows);
        await assertFits(page, `${name}, ${size}`);
        await assertAccessible(page, `${name}, ${size}, ${theme}`);
      }
      expect(faults).toEqual([]);
      await page.close();
    });
  }
}

test("high contrast passes too", async () => {
  const { page } = await openPage(browser, "desktop", "dark");
  await page.goto(`${scene.url}/`);
  await page.getByLabel("Colours").selectOption("contrast");
  for (const [name, [path]] of Object.entries(places)) {
    await page.goto(`${scene.url}/#/${path}`);
    await settled(page);
    await assertAccessible(page, `${name}, contrast`);
  }
  await page.close();
});
