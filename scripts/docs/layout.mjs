// A page of the site around its words: the list of pages, the search, what is on this page, what comes next. It works from a
// folder (file:), under any path of a server, and without scripts except for the search.
import { posix } from "node:path";

const escape = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const POLICY = "default-src 'none'; img-src 'self' file:; style-src 'self' file:; script-src 'self' file:";

/** `order`: groups of pages; `version`: of the package. */
export function layOut(page, order, version) {
  const to = (address) => posix.relative(posix.dirname(page.address), address) || posix.basename(address);
  const link = (other) =>
    `<a href="${to(other.address)}"${other === page ? ' aria-current="page"' : ""}>${escape(other.title)}</a>`;
  const all = order.flatMap(({ pages }) => pages);
  const next = all[all.indexOf(page) + 1];
  const groups = order.map(
    ({ title, pages }) =>
      `<h2>${escape(title)}</h2>\n<ul>\n${pages.map((other) => `<li>${link(other)}</li>`).join("\n")}\n</ul>`,
  );
  const here = page.headings.map(({ heading, anchor }) => `<li><a href="#${anchor}">${escape(heading)}</a></li>`);
  const base = to("index.html").replace(/index\.html$/, "");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escape(page.summary)}">
<title>${escape(page.title === "Holdfast" ? "Holdfast" : `${page.title} · Holdfast`)}</title>
<link rel="icon" href="${base}favicon.svg">
<link rel="stylesheet" href="${base}site.css">
<link rel="alternate" type="text/markdown" href="${posix.basename(page.path)}">
<script defer src="${base}search.js" data-base="${base}"></script>
</head>
<body>
<a class="skip" href="#words">To the text</a>
<header>
<a class="name" href="${base}index.html">Holdfast <small>${escape(version)}</small></a>
<search hidden>
<input type="search" placeholder="Search ( / )" aria-label="Search the documentation" autocomplete="off">
<div class="found" hidden><p role="status"></p><ul></ul></div>
</search>
</header>
<details class="pages" open>
<summary>All pages</summary>
<nav aria-label="Pages">
${groups.join("\n")}
</nav>
</details>
<main id="words" tabindex="-1">
${page.html}
${next ? `<p class="next">Next: ${link(next)}</p>` : ""}
</main>
${here.length > 1 ? `<aside><nav aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n${here.join("\n")}\n</ul>\n</nav></aside>` : ""}
</body>
</html>
`;
}
