// holdfast errors: what fails, by what the errors have in common.
import type { Command } from "commander";
import { note, print, printData, table } from "../output.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

interface ErrorsFlags extends ClientFlags {
  kind?: string;
  queue?: string;
  limit?: string;
}

export function addErrors(program: Command): void {
  const command = program
    .command("errors")
    .summary("failed attempts by what their errors have in common")
    .description("Lists failed attempts of the last days, those that look alike together, the last one first.")
    .option("--kind <kind>", "only this kind")
    .option("--queue <queue>", "only those seen last in this queue")
    .option("--limit <number>", "how many (default 50, at most 200)");
  withClientFlags(command).action(runErrors);
}

async function runErrors(flags: ErrorsFlags): Promise<void> {
  const { kind, queue, limit } = flags;
  const { errors } = await (await readApi(flags)).listErrors({ kind, queue, limit });
  if (printData(flags, { errors }, errors)) return;
  if (errors.length === 0) return note("Nothing failed in the last days.");
  const rows = errors.map(({ seen, deaths, name, message, ...group }) => [
    ...[seen[0], seen[2], seen[4], deaths].map(String),
    group.kind,
    group.fingerprint,
    group.lastSeenAt,
    `${name}: ${message}`.slice(0, 100),
  ]);
  print(table(["1H", "24H", "7D", "DEAD", "KIND", "FINGERPRINT", "LAST", "ERROR"], rows));
}
