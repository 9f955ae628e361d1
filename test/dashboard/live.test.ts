// A server that wants a token, goes away and comes back; a page that is hidden; a viewer who may not act.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { assertAccessible, launch, openPage, type Scene, settled, startScene } from "./scene.ts";

const TOKEN = "a-token-for-the-dashboard-tests";
let scene: Scene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([startScene({ SCENE_TOKEN: TOKEN, SCENE_EMPTY: "1" }), launch()]);
});
afterAll(async () => {
  await browser.close();
  await scene.stop();
});

test("it asks for a token, refuses a wrong one, and hides from a viewer what only operators do", async () => {
  const { page, faults } = await openPage(browser, "phone", "dark");
  await page.goto(`${scene.url}/#/jobs`);
  await page.getByLabel("Access token").fill("wrong-token-that-is-not-one");
  await assertAccessible(page, "signing in");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not take this token").waitFor();
  const answer = await fetch(`${scene.url}/api/v1/tokens`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ name: "looker", role: "viewer" }),
  });
  const { token } = (await answer.json()) as { token: string };
  await page.getByLabel("Access token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await settled(page);
  await page.getByText("No job fits.").waitFor();
  expect(await page.getByRole("link", { name: "Enqueue", exact: true }).count()).toBe(0);
  expect(faults).toEqual([]);
  await page.close();
});

test(
  "it says that the server is away, keeps what it had, and goes on by itself when it is back",
  { timeout: 60_000 },
  async () => {
    const { page } = await openPage(browser, "desktop", "light");
    const port = new URL(scene.url).port;
    await page.goto(scene.url);
    await page.getByLabel("Access token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("All is well: nothing waits.").waitFor();
    await scene.stop();
    await page.getByRole("button", { name: /Away for/ }).waitFor();
    await page.getByText("What you see is from before.").first().waitFor();
    expect(await page.getByText("All is well: nothing waits.").count()).toBe(1);
    scene = await startScene({ SCENE_TOKEN: TOKEN, SCENE_EMPTY: "1", SCENE_PORT: port });
    await page.getByRole("button", { name: /Live/ }).waitFor({ timeout: 15_000 });
    await expect.poll(() => page.getByText("What you see is from before.").count(), { timeout: 15_000 }).toBe(0);
    await page.close();
  },
);

test("a hidden page asks nothing; a page in view asks at most once a second", { timeout: 30_000 }, async () => {
  const { page } = await openPage(browser, "desktop", "light");
  await page.goto(scene.url);
  await page.getByLabel("Access token").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("All is well").waitFor();
  let asked = 0;
  page.on("request", (request) => {
    if (request.url().includes("/api/v1/overview")) asked += 1;
  });
  const busy = setInterval(() => {
    void fetch(`${scene.url}/api/v1/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify({ kind: "mail.send", payload: { to: "x@example.com", template: "welcome" } }),
    });
  }, 100);
  await page.waitForTimeout(4_000);
  expect(asked).toBeGreaterThanOrEqual(2);
  expect(asked).toBeLessThanOrEqual(5);
  await page.evaluate(`
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);
  await page.waitForTimeout(300);
  asked = 0;
  await page.waitForTimeout(3_000);
  clearInterval(busy);
  expect(asked).toBe(0);
  await page.close();
});
