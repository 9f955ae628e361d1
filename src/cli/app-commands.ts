// Commands that the apps of the configuration file bring along: `holdfast telegram set-webhook`.
import type { Command } from "commander";
import type { AppCommand } from "../apps/define-app.ts";
import { prepareApps } from "../apps/start-apps.ts";
import type { Holdfast } from "../client/client.ts";
import { type LoadedConfig, loadConfig } from "./config-file.ts";
import { type Env, readEnv } from "./env.ts";
import { EXIT } from "./exit-codes.ts";
import { explainLocked, findServer } from "./find-server.ts";
import { note, print } from "./output.ts";
import { printableLines } from "./printable.ts";
import { Problem } from "./problem.ts";
import { openOptions, refuseAccidentalEmbedded, resolveSettings, type Settings } from "./settings.ts";

/** Reads the configuration file, so only for a command that Holdfast itself does not have. */
export async function addAppCommands(program: Command): Promise<void> {
  const file = await loadConfig(process.cwd());
  const builtIn = new Set(program.commands.map((command) => command.name()));
  for (const { name: app, commands = [] } of file?.config.apps ?? []) {
    for (const command of commands) {
      const [first = "", second] = command.name.split(" ");
      if (builtIn.has(first)) {
        throw new Problem(
          `The app "${app}" has the command "${command.name}", and "${first}" is Holdfast's own.`,
          "Give the command another first word.",
          EXIT.usage,
        );
      }
      const parent = second === undefined ? program : groupOf(program, first, app);
      add(parent, second ?? first, command, { app, file });
    }
  }
}

function groupOf(program: Command, name: string, app: string): Command {
  const there = program.commands.find((command) => command.name() === name);
  return there ?? program.command(name).summary(`commands of the app ${app}`);
}

interface Origin {
  app: string;
  file: LoadedConfig | null;
}

function add(parent: Command, name: string, given: AppCommand, { app, file }: Origin): void {
  const { summary, arguments: words = [], options = [], run } = given;
  if (parent.commands.some((command) => command.name() === name)) {
    throw new Problem(`The command "${name}" of the app "${app}" is there twice.`, "Rename one of them.", EXIT.usage);
  }
  const command = parent.command(name).summary(summary).description(summary);
  for (const word of words) command.argument(word);
  for (const [flags, description] of options) command.option(flags, description);
  command.action(async () => {
    const interrupted = new AbortController();
    process.once("SIGINT", () => interrupted.abort());
    let opened: Promise<Holdfast> | undefined;
    const env = readEnv(process.env);
    try {
      const code: unknown = await run({
        open: () => (opened ??= openHere(file, name)),
        server: { url: await serverOf(env), token: env.token?.value },
        args: command.args,
        options: command.opts(),
        // Of what an app prints, much was written by strangers.
        print: (text) => print(printableLines(text)),
        note: (text) => note(printableLines(text)),
        signal: interrupted.signal,
      });
      if (typeof code === "number") process.exitCode = code;
    } finally {
      await (await opened?.catch(() => undefined))?.close();
    }
  });
}

/** The command may do without one: that none is found is told when it calls. */
async function serverOf(env: Env): Promise<string> {
  const found = await findServer({ url: undefined, env, cwd: process.cwd() }).catch(() => null);
  return found?.value ?? "http://127.0.0.1:7070";
}

async function openHere(file: LoadedConfig | null, command: string): Promise<Holdfast> {
  const env = readEnv(process.env);
  const settings: Settings = resolveSettings({}, env, file);
  refuseAccidentalEmbedded(settings, env.isProduction);
  const { open } = await import("../open.ts");
  const hf = await open(openOptions(settings)).catch(
    explainLocked(`The command "${command}"`, "Stop that process first, or give both a PostgreSQL server to share."),
  );
  try {
    await prepareApps(hf, settings.apps.value);
    return hf;
  } catch (error) {
    await hf.close();
    throw error;
  }
}
