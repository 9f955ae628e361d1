// holdfast janitor: what the janitor of a running server does, did and would do.
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { note, noteNext, print, printData, table } from "../output.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

interface JanitorFlags extends ClientFlags {
  chore?: string;
  limit?: string;
  cursor?: string;
}

export function addJanitor(program: Command): void {
  const janitor = program.command("janitor").summary("see what the janitor did and would do, and let it do it now");
  withClientFlags(
    janitor
      .command("history", { isDefault: true })
      .description("lists runs that did something or failed, newest first")
      .option("--chore <name>", "only this chore")
      .option("--limit <number>", "how many (default 50, at most 500)")
      .option("--cursor <cursor>", "the page after this one, as the page before said"),
  ).action(runHistory);
  withClientFlags(
    janitor.command("preview").description("says what a run would remove").argument("[chore]", "only this chore"),
  ).action(runPreview);
  withClientFlags(
    janitor.command("run").description("runs one chore now, or all").argument("[chore]", "only this chore"),
  ).action(runNow);
}

async function runHistory(flags: JanitorFlags): Promise<void> {
  const { chore, limit, cursor } = flags;
  const page = await (await readApi(flags)).choreHistory({ chore, limit, cursor });
  if (printData(flags, page, page.runs)) return;
  if (page.runs.length === 0) return note("The janitor had nothing to do yet.");
  const rows = page.runs.map((run) => [
    run.startedAt,
    run.chore,
    `${Math.round(run.tookMs)}ms`,
    textOf(run.rows),
    run.by,
    run.error ?? "",
  ]);
  print(table(["STARTED", "CHORE", "TOOK", "ROWS", "BY", "ERROR"], rows));
  noteNext(page);
}

async function runPreview(chore: string | undefined, flags: JanitorFlags): Promise<void> {
  const { previews } = await (await readApi(flags)).previewChores({ chore });
  if (printData(flags, { previews }, previews)) return;
  const rows = previews.map((preview) => [preview.chore, `${textOf(preview.rows)}${preview.more ? " or more" : ""}`]);
  print(table(["CHORE", "WOULD REMOVE"], rows));
}

async function runNow(chore: string | undefined, flags: JanitorFlags): Promise<void> {
  const { results } = await (await readApi(flags)).runChores({ chore });
  if (results.some((result) => result.ran && result.error !== null)) process.exitCode = EXIT.failed;
  if (printData(flags, { results }, results)) return;
  const rows = results.map((result) =>
    result.ran
      ? [
          result.chore,
          `${Math.round(result.tookMs)}ms`,
          textOf(result.rows),
          result.error ?? (result.more ? "more is left" : ""),
        ]
      : [result.chore, "", "", `not run: ${result.by ?? "another process"} is at it`],
  );
  print(table(["CHORE", "TOOK", "ROWS", ""], rows));
}

function textOf(rows: Record<string, number>): string {
  const counts = Object.entries(rows).filter(([, count]) => count > 0);
  return counts.length === 0 ? "nothing" : counts.map(([outcome, count]) => `${count} ${outcome}`).join(", ");
}
