// The documentation as a site (`npm run docs`): every page and every exported name is on it, its links lead somewhere, and in a
// real Chromium, opened from the folder, it can be searched, read and used by everyone, light and dark, on a desk and on a phone.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as http from "#src/http/index.js";
import * as holdfast from "#src/index.js";
import { addressOf, pagePaths, root } from "../../scripts/docs/pages.mjs";
import { assertAccessible, assertFits, launch, openPage, SIZES } from "../dashboard/scene.ts";

const folder = mkdtempSync(join(tmpdir(), "holdfast-site-"));
const read = (path: string): string => readFileSync(join(folder, path), "utf8");
const urlOf = (path: string): string => pathToFileURL(join(folder, path)).href;
let browser: Browser;
let count: number;
beforeAll(async () => {
  const printed = execFileSync(process.execPath, [join(root, "scripts/docs/build-site.mjs"), folder], {
    encoding: "utf8",
  });
  count = parseInt(printed);
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});
const files = (ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(ending));

test("every page is there, as HTML and as Markdown without what is for the tests", () => {
  const paths: string[] = pagePaths();
  expect(paths.length).toBeGreaterThan(60);
  expect(files(".html").length).toBe(count);
  for (const path of paths) {
    expect(existsSync(join(folder, addressOf(path))), path).toBe(true);
    expect(read(path)).not.toMatch(/^<!-- (not run|not checked|also run|pieces of|run by)/m);
  }
  expect(read("index.html")).not.toContain("<!-- ");
  expect(read("README.md")).toContain("const hf = await open({ log: console }); // embedded");
});

/** "page  link" for each that leads nowhere. */
function broken(path: string, html: string): string[] {
  return [...html.matchAll(/ (?:href|src|srcset)="([^"]+)"/g)].flatMap(([, link = ""]) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : join(dirname(path), file);
    if (!existsSync(join(folder, target))) return [`${path}  ${link}`];
    if (anchor === undefined) return [];
    return (file === "" ? html : read(target)).includes(` id="${anchor}"`) ? [] : [`${path}  ${link}`];
  });
}

test("every link of the site leads to a file and a heading of it", () => {
  const problems = files(".html").flatMap((path) => broken(path, read(path)));
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
  const page = '<h1 id="a"></h1><a href="#a"></a><a href="#b"></a><a href="c.html"></a><a href="jobs.html#no"></a>';
  expect(broken("docs/events.html", page)).toEqual([
    "docs/events.html  #b",
    "docs/events.html  c.html",
    "docs/events.html  jobs.html#no",
  ]);
});

test("the reference has every exported name, with its comment and its members", () => {
  const reference = read("reference/holdfast.md");
  for (const name of Object.keys(holdfast)) expect(reference).toContain(`\n### ${name}\n`);
  for (const name of Object.keys(http)) expect(read("reference/holdfast-http.md")).toContain(`\n### ${name}\n`);
  const enqueued = reference.slice(reference.indexOf("### Enqueued\n"));
  expect(enqueued).toMatch(
    /^### Enqueued\n\nThe answer to an enqueue: .*\n\n```ts\ninterface Enqueued \{\n {2}id: string;/,
  );
  expect(read("reference/holdfast.html")).toContain('<a href="#enqueueoptions">EnqueueOptions</a>');
});

test("llms.txt names every page as Markdown, and llms-full.txt has them all", () => {
  const llms = read("llms.txt");
  expect(llms).toMatch(/^# Holdfast\n\n> .+\n\n## Documentation\n\n- \[Holdfast\]\(README\.md\): .+\.\n/);
  const named = [...llms.matchAll(/^- \[.+\]\((.+\.md)\): \S/gm)].map((match) => match[1]!);
  expect(named.toSorted()).toEqual(files(".md").toSorted());
  const full = read("llms-full.txt");
  for (const path of named) expect(full).toContain(read(path).trim());
});

for (const size of Object.keys(SIZES) as (keyof typeof SIZES)[]) {
  for (const theme of ["light", "dark"] as const) {
    test(`pages fit and are accessible, ${size}, ${theme}`, { timeout: 60_000 }, async () => {
      const { page, faults } = await openPage(browser, size, theme);
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      for (const path of ["index.html", "docs/options.html", "docs/concepts.html", "reference/holdfast-testing.html"]) {
        await page.goto(urlOf(path));
        await assertFits(page, `${path}, ${size}`);
        expect(faults).toEqual([]);
        // The long ones have nothing else on them, and take axe very long.
        if (/index|options/.test(path)) continue;
        await assertAccessible(page, `${path}, ${size}, ${theme}`);
        // axe itself tries what the policy refuses.
        faults.length = 0;
      }
      const back = await page.evaluate("getComputedStyle(document.body).backgroundColor");
      expect(back).toBe(theme === "dark" ? "rgb(18, 22, 26)" : "rgb(255, 255, 255)");
      expect(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
      await page.close();
    });
  }
}

test("the search finds a section by its words, by the beginning of one, and with a slip; the keyboard is enough", async () => {
  const { page, faults } = await openPage(browser, "desktop", "light");
  await page.goto(urlOf("docs/decisions/index.html"));
  const first = page.locator("search .found a").first();
  for (const query of ["serial groups", "coalesc", "heartbeet"]) {
    await page.keyboard.press("/");
    await page.locator("search input").fill(query);
    await expect.poll(() => first.textContent(), { message: query }).toMatch(/serial|group|coalesc|heartbeat/i);
  }
  await page.locator("search input").fill("HOLDFAST_LEASE_LOST");
  await expect.poll(() => first.textContent()).toMatch(/^Errors: .*HOLDFAST_LEASE_LOST/);
  expect(faults).toEqual([]);
  await assertAccessible(page, "what was found");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\/errors\.html#/);
  expect(await page.locator("h1").textContent()).toBe("Errors");
  await page.locator("search input").fill("qqqzzz");
  await expect.poll(() => page.locator("search [role=status]").textContent()).toBe("Nothing found for “qqqzzz”.");
  await page.keyboard.press("Escape");
  await expect.poll(() => page.locator("search .found").isVisible()).toBe(false);
  await page.close();
});
