// holdfast workspace add | pull.
import { resolve } from "node:path";
import { type AppCommand, type AppCommandContext, FolderLocked, OptionInvalid } from "holdfast";
import { AccessRefused } from "./workspace/api.ts";
import type { ReceivedFile, ReceivedMessage } from "./workspace/journal.ts";
import { pullWorkspace } from "./workspace/pull.ts";

export function makeCommands(): AppCommand[] {
  return [
    {
      name: "workspace add",
      summary: "add a workspace; prints its id and the token that opens it, once",
      arguments: ["<name>"],
      options: [
        ["--callback <url>", "post files to this URL, instead of waiting until it polls"],
        ["--callback-token <token>", "what is shown to it: Authorization: Bearer …"],
      ],
      run: add,
    },
    {
      name: "workspace pull",
      summary: "be a workspace: receive its files and messages into a folder, until it is stopped",
      arguments: ["<workspace>"],
      options: [
        ["--into <folder>", "where to; made if it is not there (default: the workspace's id)"],
        ["--once", "end when nothing is left"],
        ["--json", "each file and each message as a line of JSON"],
      ],
      run: pull,
    },
  ];
}

async function add({ server, args: [name], options, print, note }: AppCommandContext): Promise<number> {
  const url = options["callback"];
  const body = {
    name,
    delivery_mode: url === undefined ? "poll" : "push",
    callback_url: url,
    callback_token: options["callbackToken"],
  };
  const headers = {
    "content-type": "application/json",
    ...(server.token === undefined ? {} : { authorization: `Bearer ${server.token}` }),
  };
  const response = await fetch(`${server.url}/workspaces`, { method: "POST", headers, body: JSON.stringify(body) });
  const made = (await response.json()) as { id: string; token: string; error?: { message: string; hint: string } };
  if (!response.ok) {
    note(`${made.error?.message ?? response.status} ${made.error?.hint ?? ""}`);
    return 1;
  }
  print(JSON.stringify({ id: made.id, token: made.token }));
  if (url === undefined)
    note(`On its machine: HOLDFAST_URL=${server.url} HOLDFAST_TOKEN=… holdfast workspace pull ${made.id}`);
  return 0;
}

async function pull({ server, args, options, print, note, signal }: AppCommandContext): Promise<number> {
  const workspace = args[0] ?? "";
  const into = resolve(typeof options["into"] === "string" ? options["into"] : workspace);
  const once = options["once"] === true;
  const say = (entry: ReceivedFile | ReceivedMessage): void => {
    if (options["json"] === true) print(JSON.stringify(entry));
    else if (entry.kind === "message") print(asText(entry));
    else if (!entry.isHere) note(`${entry.name} was gone before it could be fetched.`);
  };
  if (!once) note(`Waiting for files and messages of ${workspace} at ${server.url}, into ${into}. Ctrl-C ends it.`);
  try {
    const { files, messages, gone } = await pullWorkspace({
      url: server.url,
      token: server.token,
      workspace,
      into,
      once,
      signal,
      onFile: say,
      onMessage: say,
      onTrouble: (error) => note(`Trying again: ${asLine(error)}`),
    });
    note(`${files} files and ${messages} messages received${gone > 0 ? `, ${gone} files were gone` : ""}.`);
    return 0;
  } catch (error) {
    if (error instanceof AccessRefused) throw new OptionInvalid(error.message, "Set HOLDFAST_TOKEN to its token.");
    if (error instanceof FolderLocked) throw new OptionInvalid(`Another process receives into ${into}.`, "Let it.");
    throw error;
  }
}

function asText({ text, files }: ReceivedMessage): string {
  const lines = files.map(({ name, uri, isHere }) => `  ${name}: ${isHere ? uri : "gone before it could be fetched"}`);
  return [text, ...lines].filter((line) => line !== "").join("\n");
}

function asLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : "";
  return `${error.message}${cause}`;
}
