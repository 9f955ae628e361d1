// `npm run docs [-- folder]`: the documentation as a site that needs no server, in docs-site/: every page as HTML and as
// Markdown, the API reference, a search, llms.txt for programs that read. Nothing on it comes from elsewhere.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { build, install } from "../set-up.mjs";
import { layOut } from "./layout.mjs";
import { pagePaths, readingOrder, readPage, root } from "./pages.mjs";
import { referencePages } from "./reference.mjs";
import { renderPage } from "./render.mjs";

/** Returns how many pages it has. */
function buildSite(folder) {
  const { version, description } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const written = pagePaths().map((path) => renderPage(readPage(path)));
  const reference = referencePages().map(renderPage);
  const pages = [...written, ...reference];
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const order = [
    ...readingOrder(readPage("docs/README.md").text).map(({ title, paths }) => ({
      title,
      pages: paths.map((path) => byPath.get(path)),
    })),
    { title: "API reference", pages: reference },
  ];
  rmSync(folder, { recursive: true, force: true });
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const page of pages) {
    write(page.address, layOut(page, order, version));
    write(page.path, page.text);
    for (const link of page.links) if (!link.endsWith(".md")) cpSync(join(root, link), join(folder, link));
  }
  for (const name of ["site.css", "search.js"]) cpSync(join(import.meta.dirname, "site", name), join(folder, name));
  cpSync(join(root, "dashboard/public/favicon.svg"), join(folder, "favicon.svg"));
  cpSync(join(root, "node_modules/minisearch/dist/umd/index.js"), join(folder, "minisearch.js"));
  write("search-index.js", `globalThis.SECTIONS = ${JSON.stringify(sectionsOf(pages))};\n`);
  write("llms.txt", llmsOf(order, pages, description));
  write("llms-full.txt", pages.map((page) => `<!-- ${page.path} -->\n\n${page.text.trim()}\n`).join("\n"));
  return pages.length;
}

const sectionsOf = (pages) =>
  pages.flatMap(({ address, title, sections }) =>
    sections.map(({ heading, anchor, text }) => ({ page: title, heading, address: `${address}#${anchor}`, text })),
  );

/** https://llmstxt.org: what there is, and where it stands as Markdown. */
function llmsOf(order, pages, description) {
  const offered = new Set(order.flatMap((group) => group.pages));
  const others = pages.filter((page) => !offered.has(page));
  return [
    "# Holdfast",
    `> ${description}. All of it in one file: [llms-full.txt](llms-full.txt).`,
    ...[...order, { title: "Optional", pages: others }].flatMap(({ title, pages: group }) => [
      `## ${title}`,
      group.map(({ title: name, path, summary }) => `- [${name}](${path}): ${summary}`).join("\n"),
    ]),
    "",
  ].join("\n\n");
}

install();
build();
const target = resolve(process.argv[2] ?? join(root, "docs-site"));
process.stdout.write(`${buildSite(target)} pages: ${join(target, "index.html")}\n`);
