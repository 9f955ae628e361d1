// holdfast enqueue KIND [PAYLOAD]: hands one job to a server, and waits for it if asked. stdout is the job's id (or,
// with --json, one document); everything for people is on stderr.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { HoldfastError } from "../../errors.ts";
import type { NewJobBody } from "../../http/contracts/jobs.ts";
import { refuseRoundedIntegers } from "../../job/storable.ts";
import { EXIT } from "../exit-codes.ts";
import { isForPrograms, note, print, printData } from "../output.ts";
import { Problem } from "../problem.ts";
import { describeEnd, waitForJob } from "../wait.ts";
import { type ClientFlags, readApi, readTimeout, withClientFlags } from "./options.ts";

interface EnqueueFlags extends ClientFlags {
  key?: string;
  coalesce?: string;
  group?: string;
  queue?: string;
  delay?: string;
  at?: string;
  priority?: string;
  attempts?: string;
  wait?: boolean;
  timeout?: string;
}

export function addEnqueue(program: Command): void {
  const command = program
    .command("enqueue")
    .summary("hand a job to a running server")
    .description(
      "Hands a job to a running server and prints its id.\n" +
        "PAYLOAD is JSON, @file to read it from a file, or - to read it from stdin; without it the payload is null.",
    )
    .argument("<kind>", "the kind of the job")
    .argument("[payload]", "JSON, @file or -")
    .option("--key <key>", "one key is one job: the same key again is the same job")
    .option("--coalesce <key>", "replace the payload of the open job with the same coalescing key")
    .option("--group <group>", "jobs of one group run one at a time, in order")
    .option("--queue <queue>", "the queue (default: the kind's)")
    .option("--delay <duration>", 'not before this long, such as "30s" or "5m"')
    .option("--at <time>", "not before this time, in ISO 8601 with a zone, such as 2030-01-31T08:00:00Z")
    .option("--priority <number>", "-100 to 100; higher runs sooner")
    .option("--attempts <number>", "how often it is tried (default: the kind's)")
    .option("--wait", "wait until it is done; exit code 4 if it is dead or was cancelled")
    .option("--timeout <duration>", "how long --wait waits (default: for ever); exit code 124");
  withClientFlags(command)
    .addHelpText(
      "after",
      `
Examples:
  holdfast enqueue sample.hello '{"name":"Ada"}' --wait
  holdfast enqueue mail.send @mail.json --key order-17
  echo '{"name":"Ada"}' | holdfast enqueue sample.hello -`,
    )
    .action(runEnqueue);
}

async function runEnqueue(kind: string, payload: string | undefined, flags: EnqueueFlags): Promise<void> {
  const timeoutMs = readTimeout(flags);
  const api = await readApi(flags);
  const body = await toBody(kind, payload, flags);
  const { id, created, conflict } = await api.enqueue(body);
  if (!isForPrograms(flags)) print(id);
  if (!created) note(whyNotCreated(flags, conflict));
  if (conflict) process.exitCode = EXIT.conflict;
  if (conflict || !flags.wait) {
    printData(flags, { id, created, conflict });
    return;
  }
  const job = await waitForJob(api, id, timeoutMs);
  printData(flags, { ...job, created, conflict });
  note(describeEnd(job));
  if (job.state !== "done") process.exitCode = EXIT.jobFailed;
}

async function toBody(kind: string, payload: string | undefined, flags: EnqueueFlags): Promise<NewJobBody> {
  const { key, coalesce, group, queue, delay, at: runAt } = flags;
  const body: NewJobBody = { kind, payload: await readPayload(payload) };
  const given = { key, coalesce, group, queue, delay, runAt };
  Object.assign(body, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
  if (flags.priority !== undefined) body.priority = toInteger("--priority", flags.priority);
  if (flags.attempts !== undefined) body.attempts = toInteger("--attempts", flags.attempts);
  return body;
}

async function readPayload(given: string | undefined): Promise<unknown> {
  if (given === undefined) return null;
  const { json, where } = await readSource(given);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const hint = `Put JSON in single quotes, such as '{"name":"Ada"}'; a plain text is JSON only in double quotes, '"Ada"'.`;
    throw new Problem(`${where} is not JSON: ${why}.`, hint, EXIT.usage, { cause: error });
  }
  try {
    refuseRoundedIntegers(where, json);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    throw new Problem(error.message, error.hint, EXIT.usage);
  }
  return value;
}

async function readSource(given: string): Promise<{ json: string; where: string }> {
  if (given === "-") return { json: await text(process.stdin), where: "What came from stdin" };
  if (!given.startsWith("@")) return { json: given, where: "The payload" };
  const path = given.slice(1);
  try {
    return { json: await readFile(path, "utf8"), where: `The file ${path}` };
  } catch (error) {
    const why =
      error instanceof Error && "code" in error && error.code === "ENOENT" ? "it is not there" : String(error);
    throw new Problem(`The file ${path} cannot be read: ${why}.`, "Check the path after @.", EXIT.usage, {
      cause: error,
    });
  }
}

function toInteger(name: string, value: string): number {
  if (/^[+-]?\d{1,9}$/.test(value)) return Number(value);
  throw new Problem(`${name} is ${JSON.stringify(value)}.`, "Give a whole number.", EXIT.usage);
}

function whyNotCreated({ key, coalesce }: EnqueueFlags, conflict: boolean): string {
  if (coalesce !== undefined) return `The open job with the coalescing key "${coalesce}" took the new payload.`;
  if (!conflict) return `The key "${key ?? ""}" was known: this is the job it already stands for.`;
  return `The key "${key ?? ""}" already stands for this job, with another payload: the first one stays, yours was not taken.`;
}
