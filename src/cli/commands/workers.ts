// holdfast workers: who works on a server's database, what each holds, and asking one to take no more jobs, or to end.
import type { Command } from "commander";
import { formatDuration } from "../../shared/duration.ts";
import { isUuid } from "../../shared/uuid.ts";
import { actOnEach } from "../act-on-each.ts";
import type { Api } from "../api.ts";
import { EXIT } from "../exit-codes.ts";
import { note, print, printData, table } from "../output.ts";
import { Problem } from "../problem.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

export function addWorkers(program: Command): void {
  const workers = program
    .command("workers")
    .summary("who works, what they hold; ask one to take no more jobs, or to end");
  withClientFlags(
    workers
      .command("list", { isDefault: true })
      .description("lists the workers of all processes on the server's database, with the leases that they hold"),
  ).action(runList);
  addAction(workers, "drain", "asks workers to take no more jobs; what runs in them goes on", async (api, id) => {
    const { name } = await api.drainWorker(id);
    return `${name} takes no more jobs.`;
  });
  addAction(
    workers,
    "stop",
    "ends workers: no more jobs, a grace for those that run, the rest is released",
    async (api, id) => {
      const { name } = await api.stopWorker(id);
      return `${name} ends when what runs in it has.`;
    },
  );
  addAction(workers, "resume", "lets workers that were drained take jobs again", async (api, id) => {
    const { name } = await api.resumeWorker(id);
    return `${name} takes jobs again.`;
  });
}

function addAction(
  workers: Command,
  verb: string,
  description: string,
  act: (api: Api, id: string) => Promise<string>,
): void {
  const command = workers.command(verb).description(description).argument("<worker...>", "names or ids");
  withClientFlags(command).action(async (given: string[], flags: ClientFlags) => {
    const api = await readApi(flags);
    const known = given.every(isUuid) ? [] : (await api.listWorkers()).workers;
    await actOnEach(given, flags, (one) => act(api, isUuid(one) ? one : idOf(one, known)));
  });
}

function idOf(name: string, workers: readonly { id: string; name: string }[]): string {
  const named = workers.filter((worker) => worker.name === name);
  if (named.length === 1) return named[0]!.id;
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(", ");
    throw new Problem(`Several workers are named ${name}.`, `Give an id: ${ids}.`, EXIT.conflict);
  }
  throw new Problem(`There is no worker ${name}.`, "`holdfast workers` lists those that are there.", EXIT.notFound);
}

async function runList(flags: ClientFlags): Promise<void> {
  const list = await (await readApi(flags)).listWorkers();
  if (printData(flags, list, list.workers)) return;
  if (list.workers.length === 0) note("There are no workers.");
  else {
    const rows = list.workers.map((worker) => [
      worker.name,
      `${worker.running}/${worker.concurrency}`,
      `${formatDuration(worker.silentMs)} ago`,
      worker.leases.length === 0 ? "" : formatDuration(Math.max(0, worker.leases[0]!.expiresInMs)),
      worker.kinds.join(", "),
      worker.drainAskedAt === null
        ? ""
        : `${worker.stopAskedAt === null ? "draining" : "stopping"}, asked by ${worker.drainAskedBy ?? "somebody"}`,
    ]);
    print(table(["WORKER", "RUNNING", "HEARD OF", "NEXT LEASE ENDS", "KINDS", ""], rows));
  }
  for (const lease of list.orphans) {
    note(
      `Nobody holds ${lease.jobIds.join(", ")} any more: expires in ${formatDuration(Math.max(0, lease.expiresInMs))}`,
    );
  }
}
