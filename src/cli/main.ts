#!/usr/bin/env node
// The command line: finds the command, runs it, ends with its exit code. Nothing else happens here.
import { Command, CommanderError } from "commander";
import { addAppCommands } from "./app-commands.ts";
import { addActions } from "./commands/actions.ts";
import { addBatches } from "./commands/batches.ts";
import { addBench } from "./commands/bench.ts";
import { addConfig } from "./commands/config.ts";
import { addCompletion, completionsOf } from "./commands/completion.ts";
import { addDead } from "./commands/dead.ts";
import { addDev } from "./commands/dev.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addEnqueue } from "./commands/enqueue.ts";
import { addErrors } from "./commands/errors.ts";
import { addInit } from "./commands/init.ts";
import { addInbox } from "./commands/inbox.ts";
import { addJanitor } from "./commands/janitor.ts";
import { addJobs } from "./commands/jobs.ts";
import { addMigrate } from "./commands/migrate.ts";
import { addQueues } from "./commands/queues.ts";
import { addStart } from "./commands/start.ts";
import { addStats } from "./commands/stats.ts";
import { addToken } from "./commands/token.ts";
import { addWorker } from "./commands/worker.ts";
import { addWorkers } from "./commands/workers.ts";
import { EXIT, explain } from "./exit-codes.ts";
import { noteError, print } from "./output.ts";
import { refuseUnknownSubcommand } from "./refuse-unknown-subcommand.ts";
import { version } from "../shared/version.ts";

const COMMANDS = [
  addInit,
  addDev,
  addStart,
  addWorker,
  addMigrate,
  addDoctor,
  addEnqueue,
  addJobs,
  addErrors,
  addDead,
  addActions,
  addBatches,
  addQueues,
  addWorkers,
  addStats,
  addJanitor,
  addInbox,
  addToken,
  addBench,
  addConfig,
  addCompletion,
];

const EXAMPLES = `
Examples:
  holdfast init my-jobs                                   a project with one job and its test
  holdfast dev                                            try it, with nothing to set up
  holdfast enqueue sample.hello '{"name":"Ada"}' --wait   hand it a job, from another terminal
  holdfast dead                                           what needs a person, by its cause
  holdfast doctor                                         is all well, and what to do if not
`;

async function main(args: readonly string[]): Promise<void> {
  const program = new Command("holdfast")
    .description("Durable background work on Postgres.")
    .version(version())
    .exitOverride()
    .addHelpText("after", EXAMPLES);
  for (const add of COMMANDS) add(program);
  // What is said about a group in the list is said on its own page as well.
  for (const group of program.commands.filter((command) => command.description() === "")) {
    const text = group.summary();
    group.description(`${text.charAt(0).toUpperCase()}${text.slice(1)}.`);
  }
  if (args.length === 0) return program.outputHelp();
  // What a shell asks while somebody types: flags among the words are not for us.
  if (args[0] === "__complete") {
    for (const word of completionsOf(program, args.slice(1))) print(word);
    return;
  }
  try {
    const [first = ""] = args;
    const isOwn =
      first.startsWith("-") || first === "help" || program.commands.some((command) => command.name() === first);
    if (!isOwn) await addAppCommands(program);
    refuseUnknownSubcommand(program, args);
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has said what is wrong.
      process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
      return;
    }
    noteError(error, args.includes("--verbose") || args.includes("-v"));
    process.exitCode = explain(error).exitCode;
  }
}

// `holdfast jobs list | head` closes the pipe: that is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT.ok);
  throw error;
});

// A terminal that was closed must not keep a worker from stopping cleanly.
process.stderr.on("error", () => {});

await main(process.argv.slice(2));
// What a configuration file left open (a pool, a timer) must not keep a command from ending.
process.stdout.write("", () => process.stderr.write("", () => process.exit()));
