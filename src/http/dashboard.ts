// The dashboard at `/`: a page and what belongs to it, built into the package. It holds nothing but the program, so nobody is
// asked who they are; what it shows comes from the API, with the token of whoever looks.
//
// And <job-progress>, the element with which apps show their users how far something is, as one file; and the styles and the
// script that pages of apps share.
import type { Context, Hono } from "hono";
import { fileAnswer } from "./static-files.ts";

const FOLDER = new URL("../dashboard/", import.meta.url);
const ELEMENT = new URL("../job-progress/", import.meta.url);
/** The names of these files change with their content. */
const FOR_EVER = "public, max-age=31536000, immutable";

export function addJobProgress(app: Hono): void {
  app.get("/job-progress.js", async (context, next) => {
    return (await fileAnswer(ELEMENT, "job-progress.js", context.req.method)) ?? (await next());
  });
}

const answer =
  (path: string, more: Record<string, string> = {}) =>
  async (context: Context, next: () => Promise<void>) => {
    const file = path === "*" ? context.req.path : path;
    const found = await fileAnswer(FOLDER, file, context.req.method, context.req.header("accept-encoding"));
    if (!found) return await next();
    for (const [name, value] of Object.entries(more)) found.headers.set(name, value);
    return found;
  };

export function addPageFiles(app: Hono): void {
  for (const path of ["/apps/page.css", "/apps/page.js"]) app.get(path, answer(path));
}

export function addDashboard(app: Hono): void {
  app.get("/", answer("/index.html"));
  app.get("/favicon.svg", answer("/favicon.svg"));
  app.get("/assets/*", answer("*", { "cache-control": FOR_EVER }));
}
