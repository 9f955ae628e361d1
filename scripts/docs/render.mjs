// One page of Markdown as HTML, and as the sections that search finds.
import { posix } from "node:path";
import hljs from "highlight.js/lib/common";
import MarkdownIt from "markdown-it";
import { addressOf, slugOf } from "./pages.mjs";

const LANGUAGES = { js: "javascript", sh: "bash", ts: "typescript" };

const markdown = new MarkdownIt({
  html: true,
  linkify: false,
  highlight(code, language) {
    const known = LANGUAGES[language] ?? language;
    return hljs.getLanguage(known) ? hljs.highlight(code, { language: known }).value : "";
  },
});

const isComment = (token) => token.type === "html_block" && /^<!--[^]*-->\s*$/.test(token.content);
const plain = (token) =>
  (token.children ?? []).map(({ type, content }) => (type === "softbreak" ? " " : content)).join("");

/** A link from a page to another, or to a picture, in the site. */
const linkOf = (link) => (/^[a-z]+:|^#/.test(link) ? link : link.replace(/[^#]+\.md(?=#|$)/, addressOf));

/** Wide ones scroll by themselves, also with the keyboard. */
markdown.renderer.rules.table_open = () => '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n';
markdown.renderer.rules.table_close = () => "</table></div>\n";
const { fence } = markdown.renderer.rules;
markdown.renderer.rules.fence = (...args) =>
  fence(...args).replace("<pre>", '<pre tabindex="0" role="region" aria-label="Code">');

/**
 * `title`, `summary` (its first sentence), `html`, `headings` of the second level, `sections` for the search, `links` to
 * files of the repository, and `text`: the Markdown without comments for the tests. `names` become links in its code.
 */
export function renderPage({ path, text, names = [] }) {
  const tokens = markdown.parse(text, {}).filter((token) => !isComment(token));
  const anchors = new Set();
  const links = new Set();
  const sections = [];
  const paragraphs = [];
  tokens.forEach((token, index) => {
    if (token.type === "heading_open") {
      const heading = plain(tokens[index + 1]);
      const slug = slugOf(heading);
      let anchor = slug;
      for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
      anchors.add(anchor);
      token.attrSet("id", anchor);
      sections.push({ level: Number(token.tag.slice(1)), heading, anchor, words: [] });
    } else if (token.type === "inline") {
      for (const child of token.children) {
        const attribute = { link_open: "href", image: "src" }[child.type];
        if (attribute === undefined) continue;
        const link = child.attrGet(attribute);
        if (!/^[a-z]+:|^#/.test(link)) links.add(posix.join(posix.dirname(path), link.replace(/#.*/, "")));
        child.attrSet(attribute, linkOf(link));
      }
      if (tokens[index - 1].type === "heading_open") return;
      if (tokens[index - 1].type === "paragraph_open") paragraphs.push(plain(token));
      sections.at(-1)?.words.push(plain(token));
    } else if (token.type === "th_open" || token.type === "td_open") {
      // The site's policy allows no styles in attributes.
      const style = token.attrGet("style");
      if (style !== null) token.attrs = [["class", style.replace("text-align:", "")]];
    } else if (token.type === "fence") {
      sections.at(-1)?.words.push(token.content);
    } else if (token.type === "html_block") {
      for (const [, link] of token.content.matchAll(/(?:src|srcset|href)="([^":]+)"/g))
        links.add(posix.join(posix.dirname(path), link));
    }
  });
  // Decisions begin with their date.
  const first = paragraphs.find((words) => !/^\d{4}-/.test(words)) ?? "";
  return {
    path,
    address: addressOf(path),
    title: sections[0]?.heading ?? path,
    summary: /^.*?(\.(?=\s|$)|$)/.exec(first)[0].replace(/:$/, "."),
    html: linkNames(markdown.renderer.render(tokens, markdown.options, {}), names),
    headings: sections.filter(({ level }) => level === 2),
    sections: sections.map(({ heading, anchor, words }) => ({
      heading,
      anchor,
      text: words.join(" ").replaceAll(/\s+/g, " "),
    })),
    links,
    text: withoutComments(text),
  };
}

/** In code, a name that has a heading on the page leads there. */
function linkNames(html, names) {
  if (names.length === 0) return html;
  const known = new RegExp(`\\b(${names.join("|")})\\b`, "g");
  return html.replaceAll(/<pre.*?<\/pre>/gs, (block) =>
    block.replaceAll(/(?<=>)[^<]+/g, (words) =>
      words.replaceAll(known, (name) => `<a href="#${slugOf(name)}">${name}</a>`),
    ),
  );
}

function withoutComments(text) {
  const lines = text.split("\n");
  for (const token of markdown.parse(text, {}).filter(isComment)) lines.fill(undefined, token.map[0], token.map[1]);
  return lines
    .filter((line) => line !== undefined)
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n");
}
