// A real Chromium: CHROME_PATH, an installed one, or the one inside the npm package @sparticuz/chromium.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

async function findChromium() {
  if (process.env.CHROME_PATH) return process.env.CHROME_PATH;
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of NAMES) if (existsSync(join(folder, name))) return join(folder, name);
  }
  const { default: packed } = await import("@sparticuz/chromium");
  return await packed.executablePath();
}

// Tests run as root and in containers; the pages are our own.
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

export async function launchChromium(args = []) {
  return await chromium.launch({ executablePath: await findChromium(), args: [...ARGS, ...args] });
}

/** A browser of somebody who comes back: what its pages store stays in the folder. */
export async function launchProfile(folder, options = {}) {
  return await chromium.launchPersistentContext(folder, {
    executablePath: await findChromium(),
    args: ARGS,
    ...options,
  });
}
