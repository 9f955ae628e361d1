// The count before anything starts, and the start.
import type { AppRoute } from "holdfast";
import type { Link } from "../import-one.ts";
import { readLinks } from "../links/formats.ts";
import { sortLinks } from "../links/sort-links.ts";
import { type Asked, bodyOf, type DeskOf, makeRoute, refuse } from "./routes.ts";

const MAX_TEXT = 10 * 1_048_576;
const SHOWN = 20;
const MAX_NAME = 120;
const MOST_OF_TOOL = 50;

export function makeCreateRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    makeRoute(deskOf, {
      method: "POST",
      path: "/preview",
      role: "viewer",
      maxBody: MAX_TEXT,
      async answer(asked) {
        const { text } = await bodyOf(asked);
        if (typeof text !== "string") return noText();
        return await counted(asked, text);
      },
    }),
    makeRoute(deskOf, {
      method: "POST",
      path: "/imports",
      maxBody: MAX_TEXT,
      async answer(asked) {
        const { text, name, key, again } = await bodyOf(asked);
        if (typeof text !== "string") return noText();
        const { entries, isCut } = readLinks(text);
        if (isCut) return tooMany(entries.length, asked.options.maxLinks);
        const { valid } = sortLinks(entries);
        const links = again === true ? valid.map((link) => ({ ...link, again })) : valid;
        return await create(asked, links, name, key);
      },
    }),
    // For assistants: a list of addresses and nothing else.
    makeRoute(deskOf, {
      method: "POST",
      path: "/tools/import_articles_from_urls",
      async answer(asked) {
        const { urls } = await bodyOf(asked);
        if (
          !Array.isArray(urls) ||
          urls.length < 1 ||
          urls.length > MOST_OF_TOOL ||
          !urls.every((url) => typeof url === "string")
        ) {
          return refuse(
            422,
            "URLS_INVALID",
            `urls is a list of 1 to ${MOST_OF_TOOL} addresses.`,
            "Split a longer list.",
          );
        }
        const { valid, invalid } = sortLinks(urls.map((link) => ({ link })));
        if (invalid[0]) {
          return refuse(
            422,
            "URLS_INVALID",
            `${JSON.stringify(invalid[0].text)} cannot be imported (${invalid[0].fault}).`,
            "Leave it out.",
          );
        }
        return await create(asked, valid, undefined, undefined);
      },
    }),
  ];
}

async function counted({ library, owner, options }: Asked, text: string): Promise<object> {
  const { format, entries, isCut } = readLinks(text);
  const { valid, invalid, duplicates } = sortLinks(entries);
  const known = await library.known(
    owner,
    valid.map(({ url }) => url),
  );
  return {
    format,
    counts: { valid: valid.length, invalid: invalid.length, duplicates: duplicates.length, saved: known.size },
    invalid: invalid.slice(0, SHOWN),
    duplicates: duplicates.slice(0, SHOWN),
    maxLinks: options.maxLinks,
    tooMany: isCut || valid.length > options.maxLinks,
  };
}

async function create(asked: Asked, links: readonly Link[], name: unknown, key: unknown): Promise<Response> {
  const { hf, kind, owner, options } = asked;
  if (links.length === 0)
    return refuse(422, "NO_LINKS", "There is no link in it.", "Paste addresses that begin with http:// or https://.");
  if (links.length > options.maxLinks) {
    return tooMany(links.length, options.maxLinks);
  }
  const title = typeof name === "string" ? name.trim().slice(0, MAX_NAME) : "";
  const { id, created } = await hf.batches.create(kind, links, {
    owner,
    // Asked for again after a lost answer, it is the same import.
    ...(typeof key === "string" && /^[\w-]{8,64}$/.test(key) && { key }),
    ...(title !== "" && { fields: { name: title } }),
  });
  return Response.json({ id, total: links.length, created }, { status: created ? 201 : 200 });
}

const noText = (): Response =>
  refuse(422, "TEXT_MISSING", "text is missing.", "Send the pasted text, or the file's content, as text.");

const tooMany = (count: number, most: number): Response =>
  refuse(422, "TOO_MANY_LINKS", `${count} links are more than ${most}.`, "Split the list.");
