// holdfast catalog upload | status | search: the same routes as the page.
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { AppCommand, AppCommandContext } from "holdfast";

interface Answer {
  error?: { code: string; message: string; hint: string };
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

/** undefined: it was refused, and that was said. A catalog that is there already is what was wanted. */
async function call(
  { server, signal, note }: AppCommandContext,
  method: string,
  path: string,
  body?: Uint8Array<ArrayBuffer> | object,
): Promise<Answer | undefined> {
  const isBytes = body instanceof Uint8Array;
  const response = await fetch(`${server.url}/api-catalogs${path}`, {
    method,
    signal,
    headers: {
      "content-type": isBytes ? "application/octet-stream" : "application/json",
      ...(server.token !== undefined && { authorization: `Bearer ${server.token}` }),
    },
    ...(body !== undefined && { body: isBytes ? body : JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Answer;
  if (response.ok || answer.error?.code === "CATALOG_EXISTS") return answer;
  note(`${answer.error?.message} ${answer.error?.hint}`);
  return undefined;
}

const at = (...parts: string[]): string => `/${parts.map(encodeURIComponent).join("/")}`;

async function upload(context: AppCommandContext): Promise<number> {
  const [catalog = "", ...files] = context.args;
  const given = context.options["name"];
  if (typeof given === "string" && files.length > 1) {
    context.note("--name is for one file. Leave it out, or upload them one by one.");
    return 2;
  }
  if (!(await call(context, "POST", "", { id: catalog }))) return 1;
  let code = 0;
  for (const file of files) {
    const name = typeof given === "string" ? given : basename(file).replace(/\.(json|ya?ml)$/i, "");
    const bytes = await readFile(file).catch((error: Error) =>
      context.note(`${file} cannot be read: ${error.message}`),
    );
    const answer = bytes && (await call(context, "PUT", at(catalog, "specs", name), bytes));
    if (answer) context.print(JSON.stringify(answer));
    else code = 1;
  }
  return code;
}

async function status(context: AppCommandContext): Promise<number> {
  const answer = await call(context, "GET", at(context.args[0] ?? "", "embedding-status"));
  if (!answer) return 1;
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
  const [catalog = "", ...words] = context.args;
  const query = new URLSearchParams({ q: words.join(" ") });
  for (const name of ["by", "limit"]) {
    const value = context.options[name];
    if (typeof value === "string") query.set(name, value);
  }
  const answer = await call(context, "GET", `${at(catalog, "search")}?${query.toString()}`);
  if (!answer) return 1;
  type Line = { spec: string; method: string; path: string; summary: string };
  for (const { spec, method, path, summary } of answer["hits"] as Line[]) {
    context.print(`${spec}  ${method} ${path}  ${summary}`);
  }
  for (const note of answer["notes"] as string[]) context.note(note);
  return 0;
}
