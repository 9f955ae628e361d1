// Links between pages lead somewhere: the file is there, and so is the heading. Pictures too, and none is large.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { pagePaths, slugOf } from "../../scripts/docs/pages.mjs";
import { root } from "./pages.ts";

const paths: string[] = pagePaths();
const isDecision = (path: string): boolean => path.startsWith("docs/decisions/");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** As GitHub makes them. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of withoutCode(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");
    const slug = slugOf(plain);
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

const withoutCode = (text: string): string => text.replace(/^```.*?^```$/gms, "").replace(/^<!-- .*?-->$/gms, "");

/** "page  link" for each that leads nowhere. */
function brokenLinks(path: string, text: string): string[] {
  const links = [
    ...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g),
    ...withoutCode(text).matchAll(/(?:src|srcset|href)="([^"]+)"/g),
  ].map((match) => match[1]!);
  return links.flatMap((link) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), file));
    if (!existsSync(join(root, target)) && file !== "") return [`${path}  ${link}: there is no ${target}`];
    if (anchor === undefined || !target.endsWith(".md")) return [];
    const anchors = anchorsOf(file === "" ? text : read(target));
    return anchors.has(anchor) ? [] : [`${path}  ${link}: ${target} has no such heading`];
  });
}

test("every link of every page leads to a file and a heading", () => {
  const problems = paths.flatMap((path) => brokenLinks(path, read(path)));
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

/** Files that a page names without linking to them. */
function missingFiles(path: string, text: string): string[] {
  const named = text.matchAll(/(?<![\w./-])((?:test|src|docs|scripts|monitoring|bench|apps|starter)\/[\w./-]*\.\w+)/g);
  return [...named]
    .map((match) => match[1]!)
    .filter((file) => !existsSync(join(root, file)) && !existsSync(join(root, dirname(path), file)))
    .map((file) => `${path}  ${file}: there is no such file`);
}

test("every file that a page names exists", () => {
  // Decisions stay as they were accepted.
  const problems = paths.filter((path) => !isDecision(path)).flatMap((path) => missingFiles(path, read(path)));
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
  expect(missingFiles("README.md", "see `test/nobody.test.ts`")).toHaveLength(1);
});

test("every page can be reached from docs/README.md", () => {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path) || !path.endsWith(".md") || !existsSync(join(root, path))) return;
    reached.add(path);
    for (const [, link] of withoutCode(read(path)).matchAll(/\]\(([^)\s#]+)[^)]*\)/g)) {
      if (!/^[a-z]+:/.test(link!)) visit(normalize(join(dirname(path), link!)));
    }
  };
  visit("docs/README.md");
  expect(paths.filter((path) => !reached.has(path) && !isDecision(path))).toEqual([]);
});

test("every alert names a section of docs/operating.md, and every alert there exists", () => {
  const rules = read("monitoring/alerts.yml");
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map((match) => match[1]!);
  const runbooks = [...rules.matchAll(/runbook: (\S+)#(\S+)/g)].map((match) => [match[1], match[2]]);
  expect(runbooks).toEqual(alerts.map((name) => ["docs/operating.md", name.toLowerCase()]));
  const sections = [...read("docs/operating.md").matchAll(/^### (Holdfast\w+)$/gm)].map((match) => match[1]);
  expect(sections).toEqual(alerts);
});

test("pictures are small, and each is shown somewhere", () => {
  const shown = paths.map(read).join("\n");
  for (const name of readdirSync(join(root, "docs/images"))) {
    expect(statSync(join(root, "docs/images", name)).size, name).toBeLessThan(200_000);
    expect(shown, name).toContain(`images/${name}`);
  }
});

test("a link that leads nowhere is noticed", () => {
  const page =
    "# A `b` c, d\n\n[x](#a-b-c-d) [y](#e) [z](nowhere.md) [w](concepts.md#nothing) [v](https://example.com)\n";
  expect(brokenLinks("docs/a.md", page)).toEqual([
    "docs/a.md  #e: docs/a.md has no such heading",
    "docs/a.md  nowhere.md: there is no docs/nowhere.md",
    "docs/a.md  concepts.md#nothing: docs/concepts.md has no such heading",
  ]);
});
