// holdfast workers: who works on a server's database, and what each holds.
import type { Command } from "commander";
import { formatDuration } from "../../shared/duration.ts";
import { note, print, printData, table } from "../output.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

export function addWorkers(program: Command): void {
  const command = program
    .command("workers")
    .summary("list workers, with what they run and for how long they hold it")
    .description("Lists the workers of all processes on the server's database, with the leases that they hold.");
  withClientFlags(command).action(runWorkers);
}

async function runWorkers(flags: ClientFlags): Promise<void> {
  const list = await readApi(flags).listWorkers();
  if (printData(flags, list, list.workers)) return;
  if (list.workers.length === 0) note("There are no workers.");
  else {
    const rows = list.workers.map((worker) => [
      worker.name,
      `${worker.running}/${worker.concurrency}`,
      `${formatDuration(worker.silentMs)} ago`,
      worker.leases.length === 0 ? "" : formatDuration(Math.max(0, worker.leases[0]!.expiresInMs)),
      worker.kinds.join(", "),
    ]);
    print(table(["WORKER", "RUNNING", "HEARD OF", "NEXT LEASE ENDS", "KINDS"], rows));
  }
  for (const lease of list.orphans) {
    note(
      `Nobody holds ${lease.jobIds.join(", ")} any more: expires in ${formatDuration(Math.max(0, lease.expiresInMs))}`,
    );
  }
}
