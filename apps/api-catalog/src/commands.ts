// holdfast catalog upload | status | search: the same routes as the page.
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { AppCommand, AppCommandContext } from "holdfast";

interface Answer {
  error?: { message: string; hint: string };
  [field: string]: unknown;
}

export function makeCommands(): AppCommand[] {
  return [
    {
      name: "catalog upload",
      summary: "put OpenAPI documents into a catalog, which is made if it is not there",
      arguments: ["<catalog>", "<files...>"],
      options: [["--name <name>", "what the spec is called (default: the file's name)"]],
      run: upload,
    },
    { name: "catalog status", summary: "how far its specs are indexed", arguments: ["<catalog>"], run: status },
    {
      name: "catalog search",
      summary: "find operations",
      arguments: ["<catalog>", "<words...>"],
      options: [
        ["--by <by>", "meaning, words or both"],
        ["--limit <n>", "how many"],
      ],
      run: find,
    },
  ];
}

async function call({ server, signal, note }: AppCommandContext, method: string, path: string, body?: string | object) {
  const response = await fetch(`${server.url}/api-catalogs${path}`, {
    method,
    signal,
    headers: {
      "content-type": typeof body === "string" ? "application/octet-stream" : "application/json",
      ...(server.token !== undefined && { authorization: `Bearer ${server.token}` }),
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Answer;
  if (!response.ok && response.status !== 409) note(`${answer.error?.message} ${answer.error?.hint}`);
  return { isOk: response.ok, answer };
}

async function upload(context: AppCommandContext): Promise<number> {
  const [catalog = "", ...files] = context.args;
  const made = await call(context, "POST", "", { id: catalog });
  if (!made.isOk && made.answer.error && !/already/.test(made.answer.error.message)) return 1;
  let code = 0;
  for (const file of files) {
    const given = context.options["name"];
    const name =
      typeof given === "string" && files.length === 1 ? given : basename(file).replace(/\.(json|ya?ml)$/i, "");
    const text = await readFile(file, "utf8");
    const { isOk, answer } = await call(context, "PUT", `/${catalog}/specs/${encodeURIComponent(name)}`, text);
    if (!isOk) code = 1;
    else context.print(JSON.stringify(answer));
  }
  return code;
}

async function status(context: AppCommandContext): Promise<number> {
  const { isOk, answer } = await call(context, "GET", `/${context.args[0]}/embedding-status`);
  if (!isOk) return 1;
  context.print(String(answer["banner"]));
  for (const { name, badge, lastError } of answer["specs"] as {
    name: string;
    badge: string;
    lastError: string | null;
  }[]) {
    context.print(`${name}  ${badge}${lastError === null ? "" : `  ${lastError}`}`);
  }
  return 0;
}

async function find(context: AppCommandContext): Promise<number> {
  const [catalog, ...words] = context.args;
  const query = new URLSearchParams({ q: words.join(" ") });
  for (const name of ["by", "limit"]) {
    const value = context.options[name];
    if (typeof value === "string") query.set(name, value);
  }
  const { isOk, answer } = await call(context, "GET", `/${catalog}/search?${query.toString()}`);
  if (!isOk) return 1;
  type Line = { spec: string; method: string; path: string; summary: string };
  for (const { spec, method, path, summary } of answer["hits"] as Line[]) {
    context.print(`${spec}  ${method} ${path}  ${summary}`);
  }
  if (answer["isComplete"] !== true) context.note("Indexing is still going on: there may be more by meaning.");
  if (typeof answer["trouble"] === "string") context.note(`By words only: ${answer["trouble"]}`);
  return 0;
}
