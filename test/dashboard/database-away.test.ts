// The database goes away under a page that is open, and comes back: the page says so, keeps what it had, and heals by
// itself; one that is opened meanwhile does too.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { assertAccessible, launch, openPage, type Scene, startScene } from "./scene.ts";

const TOKEN = "a-token-for-the-dashboard-tests";
let database: TestDatabase;
let network: TcpProxy;
let scene: Scene;
let browser: Browser;
beforeAll(async () => {
  database = await createDatabase();
  network = await startTcpProxy(database.url);
  const env = { SCENE_TOKEN: TOKEN, SCENE_EMPTY: "1", SCENE_DATABASE: network.through(database.url) };
  [scene, browser] = await Promise.all([startScene(env), launch()]);
});
afterAll(async () => {
  await browser.close();
  await scene.stop();
  await network.close();
  await database.drop();
});

const AWAY = /PostgreSQL at .* cannot be reached/;

test("it is told, nothing is lost from view, and it heals by itself", { timeout: 60_000 }, async () => {
  const open = async (path: string): Promise<Page> => {
    const { page } = await openPage(browser, "desktop", "light");
    await page.addInitScript(`sessionStorage.setItem("holdfast-token", ${JSON.stringify(TOKEN)})`);
    await page.goto(`${scene.url}/#/${path}`);
    return page;
  };
  const page = await open("");
  await page.getByText("All is well: nothing waits.").waitFor();
  await network.refuse(true);
  network.cut();
  await page.getByText(AWAY).first().waitFor();
  await page.getByText("What you see is from before.").first().waitFor();
  expect(await page.getByText("All is well: nothing waits.").count()).toBe(1);
  await assertAccessible(page, "without a database");
  // Who comes only now is told as well, with what to do.
  const late = await open("jobs");
  await late.getByText(AWAY).first().waitFor({ timeout: 15_000 });

  await network.refuse(false);
  for (const each of [page, late]) {
    await expect.poll(() => each.getByText(AWAY).count(), { timeout: 15_000 }).toBe(0);
    await each.getByRole("button", { name: /Live/ }).waitFor({ timeout: 15_000 });
  }
  await late.getByText("No job fits.").waitFor();
});
