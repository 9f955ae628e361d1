// holdfast bench: what this database does with Holdfast on it, in a schema (or a folder) of its own that is removed again.
import type { Command } from "commander";
import type { BenchFlags } from "../run-bench.ts";
import { withDatabaseFlags, withDataFlags } from "./options.ts";

export function addBench(program: Command): void {
  const command = program
    .command("bench")
    .summary("how many jobs a second this database takes")
    .description(
      "Measures enqueueing, working and waiting on the configured database, in a schema of its own that is removed again.\n" +
        "It is a load like any other: not for a database that others need now. The embedded database is a new one.",
    );
  withDataFlags(withDatabaseFlags(command))
    .option("--seconds <number>", "how long each step takes", "3")
    .option("--compare", "beside the peers instead, on a PostgreSQL of its own: only in a checkout of Holdfast")
    .option("-v, --verbose", "say more about errors")
    .action(async (flags: BenchFlags) => await (await import("../run-bench.ts")).runBench(flags));
}
