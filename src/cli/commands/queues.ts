// holdfast queues: how deep they are, and pausing and resuming them, on a running server.
import type { Command } from "commander";
import { formatDuration } from "../../shared/duration.ts";
import { note, print, printData, table } from "../output.ts";
import { type ClientFlags, readApi, withClientFlags } from "./options.ts";

export function addQueues(program: Command): void {
  const queues = program.command("queues").summary("see how deep the queues are; pause and resume them");
  withClientFlags(queues.command("list", { isDefault: true }).description("lists queues")).action(runList);
  withClientFlags(
    queues
      .command("pause")
      .description("starts no job of this queue any more, in any process; what runs goes on")
      .argument("<queue>", "its name"),
  ).action(runPause);
  withClientFlags(
    queues.command("resume").description("goes on with a queue that was paused").argument("<queue>", "its name"),
  ).action(runResume);
}

async function runList(flags: ClientFlags): Promise<void> {
  const { queues } = await (await readApi(flags)).listQueues();
  if (printData(flags, { queues }, queues)) return;
  if (queues.length === 0) return note("There are no queues with jobs.");
  const rows = queues.map((queue) => [
    queue.queue,
    ...[queue.ready, queue.scheduled, queue.retrying, queue.running, queue.dead, queue.paused].map(String),
    queue.oldestReadyAt === null ? "" : formatDuration(Math.max(0, Date.now() - Date.parse(queue.oldestReadyAt))),
    queue.pausedAt === null ? "" : `paused by ${queue.pausedBy ?? "somebody"}`,
  ]);
  print(table(["QUEUE", "READY", "SCHEDULED", "RETRYING", "RUNNING", "DEAD", "PAUSED", "OLDEST", ""], rows));
}

async function runPause(queue: string, flags: ClientFlags): Promise<void> {
  const result = await (await readApi(flags)).pauseQueue(queue);
  if (printData(flags, result)) return;
  print(result.changed ? `${queue} is paused.` : `${queue} was paused already.`);
}

async function runResume(queue: string, flags: ClientFlags): Promise<void> {
  const result = await (await readApi(flags)).resumeQueue(queue);
  if (printData(flags, result)) return;
  print(result.changed ? `${queue} goes on.` : `${queue} was not paused.`);
}
