// holdfast dev: everything in one process, with nothing to set up.
import type { Command } from "commander";
import { withHttpFlags, withWorkerFlags, type ServerOptions } from "./options.ts";
import { runCommand } from "./serve.ts";

export function addDev(program: Command): void {
  const command = program
    .command("dev")
    .summary("run a worker and the HTTP API here, on the embedded database if there is no other")
    .description(
      "Runs a worker and the HTTP API in this process, and says how to try it.\n" +
        "Without DATABASE_URL the data is in ./.holdfast. Without holdfast.config.ts the sample kinds run.",
    );
  withHttpFlags(withWorkerFlags(command)).action((options: ServerOptions) => runCommand("dev", options));
}
