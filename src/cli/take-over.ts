// What runs in a server process, and how it takes over a configuration that changed while it runs.
//
// New jobs go to a new worker with the new handlers; the old one takes no more, finishes what it has with the old ones,
// and ends. HTTP knows the new kinds from its next request on. What fails before that leaves everything as it was.
import { hostname } from "node:os";
import { prepareApps, startApps } from "../apps/start-apps.ts";
import type { Holdfast } from "../client/client.ts";
import type { HttpServer } from "../http/serve.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { Worker } from "../worker/worker.ts";
import { callableUrl } from "./banner.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";
import { listedSettings } from "./shown-settings.ts";

export interface Running {
  hf?: Holdfast;
  kinds?: string[];
  stopApps?: () => Promise<void>;
  server?: HttpServer;
  /** The newest last; those before it take no more jobs. */
  workers: Worker[];
}

export interface TakeOverInput {
  command: "dev" | "start" | "worker";
  settings: Settings;
  log: Log;
}

export async function startWorker(
  hf: Holdfast,
  kinds: readonly AnyJobKind[],
  settings: Settings,
  log: Log,
  name = `${hostname()}:${process.pid}`,
): Promise<Worker> {
  return await hf.work(kinds, {
    concurrency: settings.concurrency.value,
    grace: settings.grace.value,
    name,
    hungHook: new URL(`./hung-hook.js?log=${log.format}`, import.meta.url),
  });
}

let generation = 1;

export async function takeOver({ command, settings, log }: TakeOverInput, running: Running): Promise<void> {
  const { hf, server } = running;
  if (!hf) return;
  const apps = settings.apps.value;
  const kinds = [
    ...settings.jobs.value,
    ...(await prepareApps(hf, apps, settings.jobs.value, { replaceChores: true })),
  ];
  const old = running.workers.at(-1);
  if (kinds.length > 0) {
    generation += 1;
    running.workers.push(await startWorker(hf, kinds, settings, log, `${hostname()}:${process.pid}/${generation}`));
  }
  server?.update({ kinds, apps, settings: listedSettings(settings) });
  running.kinds = kinds.map(({ kind }) => kind);
  const left = old?.running ?? 0;
  if (old) void retire(old, running, log);
  log.info("The configuration has changed and was taken over", {
    kinds: running.kinds,
    // So many go on with the handlers that they began with.
    goOn: left === 0 ? undefined : left,
  });
  // Two of one app would take each other's port, or each other's messages.
  const { stopApps } = running;
  delete running.stopApps;
  await stopApps?.();
  try {
    running.stopApps = await startApps(hf, apps, { mode: command, url: server && callableUrl(server), log });
  } catch (error) {
    log.error("The apps did not start again: they are off until the next change", { error });
  }
}

async function retire(worker: Worker, running: Running, log: Log): Promise<void> {
  try {
    await worker.drain("a changed configuration");
    await worker.stop();
  } catch (error) {
    log.warn("A worker with the old handlers did not end", { error });
    return;
  }
  running.workers = running.workers.filter((other) => other !== worker);
}
