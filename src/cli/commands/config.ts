// holdfast config: what a server started here would run with, and where each value comes from. Secrets are masked.
import { relative } from "node:path";
import type { Command } from "commander";
import { loadConfig } from "../config-file.ts";
import { readEnv } from "../env.ts";
import { findServer } from "../find-server.ts";
import { configSchema } from "../config-schema.ts";
import { type DataFlags, print, printData, printJson } from "../output.ts";
import { resolveSettings } from "../settings.ts";
import { shownSettings, textOfSetting } from "../shown-settings.ts";
import { withDataFlags, withHttpFlags, withWorkerFlags, type ServerOptions } from "./options.ts";

export function addConfig(program: Command): void {
  const config = program
    .command("config")
    .summary("print the settings in effect and where each comes from, or their JSON Schema");
  const command = config
    .command("print", { isDefault: true })
    .description(
      "Prints what a server started here with the same flags would run with, and where each value comes from.",
    );
  withDataFlags(withHttpFlags(withWorkerFlags(command))).action(runConfig);
  config
    .command("schema")
    .description(
      "Prints the JSON Schema of the configuration file, for editors:\n" +
        'holdfast config schema > holdfast.schema.json, and in holdfast.config.json "$schema": "./holdfast.schema.json".',
    )
    .action(() => printJson(configSchema()));
}

async function runConfig(options: ServerOptions & DataFlags): Promise<void> {
  const env = readEnv(process.env);
  const file = await loadConfig(process.cwd(), options.config);
  const settings = resolveSettings(options, env, file);
  const { port } = settings;
  const url = await findServer({ url: undefined, env, cwd: process.cwd(), flags: options }).catch(() => ({
    value: `http://127.0.0.1:${port.value}`,
    source: port.source,
  }));
  const shown = { ...shownSettings(settings), url };
  const path = file === null ? null : relative(process.cwd(), file.path);
  const lines = Object.entries(shown).map(([setting, { value, source }]) => ({ setting, value, source }));
  if (printData(options, { configFile: path, settings: shown }, lines)) return;
  print(`configuration file: ${path ?? "none"}\n`);
  const rows = Object.entries(shown).map(([name, { value, source }]) => [name, textOfSetting(value), source] as const);
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  for (const [name, value, source] of rows) {
    print(`${name.padEnd(widths[0]!)}  ${value.padEnd(widths[1]!)}  ${source}`);
  }
}
