// The thread that reads pages: bytes in, an article out. What is in a page can cost any amount of time and memory, so this
// runs apart, and whoever asks ends the thread when it takes too long (extractor.ts). Plain JavaScript, because a thread
// is started by Node itself.
import { parentPort } from "node:worker_threads";
import { Readability } from "@mozilla/readability";
import sniffEncoding from "html-encoding-sniffer";
import { parseHTML } from "linkedom";
import sanitizeHtml from "sanitize-html";

/** No article is larger; what is beyond is cut, so that a parcel stays small. */
const MAX_HTML = 1_000_000;
const MAX_FIELD = 500;
const MAX_ELEMENTS = 100_000;

const CLEAN = {
  allowedTags: (
    "p br hr h1 h2 h3 h4 h5 h6 ul ol li dl dt dd blockquote pre code kbd samp em strong b i u s sub sup small mark abbr " +
    "cite q a figure figcaption table caption thead tbody tfoot tr th td time div"
  ).split(" "),
  allowedAttributes: { a: ["href"], time: ["datetime"], th: ["colspan", "rowspan"], td: ["colspan", "rowspan"] },
  allowedSchemes: ["http", "https", "mailto"],
  allowedSchemesAppliedToAttributes: ["href"],
  allowProtocolRelative: false,
  disallowedTagsMode: "discard",
  nestingLimit: 100,
  enforceHtmlBoundary: false,
};

/**
 * @param {{ bytes: Uint8Array, contentType: string, url: string }} page
 */
export function readPage({ bytes, contentType, url }) {
  const charset = charsetOf(bytes, contentType);
  const text = new TextDecoder(charset).decode(bytes);
  if (/^text\/plain\b/i.test(contentType)) return { ...ofPlainText(text, url), charset };
  const { document } = parseHTML(/<html|<body/i.test(text) ? text : `<html><body>${text}</body></html>`);
  // What a browser resolves by itself, linkedom has to be told.
  const base = resolve(document.querySelector("base[href]")?.getAttribute("href"), url) ?? url;
  for (const link of document.querySelectorAll("a[href]")) {
    const href = resolve(link.getAttribute("href"), base);
    if (href === undefined) link.removeAttribute("href");
    else link.setAttribute("href", href);
  }
  const language = document.documentElement?.getAttribute("lang") ?? null;
  const heading = document.querySelector("title")?.textContent ?? "";
  const article = document.documentElement
    ? new Readability(document, { maxElemsToParse: MAX_ELEMENTS, charThreshold: 200 }).parse()
    : null;
  // Too little for an article: a page of consent, or one that is made by scripts. Its words say which.
  const body = article
    ? null
    : plainText(sanitizeHtml(text, { allowedTags: ["p", "div", "li", "br"], allowedAttributes: {} }));
  const html = article
    ? sanitizeHtml(article.content.slice(0, MAX_HTML), CLEAN)
    : body
        .split(/\n+/)
        .map((line) => `<p>${escape(line)}</p>`)
        .join("")
        .slice(0, MAX_HTML);
  const words = wordsOf(article ? article.textContent : body);
  return {
    found: article !== null,
    title: short(article?.title || heading) || url,
    byline: short(article?.byline) || null,
    siteName: short(article?.siteName) || null,
    excerpt: short(article?.excerpt) || null,
    publishedAt: short(article?.publishedTime) || null,
    language: short(article?.lang ?? language) || null,
    charset,
    html,
    text: (article ? article.textContent : body).trim().slice(0, MAX_HTML),
    words,
  };
}

/** What the bytes say, then the header, then the page; then UTF-8 if it is that, and Western European if not. */
function charsetOf(bytes, contentType) {
  const label = /charset\s*=\s*"?'?([\w:.-]+)/i.exec(contentType)?.[1];
  const transport = label === undefined ? undefined : knownCharset(label);
  const fallback = isUtf8(bytes) ? "UTF-8" : "windows-1252";
  const found = sniffEncoding(bytes, { transportLayerEncodingLabel: transport, defaultEncoding: fallback });
  return knownCharset(found) ?? fallback;
}

function knownCharset(label) {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

function isUtf8(bytes) {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function ofPlainText(text, url) {
  const clean = text.trim().slice(0, MAX_HTML);
  const paragraphs = clean.split(/\r?\n\s*\r?\n/);
  return {
    found: clean !== "",
    title: short(decoded(new URL(url).pathname.split("/").pop() ?? "").replace(/\.\w+$/, "")) || url,
    byline: null,
    siteName: null,
    excerpt: short(paragraphs[0]) || null,
    publishedAt: null,
    language: null,
    html: paragraphs.map((paragraph) => `<p>${escape(paragraph)}</p>`).join(""),
    text: clean,
    words: wordsOf(clean),
  };
}

/** As it stands there, if it only looks like an escape. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const plainText = (html) =>
  html
    .replaceAll(/<[^>]*>/g, "\n")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replaceAll(/[ \t]+/g, " ")
    .replaceAll(/\s*\n\s*/g, "\n")
    .trim();

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const short = (text) => (text ?? "").replaceAll(/\s+/g, " ").trim().slice(0, MAX_FIELD);

/** Scripts without spaces count by pairs of characters, roughly a word. */
function wordsOf(text) {
  const dense = text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu)?.length ?? 0;
  const spaced = text.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}'’.-]*/gu)?.length ?? 0;
  return dense > spaced ? Math.round(dense / 2) : spaced;
}

function resolve(href, base) {
  try {
    const url = new URL(href ?? "", base);
    return href !== undefined && href !== null && /^(https?|mailto):$/.test(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

parentPort?.on("message", (page) => {
  try {
    parentPort.postMessage({ article: readPage(page) });
  } catch (error) {
    parentPort.postMessage({ error: String(error?.message ?? error).slice(0, 500) });
  }
});
