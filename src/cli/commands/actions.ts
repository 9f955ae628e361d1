// holdfast actions: what was asked for on many jobs at once, how far it is, and stopping it.
import type { Command } from "commander";
import { actOnEach } from "../act-on-each.ts";
import { note, noteNext, print, printData, table } from "../output.ts";
import { actionLine } from "../watch-action.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

export function addActions(program: Command): void {
  const actions = program.command("actions").summary("what was asked for on many jobs at once; stop it");
  withClientFlags(
    actions
      .command("list", { isDefault: true })
      .description("lists the actions of the last 90 days, newest first")
      .option("--limit <number>", "how many (default 50, at most 100)")
      .option("--cursor <cursor>", "the page after this one, as the page before said"),
  ).action(runList);
  withClientFlags(actions.command("show").description("says how far one is").argument("<id>", "its id")).action(
    runShow,
  );
  withClientFlags(
    actions
      .command("stop")
      .description("stops actions; what they have done stays done")
      .argument("<id...>", "one id or several"),
  ).action(async (ids: string[], flags: ClientFlags) => {
    const api = await readApi(flags);
    await actOnEach(ids, flags, async (id) => `${id} is ${actionLine(await api.cancelAction(id))}.`);
  });
}

async function runList(flags: ClientFlags & { limit?: string; cursor?: string }): Promise<void> {
  const { limit, cursor } = flags;
  const page = await (await readApi(flags)).listActions({ limit, cursor });
  if (printData(flags, page, page.actions)) return;
  if (page.actions.length === 0) return note("Nothing was asked for yet.");
  const rows = page.actions.map((action) => [
    action.id,
    action.createdAt,
    action.askedBy,
    action.title.slice(0, 80),
    actionLine(action),
  ]);
  print(table(["ID", "ASKED FOR", "BY", "WHAT", "STATE"], rows));
  noteNext(page);
}

async function runShow(id: string, flags: ClientFlags): Promise<void> {
  const action = await (await readApi(flags)).readAction(id);
  if (!printData(flags, action)) print(`${action.title}\n${actionLine(action)}`);
}
