// holdfast batches: make batches on a running server, watch them, act on them.
import type { Command } from "commander";
import { actOnEach } from "../act-on-each.ts";
import { durationMs } from "../../shared/duration.ts";
import type { BatchesApi } from "../batches-api.ts";
import { confirm } from "../confirm.ts";
import { EXIT } from "../exit-codes.ts";
import { isForPrograms, note, noteNext, print, printData, table } from "../output.ts";
import { Problem } from "../problem.ts";
import { batchTable, showBatch } from "../show-batch.ts";
import { endedWell, watchBatch } from "../watch-batch.ts";
import { addBatchesCreate } from "./batches-create.ts";
import { addBatchesExport } from "./batches-export.ts";
import { type ClientFlags, readBatchesApi, withClientFlags } from "./options.ts";

interface ListFlags extends ClientFlags {
  state?: string;
  kind?: string;
  owner?: string;
  withErrors?: boolean;
  limit?: string;
  cursor?: string;
}

export function addBatches(program: Command): void {
  const batches = program.command("batches").summary("make batches on a running server, watch them, act on them");
  addBatchesCreate(batches);
  withClientFlags(
    batches
      .command("list", { isDefault: true })
      .description("lists batches, newest first")
      .option("--state <state>", "queued, running, paused, done or cancelled; several with commas")
      .option("--kind <kind>", "only this kind")
      .option("--owner <owner>", "only this owner's")
      .option("--with-errors", "only those with items that failed")
      .option("--limit <number>", "how many (default 50, at most 500)")
      .option("--cursor <cursor>", "the page after this one, as the page before said"),
  ).action(runList);
  withClientFlags(
    batches.command("show").description("shows a batch and how far it is").argument("<id>", "its id"),
  ).action(runShow);
  withClientFlags(
    batches
      .command("items")
      .description("lists its items in their order")
      .argument("<id>", "its id")
      .option("--state <state>", "pending, running, handed-over, error, cancelled, or another outcome of its kind")
      .option("--limit <number>", "how many (default 50, at most 500)")
      .option("--cursor <cursor>", "the page after this one, as the page before said"),
  ).action(runItems);
  withClientFlags(
    batches
      .command("errors")
      .description("shows its errors, those that look alike together")
      .argument("<id>", "its id"),
  ).action(runErrors);
  withClientFlags(
    batches
      .command("watch")
      .description("watches it until it has ended; exit code 4 if it was cancelled or items failed")
      .argument("<id>", "its id")
      .option("--timeout <duration>", "no longer than this; exit code 124"),
  ).action(runWatch);
  addAction(batches, "pause", "what runs finishes, nothing starts", async (api, id) => {
    await api.pause(id);
    return `${id} is paused.`;
  });
  addAction(batches, "resume", "goes on with batches that were paused", async (api, id) => {
    await api.resume(id);
    return `${id} goes on.`;
  });
  addAction(batches, "close", "says that no more items will come", async (api, id) => {
    const { total } = await api.close(id);
    return `${id} is closed, with ${total} items.`;
  });
  withClientFlags(
    batches
      .command("retry-failed")
      .description("runs items that failed again, with all their attempts")
      .argument("<id...>", "one id or several")
      .option("--items <places>", "only the items at these places, with commas: 4,9,12; with one id"),
  ).action(runRetryFailed);
  addAction(
    batches,
    "cancel",
    "ends batches: what waits is cancelled, what runs is told to stop",
    async (api, id) => {
      const { counts } = await api.cancel(id);
      return `${id} is cancelled; ${counts["running"] ?? 0} items still have to stop.`;
    },
    "What is cancelled cannot go on. Cancel",
  );
  addAction(
    batches,
    "delete",
    "removes batches that have ended, with their items",
    async (api, id) => ((await api.remove(id)).deleted ? `${id} is gone.` : `${id} was not there.`),
    "Items and results cannot be brought back. Delete",
  );
  addBatchesExport(batches);
}

type Act = (api: BatchesApi, id: string) => Promise<string>;

/** `question`: it is asked, or --yes is given, before anything is done. */
function addAction(batches: Command, verb: string, description: string, act: Act, question?: string): void {
  const command = batches.command(verb).description(description).argument("<id...>", "one id or several");
  if (question !== undefined) command.option("-y, --yes", "do it without asking");
  withClientFlags(command).action(async (ids: string[], flags: ClientFlags & { yes?: boolean }) => {
    if (question !== undefined) {
      await confirm(`${question} ${ids.length === 1 ? ids[0]! : `${ids.length} batches`}?`, flags.yes);
    }
    const api = await readBatchesApi(flags);
    await actOnEach(ids, flags, (id) => act(api, id));
  });
}

async function runRetryFailed(ids: string[], flags: ClientFlags & { items?: string }): Promise<void> {
  if (flags.items !== undefined && ids.length > 1) {
    throw new Problem("--items is given with several batches.", "Give the id of one.", EXIT.usage);
  }
  const api = await readBatchesApi(flags);
  await actOnEach(ids, flags, async (id) => {
    const { retried } = await api.retryFailed(id, flags.items);
    return `${retried === 1 ? "1 item" : `${retried} items`} of ${id} ${retried === 1 ? "waits" : "wait"} again.`;
  });
}

async function runList(flags: ListFlags): Promise<void> {
  const { state, kind, owner, limit, cursor } = flags;
  const withErrors = flags.withErrors ? "true" : undefined;
  const page = await (await readBatchesApi(flags)).list({ state, kind, owner, withErrors, limit, cursor });
  if (printData(flags, page, page.batches)) return;
  if (page.batches.length === 0) note("There are no such batches.");
  else print(batchTable(page.batches));
  noteNext(page);
}

async function runShow(id: string, flags: ClientFlags): Promise<void> {
  const batch = await (await readBatchesApi(flags)).read(id);
  if (!printData(flags, batch)) print(showBatch(batch));
}

async function runItems(id: string, flags: ListFlags): Promise<void> {
  const { state, limit, cursor } = flags;
  const page = await (await readBatchesApi(flags)).items(id, { state, limit, cursor });
  if (printData(flags, page, page.items)) return;
  if (page.items.length === 0) note("There are no such items here.");
  else {
    const rows = page.items.map((item) => [
      String(item.seq),
      item.state,
      String(item.attempt),
      JSON.stringify(item.payload).slice(0, 60),
      item.error?.message.slice(0, 60) ?? "",
    ]);
    print(table(["SEQ", "STATE", "TRY", "PAYLOAD", "ERROR"], rows));
  }
  noteNext(page);
}

async function runErrors(id: string, flags: ClientFlags): Promise<void> {
  const { errors } = await (await readBatchesApi(flags)).errors(id);
  if (printData(flags, { errors }, errors)) return;
  if (errors.length === 0) return note("No item has failed.");
  const rows = errors.map(({ count, lastSeq, lastAt, sample }) => [
    String(count),
    String(lastSeq),
    lastAt,
    `${sample.name}: ${sample.message}`.slice(0, 100),
  ]);
  print(table(["COUNT", "LAST ITEM", "LAST AT", "SAMPLE"], rows));
}

async function runWatch(id: string, flags: ClientFlags & { timeout?: string }): Promise<void> {
  const timeoutMs = flags.timeout === undefined ? Infinity : durationMs("--timeout", flags.timeout);
  const batch = await watchBatch(await readBatchesApi(flags), id, { asJson: isForPrograms(flags), timeoutMs });
  if (!endedWell(batch)) process.exitCode = EXIT.jobFailed;
}
