// holdfast batches create KIND --file FILE, and add: items from a file or from stdin. stdout is the id of the batch.
import type { Command } from "commander";
import type { BatchesApi, Sent } from "../batches-api.ts";
import { EXIT } from "../exit-codes.ts";
import { openLines, readList } from "../item-lines.ts";
import { isForPrograms, note, print, printData } from "../output.ts";
import { Problem } from "../problem.ts";
import { batchLine } from "../show-batch.ts";
import { endedWell, watchBatch } from "../watch-batch.ts";
import { type ClientFlags, readBatchesApi, readTimeout, withClientFlags } from "./options.ts";

interface FileFlags extends ClientFlags {
  file?: string;
  field?: string;
}

interface CreateFlags extends FileFlags {
  key?: string;
  owner?: string;
  total?: string;
  open?: boolean;
  concurrency?: string;
  attempts?: string;
  priority?: string;
  onDone?: string;
  fields?: string;
  wait?: boolean;
  timeout?: string;
}

interface AddFlags extends FileFlags {
  writer?: string;
  from?: string;
  close?: boolean;
}

export function addBatchesCreate(batches: Command): void {
  withClientFlags(
    withFile(
      batches
        .command("create")
        .description("Makes a batch from a file of items and prints its id.")
        .argument("<kind>", "the kind of the batch"),
    )
      .option("--key <key>", "one key is one batch; sent again, it goes on where it stopped")
      .option("--owner <owner>", "whose it is")
      .option("--total <number>", "how many items there will be, if not all come now")
      .option("--open", "more items will be added")
      .option("--concurrency <number>", "items that run at once (default: the kind's)")
      .option("--attempts <number>", "how often an item is tried (default: the kind's)")
      .option("--priority <number>", "-100 to 100; higher runs sooner (default: 0)")
      .option(
        "--on-done <kind>",
        "a job that is inserted when the batch is done: a kind, or JSON with kind and payload",
      )
      .option("--fields <json>", 'kept with it, for its owner: \'{"title":"spring"}\'')
      .option("--wait", "watch it until it has ended; exit code 4 if it was cancelled or items failed")
      .option("--timeout <duration>", "how long --wait waits (default: for ever); exit code 124"),
  )
    .addHelpText(
      "after",
      `
Examples:
  seq 100 | holdfast batches create sample.check --file - --field n --wait
  holdfast batches create articles.import --file urls.ndjson --key import-42`,
    )
    .action(runCreate);
  withClientFlags(
    withFile(
      batches.command("add").description("Adds items to a batch that is open.").argument("<id>", "the id of the batch"),
    )
      .option("--writer <name>", "who adds: items of one writer are taken in order, each once")
      .option("--from <number>", "how many items of this writer came before")
      .option("--close", "these are the last of all"),
  ).action(runAdd);
}

const withFile = (command: Command): Command =>
  command
    .option("--file <file>", "one item in JSON on each line, or a list in a .json file; - is stdin")
    .option("--field <name>", "each line is a plain text, and becomes this field of an item");

async function runCreate(kind: string, flags: CreateFlags): Promise<void> {
  const timeoutMs = readTimeout(flags);
  const api = await readBatchesApi(flags);
  const { key, owner, total, concurrency, attempts, priority, open } = flags;
  const values = { onDone: readFollowUp(flags.onDone), fields: readJson("--fields", flags.fields) };
  const numbers = { total, concurrency, attempts, priority };
  const sent = await read(flags, { texts: { kind, key, owner }, numbers, marks: { open }, values });
  const answer = await api.create(sent);
  if (!answer.created) note(`The key "${key ?? ""}" was known: this is its batch; ${answer.added} items were new.`);
  if (flags.wait) return await wait(api, answer.id, flags, timeoutMs);
  if (!printData(flags, answer)) print(answer.id);
}

async function wait(api: BatchesApi, id: string, flags: CreateFlags, timeoutMs: number): Promise<void> {
  const asJson = isForPrograms(flags);
  if (!asJson) print(id);
  const batch = await watchBatch(api, id, { asJson, timeoutMs });
  if (!asJson) note(batchLine(batch));
  if (!endedWell(batch)) process.exitCode = EXIT.jobFailed;
}

async function runAdd(id: string, flags: AddFlags): Promise<void> {
  if (flags.file === undefined) throw new Problem("There are no items.", "Give --file FILE, or --file -.", EXIT.usage);
  const { writer, from, close } = flags;
  const said = { texts: { writer }, numbers: { from }, marks: { close }, values: {} };
  const answer = await (await readBatchesApi(flags)).add(id, await read(flags, said));
  if (!printData(flags, answer)) print(`${answer.added} items were added; there are ${answer.total}.`);
}

interface Said {
  texts: Record<string, string | undefined>;
  numbers: Record<string, string | undefined>;
  marks: Record<string, boolean | undefined>;
  /** Whatever JSON can be. */
  values: Record<string, unknown>;
}

/** A list is a JSON body; lines are sent as they are, with everything else in the query. */
async function read({ file, field }: FileFlags, { texts, numbers, marks, values }: Said): Promise<Sent> {
  if (file === undefined && field !== undefined) {
    throw new Problem("--field is given without --file.", "Say where the lines are.", EXIT.usage);
  }
  const items = file === undefined ? [] : await readList(file);
  if (items === undefined) {
    const plain = Object.entries({ ...texts, ...numbers, ...marks }).map(([name, value]) => [name, value?.toString()]);
    const json = Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]);
    return {
      query: Object.fromEntries([...plain, ...json]) as Record<string, string>,
      lines: await openLines(file!, field),
    };
  }
  if (field !== undefined) {
    throw new Problem("--field is for lines, and the file is a JSON list.", "Leave it out.", EXIT.usage);
  }
  const counted = Object.entries(numbers).map(([name, value]) => [
    name,
    value === undefined ? value : toInteger(name, value),
  ]);
  return { json: { ...texts, ...Object.fromEntries(counted), ...marks, ...values, items } };
}

function toInteger(name: string, value: string): number {
  if (/^-?\d{1,9}$/.test(value)) return Number(value);
  throw new Problem(`--${name} is ${JSON.stringify(value)}.`, "Give a whole number.", EXIT.usage);
}

/** A kind alone, or all of it as JSON. */
function readFollowUp(text: string | undefined): unknown {
  return text === undefined || text.trimStart().startsWith("{") ? readJson("--on-done", text) : { kind: text };
}

function readJson(name: string, text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(`${name} is ${JSON.stringify(text.slice(0, 100))}.`, "Give JSON.", EXIT.usage);
  }
}
