// holdfast stats: what runs came to, by queue and outcome, from the roll-ups of a server's database.
import type { Command } from "commander";
import { durationMs, formatDuration } from "../../shared/duration.ts";
import { note, print, printData, table } from "../output.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

interface StatsFlags extends ClientFlags {
  last: string;
  queue?: string;
}

interface Sum {
  queue: string;
  outcome: string;
  runs: number;
  waitMs: number;
  runMs: number;
}

export function addStats(program: Command): void {
  const command = program
    .command("stats")
    .summary("what runs came to, by queue and outcome")
    .description("Sums up what runs came to, by queue and outcome, from roll-ups that are some seconds old.")
    .option("--last <duration>", "how far back", "1h")
    .option("--queue <queue>", "only this queue");
  withClientFlags(command).action(runStats);
}

async function runStats(flags: StatsFlags): Promise<void> {
  const to = new Date();
  const from = new Date(to.getTime() - durationMs("--last", flags.last));
  const query = { from: from.toISOString(), to: to.toISOString(), queue: flags.queue };
  const { runs } = await (await readApi(flags)).readStats(query);
  const sums = new Map<string, Sum>();
  for (const { queue, outcome, ...counted } of runs) {
    const key = `${queue} ${outcome}`;
    const sum = sums.get(key) ?? { queue, outcome, runs: 0, waitMs: 0, runMs: 0 };
    sum.runs += counted.runs;
    sum.waitMs += counted.waitMs;
    sum.runMs += counted.runMs;
    sums.set(key, sum);
  }
  const rows = [...sums.values()];
  if (printData(flags, { from: query.from, to: query.to, runs: rows }, rows)) return;
  if (rows.length === 0) return note(`Nothing ran in the last ${flags.last}.`);
  const average = (ms: number, count: number): string => formatDuration(Math.round(ms / Math.max(1, count)));
  print(
    table(
      ["QUEUE", "OUTCOME", "RUNS", "WAITED (AVERAGE)", "RAN (AVERAGE)"],
      rows.map((sum) => [
        sum.queue,
        sum.outcome,
        String(sum.runs),
        average(sum.waitMs, sum.runs),
        average(sum.runMs, sum.runs),
      ]),
    ),
  );
}
