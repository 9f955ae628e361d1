// holdfast inbox pull RECIPIENT --into DIR: be the recipient. stdout is the path of each file that arrived.
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { isForPrograms, note, noteError, print } from "../output.ts";
import { pull } from "../pull.ts";
import { watchSignals } from "../signals.ts";
import { type ClientFlags, readInboxApi, withClientFlags } from "./options.ts";

interface PullFlags extends ClientFlags {
  into: string;
  once?: boolean;
}

export function addInboxPull(inbox: Command): void {
  const command = inbox
    .command("pull")
    .description(
      "Saves every parcel of a recipient into a folder, verified, and acks it; waits for more until it is stopped.\n" +
        "Stopped or killed at any moment, it goes on where it was: no second copies, nothing skipped.",
    )
    .argument("<recipient>", "whose inbox")
    .requiredOption("--into <folder>", "where to; made if it is not there")
    .option("--once", "end when nothing is left");
  withClientFlags(command).action(runPull);
}

async function runPull(recipient: string, flags: PullFlags): Promise<void> {
  const api = await readInboxApi(flags);
  const stopping = new AbortController();
  const signals = watchSignals((signal) => note(`${signal} again: ending now.`));
  void signals.first.then(() => stopping.abort());
  if (!flags.once) note(`Waiting for parcels of ${recipient} at ${api.url}. Ctrl-C ends it.`);
  const { failed } = await pull({
    api,
    recipient,
    into: flags.into,
    once: flags.once === true,
    signal: stopping.signal,
    onPulled(parcel, path, wasThere) {
      if (isForPrograms(flags)) print(JSON.stringify({ ...parcel, path, wasThere }));
      else print(path);
    },
    onFailed(error, parcel) {
      if (parcel) note(`${parcel.id} (${parcel.name}) stays in the inbox:`);
      noteError(error, flags.verbose === true);
    },
  });
  process.exit(failed > 0 ? EXIT.failed : EXIT.ok);
}
