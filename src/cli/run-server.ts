// dev, start and worker: open the database, serve HTTP, run the worker, and come down cleanly.
//
// Up:   database → apps' tables → port → worker → apps. What fails takes down what was up before it, so that nothing is left behind.
// Down: the apps, then the worker (it waits for its jobs while HTTP still answers), then the port, then the database.
// An error that nobody caught ends the process: its jobs are left as after a crash, so that they run again at once and
// one that keeps killing its process is found out.
import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { prepareApps, startApps } from "../apps/start-apps.ts";
import { announceAddress } from "../db/folder-lock.ts";
import { addressOf, checkPlace, refuseOpenDoor } from "../http/address.ts";
import { PortUnavailable } from "../http/port-unavailable.ts";
import { serve } from "../http/serve.ts";
import { open } from "../open.ts";
import type { Duration } from "../shared/duration.ts";
import { sleep } from "../shared/sleep.ts";
import type { Worker } from "../worker/worker.ts";
import { callableUrl, sayReady } from "./banner.ts";
import { calmTrouble } from "./calm-trouble.ts";
import { EXIT } from "./exit-codes.ts";
import type { Log } from "./log.ts";
import { type ReloadInput, reloadOnChange } from "./reload.ts";
import { reportJobs } from "./report-jobs.ts";
import { embeddedFolder, openOptions, type Settings } from "./settings.ts";
import { listedSettings } from "./shown-settings.ts";
import { type Signals, watchSignals } from "./signals.ts";
import { type Running, startWorker, takeOver } from "./take-over.ts";
import { version } from "../shared/version.ts";

export interface RunServerInput {
  command: "dev" | "start" | "worker";
  settings: Settings;
  log: Log;
  /** The configuration file as it is now, and what to watch for changes; none: it is read once. */
  reload?: Pick<ReloadInput, "loader" | "read"> | undefined;
}

const ABANDON_WITHIN_MS = 2_000;

/** Resolves with the exit code after a clean stop. */
export async function runServer({ command, settings, log, reload }: RunServerInput): Promise<number> {
  // What a second process on the same folder is told.
  process.title = `holdfast ${command}`;
  const running: Running = { workers: [] };
  const signals = watchSignals((signal) => log.warn(`${signal} again: ending now.`));
  endOnUncaught(running, log);
  try {
    await start(command, settings, log, running, signals);
  } catch (error) {
    await stop(running);
    throw error;
  }
  if (!signals.received) {
    const { kinds = [], server } = running;
    sayReady({ command, version: version(), settings, kinds, server, log, write: toStderr });
  }
  const reloading =
    reload &&
    reloadOnChange({ ...reload, settings, apply: (next) => takeOver({ command, settings: next, log }, running), log });
  const signal = await Promise.race([signals.first, endedFromOutside(command, running, signals, log)]);
  if (signal !== "nothing left") sayWaiting(signal, settings.grace.value, running.workers, log);
  await reloading?.stop();
  await stop(running);
  log.info("Stopped.");
  return EXIT.ok;
}

/** Somebody asked its workers to stop. A process that is nothing else ends with them; one that serves HTTP goes on. */
function endedFromOutside(
  command: RunServerInput["command"],
  running: Running,
  signals: Signals,
  log: Log,
): Promise<"nothing left"> {
  return new Promise((resolve) => {
    running.hf?.on("worker.stopped", ({ workerId }) => {
      const left = running.workers.filter(({ id }) => id !== workerId);
      if (signals.received || left.length === running.workers.length) return;
      running.workers = left;
      if (left.length > 0) return;
      if (command === "worker") {
        log.info("The worker was asked to stop, and nothing else runs here: ending.");
        resolve("nothing left");
      } else log.warn("The worker was asked to stop: no jobs run here until the next start.");
    });
  });
}

async function start(
  command: RunServerInput["command"],
  settings: Settings,
  log: Log,
  running: Running,
  signals: Signals,
): Promise<void> {
  const folder = embeddedFolder(settings);
  if (command !== "worker") await checkAddress(settings, folder);
  // The first start takes some seconds, and silence would look like a hang.
  if (folder !== undefined) log.info(`Opening the embedded database in ${folder}`);
  const hf = await open({ ...openOptions(settings), log: calmTrouble(log) });
  running.hf = hf;
  const apps = settings.apps.value;
  const kinds = [...settings.jobs.value, ...(await prepareApps(hf, apps, settings.jobs.value))];
  running.kinds = kinds.map(({ kind }) => kind);
  reportJobs(hf, log, command === "dev" ? "info" : "debug");
  const healthPort = command === "worker" ? settings.healthPort.value : undefined;
  if (command !== "worker" || healthPort !== undefined) {
    running.server = await serve({
      hf,
      kinds,
      apps,
      host: settings.host.value,
      port: healthPort ?? settings.port.value,
      healthOnly: healthPort !== undefined,
      environment: settings.environment.value,
      token: settings.token.value,
      allowedHosts: settings.allowedHosts.value,
      settings: listedSettings(settings),
      isStopping: () => signals.received,
      onError: (error, incident) => log.error("A request failed", { incident, error }),
    });
    // Commands in this folder need not be told where it is.
    if (folder !== undefined && healthPort === undefined)
      announceAddress(await realpath(folder), callableUrl(running.server));
  }
  if (signals.received) return;
  if (kinds.length === 0) await hf.janitor.start();
  else running.workers.push(await startWorker(hf, kinds, settings, log));
  running.stopApps = await startApps(hf, apps, {
    mode: command,
    url: command === "worker" ? undefined : running.server && callableUrl(running.server),
    log,
  });
}

/** Before anything is made. If the folder is there, whoever has the port may have it too, and opening it says who. */
async function checkAddress({ host, port, token }: Settings, folder: string | undefined): Promise<void> {
  const place = { host: host.value, port: port.value };
  const isNew = folder !== undefined && !existsSync(folder);
  try {
    await checkPlace(place);
    // A database that is not there yet holds no tokens.
    if (isNew && token.value === undefined) refuseOpenDoor(host.value, await addressOf(place), "embedded");
  } catch (error) {
    if (!(error instanceof PortUnavailable) || folder === undefined || isNew) throw error;
  }
}

async function stop({ stopApps, workers, server, hf }: Running): Promise<void> {
  await stopApps?.();
  await Promise.all(workers.map((worker) => worker.stop()));
  await server?.close();
  await hf?.close();
}

const SHOWN_JOBS = 5;

function sayWaiting(signal: string, grace: Duration, workers: readonly Worker[], log: Log): void {
  const jobs = workers.flatMap((worker) => worker.runningJobs());
  if (jobs.length === 0) return log.info(`${signal}: stopping.`);
  const shown = jobs.slice(0, SHOWN_JOBS).map((job) => `${job.kind} ${job.id}`);
  const more = jobs.length > SHOWN_JOBS ? ` and ${jobs.length - SHOWN_JOBS} more` : "";
  const count = jobs.length === 1 ? "1 running job" : `${jobs.length} running jobs`;
  log.info(
    `${signal}: stopping. Waiting up to ${grace} for ${count}: ${shown.join(", ")}${more}. What is not done by then goes back and uses no attempt. Once more to end now.`,
  );
}

function endOnUncaught(running: Running, log: Log): void {
  let isEnding = false;
  process.on("uncaughtException", (error, origin) => {
    const what =
      origin === "unhandledRejection" ? "A promise was rejected and nobody caught it" : "Nobody caught an error";
    const count = running.workers.reduce((sum, worker) => sum + worker.running, 0);
    log.error(`${what}: the process ends. The jobs that ran here (${count}) run again and are charged no attempt.`, {
      hint: "A job that ends its process three times while it runs alone is dead.",
      stack: error instanceof Error ? error.stack : String(error),
    });
    if (isEnding) return;
    isEnding = true;
    void leaveAsCrashed(running.workers);
  });
}

async function leaveAsCrashed(workers: readonly Worker[]): Promise<never> {
  const leaving = Promise.allSettled(workers.map((worker) => worker.abandon()));
  await Promise.race([leaving, sleep(ABANDON_WITHIN_MS)]);
  process.exit(EXIT.failed);
}

function toStderr(text: string): void {
  process.stderr.write(text);
}
