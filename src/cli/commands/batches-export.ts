// holdfast batches export ID: all items, one JSON object on each line or as CSV, to stdout or into a file that is there only
// when it is complete.
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { note, print } from "../output.ts";
import { Problem } from "../problem.ts";
import { readBatchesApi, withServerFlags } from "./options.ts";

interface ExportFlags {
  csv?: boolean;
  state?: string;
  out?: string;
  url?: string;
}

export function addBatchesExport(batches: Command): void {
  withServerFlags(
    batches
      .command("export")
      .description("writes all items, one JSON object on each line")
      .argument("<id>", "the id of the batch")
      .option("--csv", "as CSV, for spreadsheets")
      .option("--state <state>", "only items that are this")
      .option("--out <file>", "into this file instead of stdout"),
  ).action(runExport);
}

async function runExport(id: string, { csv, state, out, url }: ExportFlags): Promise<void> {
  const api = await readBatchesApi({ ...(url !== undefined && { url }) });
  const pieces = api.export(id, csv ? "csv" : "ndjson", { state });
  if (out === undefined) {
    await pipeline(Readable.from(pieces), process.stdout, { end: false }).catch(brokenOff);
    return;
  }
  const part = `${out}.part`;
  try {
    await pipeline(Readable.from(pieces), createWriteStream(part)).catch(brokenOff);
    await rename(part, out);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  print(out);
  note("All items are in it.");
}

function brokenOff(error: unknown): never {
  if (error instanceof Problem) throw error;
  throw new Problem("The export broke off: what was written is not all of it.", "Start it again.", EXIT.failed, {
    cause: error,
  });
}
