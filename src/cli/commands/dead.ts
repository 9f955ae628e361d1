// holdfast dead: what needs a person, by what killed it; and all of a group again, at a rate, or put away.
import type { Command } from "commander";
import type { ActionVerb } from "../../store/actions/rows.ts";
import { confirm } from "../confirm.ts";
import { EXIT } from "../exit-codes.ts";
import { note, print, printData, table } from "../output.ts";
import { Problem } from "../problem.ts";
import { watchAction } from "../watch-action.ts";
import { type ClientFlags, readApi, readTimeout, withClientFlags } from "./options.ts";

interface DeadFlags extends ClientFlags {
  kind?: string;
  queue?: string;
  fingerprint?: string;
  error?: string;
  rate?: string;
  wait?: boolean;
  timeout?: string;
  yes?: boolean;
}

export function addDead(program: Command): void {
  const dead = program.command("dead").summary("dead jobs by what killed them; redrive them, or put them away");
  withClientFlags(
    dead
      .command("list", { isDefault: true })
      .description("lists dead jobs, those with the same cause together, the largest group first")
      .option("--limit <number>", "how many (default 50, at most 200)"),
  ).action(runList);
  addVerb(dead, "redrive", "retry", "runs dead jobs again, in the background, each with all its attempts");
  addVerb(dead, "discard", "discard", "puts dead jobs away, in the background; they stay readable for a while");
}

function addVerb(dead: Command, name: string, verb: ActionVerb, description: string): void {
  const command = dead
    .command(name)
    .description(`${description}. Without a filter: all of them.`)
    .option("--kind <kind>", "only of this kind")
    .option("--queue <queue>", "only in this queue")
    .option("--fingerprint <fingerprint>", "only of this cause, as the list says it")
    .option("--error <text>", "only with this in their last error")
    .option("--rate <rate>", "no faster than this, such as 200/m or 10/s")
    .option("--wait", "watch it until it has ended")
    .option("--timeout <duration>", "how long --wait waits (default: for ever); exit code 124")
    .option("-y, --yes", "do it without asking");
  withClientFlags(command)
    .addHelpText("after", `\nExample:\n  holdfast dead ${name} --kind mail.send --rate 200/m --wait`)
    .action((flags: DeadFlags) => run(name, verb, flags));
}

async function runList(flags: ClientFlags & { limit?: string }): Promise<void> {
  const { groups } = await (await readApi(flags)).listDead({ limit: flags.limit });
  if (printData(flags, { groups }, groups)) return;
  if (groups.length === 0) return note("No job is dead.");
  const rows = groups.map(({ count, more, kind, queue, fingerprint, name, message, lastAt }) => [
    `${count}${more ? "+" : ""}`,
    kind,
    queue,
    fingerprint,
    lastAt,
    `${name ?? "Unknown"}: ${message ?? ""}`.slice(0, 100),
  ]);
  print(table(["JOBS", "KIND", "QUEUE", "FINGERPRINT", "NEWEST", "ERROR"], rows));
}

async function run(name: string, verb: ActionVerb, flags: DeadFlags): Promise<void> {
  const timeoutMs = readTimeout(flags);
  const perMinute = flags.rate === undefined ? undefined : toPerMinute(flags.rate);
  const { kind, queue, fingerprint, error } = flags;
  const api = await readApi(flags);
  const { count, more } = await api.countJobs({ status: "dead", kind, queue, fingerprint, error });
  if (count === 0) return note("No dead job fits; nothing was done.");
  const many = `${count}${more ? " or more" : ""} dead ${count === 1 && !more ? "job" : "jobs"}`;
  await confirm(`${name === "redrive" ? "Redrive" : "Discard"} ${many}?`, flags.yes);
  const filter = { status: ["dead"], kind, queue, fingerprint, error };
  const action = await api.startAction({ verb, filter, perMinute });
  note(`${many}: ${action.title}`);
  if (!flags.wait) {
    if (!printData(flags, action)) print(action.id);
    return;
  }
  const ended = await watchAction(api, action.id, timeoutMs);
  if (ended.state !== "done") process.exitCode = EXIT.jobFailed;
  if (!printData(flags, ended)) print(ended.id);
}

function toPerMinute(rate: string): number {
  const [, digits, unit] = /^(\d{1,7})\/(s|m|h)$/.exec(rate) ?? [];
  const each = Math.round(Number(digits) * { s: 60, m: 1, h: 1 / 60 }[unit as "s" | "m" | "h"]);
  if (each >= 1) return each;
  throw new Problem(`--rate is ${JSON.stringify(rate)}.`, "Give so many a second, minute or hour: 200/m.", EXIT.usage);
}
