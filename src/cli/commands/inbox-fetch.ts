// holdfast inbox fetch RECIPIENT ID: one parcel into a folder, verified, or to stdout. It is not acked unless asked.
import type { Command } from "commander";
import { saveFile } from "../../inbox/save-file.ts";
import { EXIT } from "../exit-codes.ts";
import { isForPrograms, note, print, printData } from "../output.ts";
import { Problem } from "../problem.ts";
import { showProgress } from "../progress.ts";
import { type ClientFlags, readInboxApi, withClientFlags } from "./options.ts";

interface FetchFlags extends ClientFlags {
  into?: string;
  stdout?: boolean;
  ack?: boolean;
}

export function addInboxFetch(inbox: Command): void {
  const command = inbox
    .command("fetch")
    .description("Saves one parcel and prints where. A fetch that broke off goes on where it stopped.")
    .argument("<recipient>", "whose inbox")
    .argument("<id>", "its id")
    .option("--into <folder>", "where to (default: this folder)")
    .option("--stdout", "the bytes to stdout instead; nobody checks their hash")
    .option("--ack", "say that it has arrived, once it is saved and verified");
  withClientFlags(command).action(runFetch);
}

async function runFetch(recipient: string, id: string, flags: FetchFlags): Promise<void> {
  if (flags.stdout && (flags.ack || isForPrograms(flags) || flags.into !== undefined)) {
    throw new Problem("--stdout goes with none of --ack, --json and --into.", "Leave them out.", EXIT.usage);
  }
  const api = await readInboxApi(flags);
  if (flags.stdout) {
    for await (const piece of api.content(recipient, id, 0)) {
      if (!process.stdout.write(piece)) await new Promise((resolve) => process.stdout.once("drain", resolve));
    }
    return;
  }
  const { name, size, sha256 } = await api.read(recipient, id);
  const progress = showProgress(name, size);
  const read = (start: number): AsyncIterable<Uint8Array> => api.content(recipient, id, start);
  const saved = await saveFile({ id, name, size, sha256, read }, flags.into ?? ".", (done) =>
    progress.update(done),
  ).finally(() => progress.end());
  const answer = flags.ack ? await api.ack(recipient, id) : undefined;
  if (printData(flags, { id, ...saved, ...answer })) return;
  print(saved.path);
  if (saved.wasThere) note("It was there already, whole.");
}
