// What a file or a pasted text is, and the links in it: plain text, CSV, bookmarks of a browser (HTML, or Firefox's JSON),
// exports of Pocket (HTML, CSV) and Instapaper (CSV). Told by the content, never by the file's name.
import { Parser } from "htmlparser2";
import { readCsv } from "./csv.ts";
import { splitText } from "./split.ts";

export type Format = "text" | "csv" | "pocket" | "instapaper" | "bookmarks";

/** A link as it stands there, and the title that the file has for it. */
export interface Entry {
  link: string;
  title?: string;
}

export interface Found {
  format: Format;
  entries: Entry[];
  /** There are more than anybody imports at once; the rest was not looked at. */
  isCut: boolean;
}

const MAX_TITLE = 300;
/** What is sorted holds up everything else for as long. */
const MOST_ENTRIES = 50_000;

export function readLinks(text: string): Found {
  const { format, entries } = read(text);
  return { format, entries: entries.slice(0, MOST_ENTRIES), isCut: entries.length > MOST_ENTRIES };
}

function read(text: string): Omit<Found, "isCut"> {
  const start = text
    .slice(0, 4_096)
    .replace(/^\uFEFF/, "")
    .trimStart();
  if (/^<!doctype netscape-bookmark/i.test(start)) return { format: "bookmarks", entries: linksOfHtml(text) };
  if (/^(<!doctype html|<html|<dl|<ul|<h1)/i.test(start)) {
    return { format: /<title>\s*pocket export/i.test(start) ? "pocket" : "bookmarks", entries: linksOfHtml(text) };
  }
  if (start.startsWith("{") || start.startsWith("[")) {
    const entries = linksOfJson(text);
    if (entries) return { format: "bookmarks", entries };
  }
  return linksOfTable(text) ?? { format: "text", entries: splitText(text, MOST_ENTRIES + 1).map((link) => ({ link })) };
}

function linksOfHtml(html: string): Entry[] {
  const entries: Entry[] = [];
  let open: Entry | undefined;
  const parser = new Parser(
    {
      onopentag(name, { href }) {
        if (name !== "a" || href === undefined) return;
        open = { link: href };
        entries.push(open);
      },
      ontext(piece) {
        if (open) open.title = ((open.title ?? "") + piece).slice(0, MAX_TITLE);
      },
      onclosetag(name) {
        if (name === "a") open = undefined;
      },
    },
    { decodeEntities: true },
  );
  parser.write(html.replace(/^\uFEFF/, ""));
  parser.end();
  // Folders of a bookmark bar, saved searches and scripts are no pages.
  return entries.filter(({ link }) => !/^(javascript|place|about|chrome|edge|data|file):/i.test(link)).map(tidy);
}

/** Firefox: folders in folders, with a `uri` each. */
function linksOfJson(text: string): Entry[] | undefined {
  let whole: unknown;
  try {
    whole = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
  const entries: Entry[] = [];
  const waiting: unknown[] = [whole];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (Array.isArray(node)) {
      for (const each of node.toReversed()) waiting.push(each);
    } else if (typeof node === "string") {
      entries.push({ link: node });
    } else if (node !== null && typeof node === "object") {
      const { uri, url = uri, title, name = title, children, ...rest } = node as Record<string, unknown>;
      if (typeof url === "string") entries.push({ link: url, ...(typeof name === "string" && { title: name }) });
      if (children !== undefined) waiting.push(children);
      // Chromium's file: { roots: { bookmark_bar: { children } } }
      else
        for (const each of Object.values(rest).toReversed())
          if (each !== null && typeof each === "object") waiting.push(each);
    }
  }
  return entries.filter(({ link }) => !/^(javascript|place|about|chrome|edge|data|file):/i.test(link)).map(tidy);
}

function linksOfTable(text: string): Omit<Found, "isCut"> | undefined {
  const first = text.slice(0, 20_000).split(/\r?\n/, 1)[0]!;
  if (!/[,;\t]/.test(first)) return undefined;
  const names = (readCsv(first)[0] ?? []).map((cell) => cell.trim().toLowerCase());
  const linkAt = names.findIndex((name) => /^(url|uri|link|href|address|adresse|given_url|resolved_url)$/.test(name));
  if (linkAt === -1) return undefined;
  const titleAt = names.findIndex((name) => /^(title|titel|name|given_title|resolved_title)$/.test(name));
  const format = names.includes("time_added")
    ? "pocket"
    : names.includes("selection") && names.includes("folder")
      ? "instapaper"
      : "csv";
  const entries = readCsv(text)
    .slice(1)
    .filter((row) => (row[linkAt] ?? "").trim() !== "")
    .map((row) => tidy({ link: row[linkAt]!, ...(titleAt !== -1 && row[titleAt] && { title: row[titleAt] }) }));
  return { format, entries };
}

function tidy({ link, title = "" }: Entry): Entry {
  const words = title.replaceAll(/\s+/g, " ").trim().slice(0, MAX_TITLE);
  // Some exports use the address as the title.
  return words === "" || words === link ? { link } : { link, title: words };
}
