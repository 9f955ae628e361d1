// A real server process with something of everything, and a real Chromium that looks at it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import { copyInitialised } from "../support/initialised.ts";
import { QUICK_ENGINE } from "../support/quick-engine.ts";
import { quickFolder } from "../support/quick-folder.ts";
import { launchChromium } from "./chromium.mjs";

export interface Scene {
  url: string;
  child: ChildProcess;
  stop(): Promise<void>;
}

const PROGRAM = new URL("./children/scene.mjs", import.meta.url).pathname;

export async function startScene(env: Record<string, string> = {}): Promise<Scene> {
  const home = quickFolder("holdfast-scene-");
  if (env["SCENE_DATABASE"] === undefined) await copyInitialised(join(home, "data"));
  const child = spawn(process.execPath, [...QUICK_ENGINE, PROGRAM], {
    env: { ...process.env, SCENE_DATABASE: `embedded:${join(home, "data")}`, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  let trouble = "";
  child.stderr.on("data", (more: Buffer) => (trouble += more.toString()));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (more: Buffer) => {
      said += more.toString();
      const line = said.split("\n").find((each) => each.startsWith("{"));
      if (line) resolve((JSON.parse(line) as { url: string }).url);
    });
    child.once("exit", (code) => reject(new Error(`The scene ended with ${code}: ${trouble}`)));
  });
  return {
    url,
    child,
    async stop() {
      // Its database is nobody's: there is nothing to put away.
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      await rm(home, { recursive: true, force: true });
    },
  };
}

export const launch = async (): Promise<Browser> => await launchChromium();

export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 320, height: 640 } } as const;

/** A page whose faults fail the test: exceptions, and what the page's policy refused. */
export async function openPage(
  browser: Browser,
  size: keyof typeof SIZES,
  theme: "light" | "dark",
): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage({ viewport: SIZES[size], colorScheme: theme });
  page.setDefaultTimeout(8_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
  });
  return { page, faults };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** WCAG 2.2 AA, by axe. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  // Going from screen to screen keeps the document, and with it axe.
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(axe);
  const violations = (await page.evaluate(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"] }).then((result) => result.violations)`,
  )) as Violation[];
  const told = violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary ?? ""}`)
        .join("\n   ")}`,
  );
  expect(told, `${where}\n${told.join("\n")}`).toEqual([]);
}

/** Nothing sticks out at the side. */
export async function assertFits(page: Page, where: string): Promise<void> {
  const over = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
  expect(over, `${where} is wider than the screen`).toBeLessThanOrEqual(0);
}

export const settled = async (page: Page): Promise<void> => {
  await page.locator("main h1").waitFor();
  await expect.poll(() => page.locator("main").textContent(), { timeout: 8_000 }).not.toContain("Loading …");
};
