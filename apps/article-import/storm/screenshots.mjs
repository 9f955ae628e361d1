// Every screen with the sample links, on a desktop and on a phone, light and dark, English and German, as pictures. For
// whoever changes how something looks: npm run screenshots -w apps/article-import [-- folder]
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launchChromium } from "../../../test/dashboard/chromium.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folder = process.argv[2] ?? join(tmpdir(), "article-import-screenshots");
const place = mkdtempSync(join(tmpdir(), "article-import-"));
const PORT = "7475";
const url = `http://127.0.0.1:${PORT}`;
mkdirSync(folder, { recursive: true });
writeFileSync(
  join(place, "holdfast.config.ts"),
  `import { articleImport } from ${JSON.stringify(join(root, "apps/article-import/src/index.ts"))};
   export default { apps: [articleImport({ hostDelay: "150ms", ladder: ["1s", "1s"] })] };`,
);
const server = spawn(process.execPath, [join(root, "dist/cli/main.js"), "dev"], {
  cwd: place,
  env: { PATH: process.env.PATH, HOLDFAST_DATA: join(place, "data"), HOLDFAST_PORT: PORT },
  stdio: ["ignore", "ignore", "pipe"],
});
await new Promise((resolve, reject) => {
  let said = "";
  server.stderr.on("data", (piece) => {
    said += piece;
    if (said.includes('"message":"Ready"')) resolve();
  });
  server.once("exit", () => reject(new Error(said)));
});
const browser = await launchChromium();
try {
  const desktop = { width: 1200, height: 800 };
  const phone = { width: 360, height: 740 };
  for (const { size, viewport, colorScheme, locale } of [
    { size: "desktop", viewport: desktop, colorScheme: "light", locale: "en-GB" },
    { size: "phone", viewport: phone, colorScheme: "dark", locale: "de-DE" },
    { size: "desktop", viewport: desktop, colorScheme: "dark", locale: "de-DE" },
    { size: "phone", viewport: phone, colorScheme: "light", locale: "en-GB" },
  ]) {
    const context = await browser.newContext({ viewport, colorScheme, locale });
    const page = await context.newPage();
    const shoot = (name) =>
      page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    await page.goto(`${url}/apps/article-import/#/new`);
    await page.click("#sample");
    await page.fill("#links", `${await page.inputValue("#links")}\nnonsense ftp://files.example/x`);
    await page.waitForSelector("details");
    if (await page.locator("#again").isVisible()) await page.check("#again");
    await shoot("new");
    await page.click("button.main:not([disabled])");
    await page.waitForSelector('[data-count="saved"]');
    await page.waitForTimeout(3_000);
    await shoot("import-running");
    await page.waitForSelector("#import-state.done", { timeout: 120_000 });
    await page.waitForTimeout(500);
    await shoot("import-done");
    await page.click('.items a[href^="#/read/"] >> nth=0');
    await page.waitForSelector(".reader .text p");
    await shoot("reader");
    await page.goto(`${url}/apps/article-import/#/articles`);
    await page.waitForSelector(".cards li");
    await shoot("articles");
    const wall = page.locator(".cards li:has(.badge.consent-wall) a").first();
    if ((await wall.count()) > 0) {
      await wall.click();
      await page.waitForSelector(".rescue");
      await shoot("consent");
    }
    await page.goto(`${url}/apps/article-import/#/`);
    await page.waitForSelector(".cards li .bar");
    await shoot("list");
    await context.close();
  }
} finally {
  await browser.close();
  server.kill("SIGTERM");
  await new Promise((resolve) => server.once("exit", resolve));
  rmSync(place, { recursive: true, force: true });
}
process.stdout.write(`${folder}\n`);
