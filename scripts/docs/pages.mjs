// Which Markdown files are pages of the site, in which order they are offered, and the first words of each.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const BESIDE = [
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "bench/README.md",
  "bench/faults/README.md",
  "test/crash/README.md",
];

/** Every page that is written by hand, as a path in this repository. */
export function pagePaths() {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
  const apps = readdirSync(join(root, "apps")).map((name) => `apps/${name}/README.md`);
  return ["README.md", ...docs.sort(), ...apps.sort(), ...BESIDE];
}

export const readPage = (path) => ({ path, text: readFileSync(join(root, path), "utf8") });

/** Where a page stands in the site: `docs/README.md` is `docs/index.html`. */
export const addressOf = (path) => path.replace(/(^|\/)README\.md$/, "$1index.md").replace(/\.md$/, ".html");

/** As GitHub makes the anchors of headings. */
export const slugOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");

/** The order of docs/README.md: its headings, each with the pages that it links to first. */
export function readingOrder(text) {
  const seen = new Set(["docs/README.md"]);
  return text.split(/^#{1,2} /m).flatMap((section) => {
    const [title = "", ...lines] = section.split("\n");
    const links = [...lines.join("\n").matchAll(/\]\(([^)#:]+\.md)\)/g)].map(([, link]) => posix.join("docs", link));
    const paths = links.filter((path) => !seen.has(path) && seen.add(path));
    return paths.length === 0 ? [] : [{ title, paths }];
  });
}
