// A folder as it is, for an app's page. Never a file outside of it, whatever the path says or a link inside it points to;
// never a hidden file; and a browser may run only what comes from this server.
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".webp": "image/webp",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

/** For pages: their own scripts, styles and pictures, their own server, nothing inline, no frame around them. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "connect-src 'self'; media-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** null: there is no such file. */
export async function fileAnswer(
  folder: URL | string,
  path: string,
  method: string,
  encodings = "",
): Promise<Response | null> {
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.some((part) => part.startsWith(".") || /[\\\0]/.test(part))) return null;
  const names = parts.length === 0 ? ["index.html"] : parts;
  const plain = await findFile(folder, names);
  if (!plain) return null;
  // A build may have put a packed one beside it.
  const packed = /\bgzip\b/.test(encodings)
    ? await findFile(folder, [...names.slice(0, -1), `${names.at(-1)}.gz`])
    : null;
  const found = packed ?? plain;
  const headers = {
    "content-type": TYPES[extname(plain.path).toLowerCase()] ?? "application/octet-stream",
    "content-length": String(found.size),
    ...(packed ? { "content-encoding": "gzip" } : {}),
    vary: "accept-encoding",
    "content-security-policy": PAGE_POLICY,
    "cache-control": "no-cache",
  };
  if (method === "HEAD") return new Response(null, { headers });
  return new Response(Readable.toWeb(createReadStream(found.path)) as ReadableStream<Uint8Array>, { headers });
}

async function findFile(folder: URL | string, parts: string[]): Promise<{ path: string; size: number } | null> {
  try {
    const root = await realpath(typeof folder === "string" ? folder : fileURLToPath(folder));
    const path = await realpath(join(root, ...parts));
    if (!path.startsWith(root + sep)) return null;
    const { size, isFile } = await stat(path).then((stats) => ({ size: stats.size, isFile: stats.isFile() }));
    return isFile ? { path, size } : null;
  } catch {
    return null;
  }
}
