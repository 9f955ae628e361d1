// holdfast worker: more hands for a database that others serve.
import type { Command } from "commander";
import { withHealthFlags, withWorkerFlags, type ServerOptions } from "./options.ts";
import { runCommand } from "./serve.ts";

export function addWorker(program: Command): void {
  const command = program
    .command("worker")
    .summary("run a worker, without HTTP but for health checks")
    .description(
      "Runs a worker and nothing else; with --health-port it answers health checks. Start as many as you like on one PostgreSQL server.\n" +
        "The embedded database belongs to one process at a time: there, use dev or start.",
    );
  withHealthFlags(withWorkerFlags(command))
    .option("--once", "run what is due, then end; exit code 4 if a job died in it. stdout is what came of it, in JSON")
    .action((options: ServerOptions & { once?: boolean }) => runCommand("worker", options));
}
