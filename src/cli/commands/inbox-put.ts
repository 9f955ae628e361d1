// holdfast inbox put RECIPIENT FILE...: hands files over, all or none. stdout is one id per file.
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { note, print, printData } from "../output.ts";
import { Problem } from "../problem.ts";
import { type Progress, showProgress } from "../progress.ts";
import { type ClientFlags, readInboxApi, withClientFlags } from "./options.ts";

interface PutFlags extends ClientFlags {
  name?: string;
  type?: string;
  ttl?: string;
  key?: string;
  meta?: string;
}

export function addInboxPut(inbox: Command): void {
  const command = inbox
    .command("put")
    .description("Hands files to a recipient, all or none, and prints the id of each. - reads one from stdin.")
    .argument("<recipient>", "for whom")
    .argument("<file...>", "one file or several")
    .option("--name <name>", "another name than the file's (one file only)")
    .option("--type <type>", "what it is, such as image/png (one file only)")
    .option("--ttl <duration>", 'how long it waits, such as "10m" (default: the server\'s, 24h)')
    .option("--key <key>", "one key is one parcel: the same key again is the same parcel")
    .option("--meta <json>", "kept with the parcels");
  withClientFlags(command).action(runPut);
}

interface Source {
  path: string;
  name: string;
  size: number | undefined;
}

async function runPut(recipient: string, paths: string[], flags: PutFlags): Promise<void> {
  const { ttl, key, meta } = flags;
  if (paths.length > 1 && (flags.name !== undefined || flags.type !== undefined || paths.includes("-"))) {
    throw new Problem("--name, --type and - are for one file.", "Put the files one by one.", EXIT.usage);
  }
  const sources = await Promise.all(paths.map((path) => toSource(path, flags.name)));
  const api = await readInboxApi(flags);
  const total = sources.reduce((sum, { size }) => sum + (size ?? 0), 0);
  const progress = showProgress(sources.length === 1 ? sources[0]!.name : `${sources.length} files`, total);
  const sending = makeSending(progress);
  const [only] = sources;
  const put =
    sources.length === 1
      ? api.put(
          recipient,
          { ttl, key, meta, name: only!.name },
          sending.file(only!),
          flags.type ?? "application/octet-stream",
        )
      : api.put(
          recipient,
          { ttl, key, meta },
          sending.form(sources),
          `multipart/form-data; boundary=${sending.boundary}`,
        );
  const { parcels } = await put.finally(() => progress.end());
  if (printData(flags, { parcels }, parcels)) return;
  for (const { id, created, conflict } of parcels) {
    print(id);
    if (conflict) note("The key already stands for other content: the first one stays, yours was not taken.");
    else if (!created) note("The key was known: this is the parcel it already stands for.");
  }
  if (parcels.some(({ conflict }) => conflict)) process.exitCode = EXIT.conflict;
}

async function toSource(path: string, name: string | undefined): Promise<Source> {
  if (path === "-") return { path, name: name ?? "stdin", size: undefined };
  const found = await stat(path).catch((error: unknown) => {
    throw new Problem(`The file ${path} cannot be read.`, "Check the path.", EXIT.usage, { cause: error });
  });
  if (!found.isFile()) throw new Problem(`${path} is not a file.`, "Give files.", EXIT.usage);
  return { path, name: name ?? basename(path), size: found.size };
}

function makeSending(progress: Progress) {
  const boundary = `holdfast-${randomBytes(16).toString("hex")}`;
  let sent = 0;
  async function* file({ path }: Source): AsyncGenerator<Uint8Array> {
    for await (const piece of path === "-" ? process.stdin : createReadStream(path)) {
      const bytes = piece as Buffer;
      sent += bytes.length;
      progress.update(sent);
      yield bytes;
    }
  }
  return {
    boundary,
    file,
    async *form(sources: readonly Source[]): AsyncGenerator<Uint8Array> {
      for (const source of sources) {
        const name = source.name.replace(/"/g, "%22").replace(/\r/g, "%0D").replace(/\n/g, "%0A");
        yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="files"; filename="${name}"\r\n\r\n`);
        yield* file(source);
        yield Buffer.from("\r\n");
      }
      yield Buffer.from(`--${boundary}--\r\n`);
    },
  };
}
