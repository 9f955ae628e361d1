// holdfast jobs: look at jobs on a running server, and act on them.
import type { Command } from "commander";
import { actOnEach } from "../act-on-each.ts";
import type { Api } from "../api.ts";
import { durationMs } from "../../shared/duration.ts";
import { isFinal } from "../../job/states.ts";
import { EXIT } from "../exit-codes.ts";
import { isForPrograms, jobTable, note, noteNext, print, printData } from "../output.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";
import { showJob } from "../show-job.ts";
import { describeEnd, describeStand, waitForJob } from "../wait.ts";

interface ListFlags {
  state?: string;
  status?: string;
  key?: string;
  group?: string;
  error?: string;
  kind?: string;
  queue?: string;
  limit?: string;
  cursor?: string;
}

export function addJobs(program: Command): void {
  const jobs = program.command("jobs").summary("look at jobs on a running server, and act on them");
  withClientFlags(
    jobs
      .command("list", { isDefault: true })
      .description("lists jobs, newest first")
      .option("--state <state>", "pending, running, done, dead or cancelled; several with commas")
      .option("--status <status>", "scheduled, ready, running, retrying, stuck, paused and so on; several with commas")
      .option("--kind <kind>", "only this kind")
      .option("--queue <queue>", "only this queue")
      .option("--key <key>", "only this key")
      .option("--group <group>", "only this group")
      .option("--error <text>", "with this in the last error's name or message")
      .option("--limit <number>", "how many (default 50, at most 500)")
      .option("--cursor <cursor>", "the page after this one, as the page before said"),
  ).action(runList);
  withClientFlags(jobs.command("show").description("shows everything about one job").argument("<id>", "its id")).action(
    runShow,
  );
  withClientFlags(
    jobs
      .command("watch")
      .description("watches one job until it has ended; exit code 4 if it is dead or was cancelled")
      .argument("<id>", "its id")
      .option("--timeout <duration>", "no longer than this; exit code 124"),
  ).action(runWatch);
  addAction(jobs, "cancel", "ends jobs that are waiting or running", async (api, id) => {
    const { cancelRequested } = await api.cancel(id);
    return cancelRequested ? `${id} is running; its worker was told to stop it.` : `${id} is cancelled.`;
  });
  addAction(
    jobs,
    "release",
    "takes running jobs away from their workers: they run again, and use no attempt",
    async (api, id) => {
      await api.release(id);
      return `${id} runs again; what its old run still says is refused.`;
    },
  );
  addAction(jobs, "retry", "runs dead jobs again, with all their attempts", async (api, id) => {
    await api.retry(id);
    return `${id} runs again.`;
  });
  addAction(jobs, "discard", "puts dead jobs away; they stay readable for a while", async (api, id) => {
    await api.discard(id);
    return `${id} is put away.`;
  });
}

function addAction(
  jobs: Command,
  verb: string,
  description: string,
  act: (api: Api, id: string) => Promise<string>,
): void {
  const command = jobs.command(verb).description(description).argument("<id...>", "one id or several");
  withClientFlags(command).action(async (ids: string[], flags: ClientFlags) => {
    const api = await readApi(flags);
    await actOnEach(ids, flags, (id) => act(api, id));
  });
}

async function runList(flags: ListFlags & ClientFlags): Promise<void> {
  const { state, status, kind, queue, key, group, error, limit, cursor } = flags;
  const page = await (await readApi(flags)).list({ state, status, kind, queue, key, group, error, limit, cursor });
  if (printData(flags, page, page.jobs)) return;
  // A search looks at a bounded number of jobs: there may be none on this page, and some on the next.
  if (page.jobs.length === 0) note(page.next === null ? "There are no such jobs." : "There are none so far.");
  else print(jobTable(page.jobs));
  noteNext(page);
}

async function runShow(id: string, flags: ClientFlags): Promise<void> {
  const job = await (await readApi(flags)).read(id);
  if (!printData(flags, job)) print(showJob(job));
}

/** A line for each change; with --json or --ndjson the job as it is then, on a line. */
async function runWatch(id: string, flags: ClientFlags & { timeout?: string }): Promise<void> {
  const timeoutMs = flags.timeout === undefined ? undefined : durationMs("--timeout", flags.timeout);
  let said = "";
  const job = await waitForJob(await readApi(flags), id, timeoutMs, (seen) => {
    const stand = describeStand(seen);
    if (stand === said) return;
    said = stand;
    if (isForPrograms(flags)) print(JSON.stringify(seen));
    else if (!isFinal(seen.state)) print(stand);
  });
  if (!isForPrograms(flags)) print(describeEnd(job));
  if (job.state !== "done") process.exitCode = EXIT.jobFailed;
}
