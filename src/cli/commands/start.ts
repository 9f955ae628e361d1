// holdfast start: what dev does, for production.
import type { Command } from "commander";
import { withHttpFlags, withWorkerFlags, type ServerOptions } from "./options.ts";
import { runCommand } from "./serve.ts";

export function addStart(program: Command): void {
  const command = program
    .command("start")
    .summary("the same for production: says less, and wants a database")
    .description(
      "Runs a worker and the HTTP API in this process.\n" +
        "With NODE_ENV=production it wants DATABASE_URL, unless the embedded database is asked for with --embedded.",
    );
  withHttpFlags(withWorkerFlags(command)).action((options: ServerOptions) => runCommand("start", options));
}
