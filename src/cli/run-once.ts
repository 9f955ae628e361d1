// holdfast worker --once: runs what is due, and what becomes due by that, and ends when nothing is: for cron, for pipelines,
// and to look at what a queue holds. Jobs that wait for a later time, or that others run, are left alone.
//
// It ends with 0, and with 4 if a job died in it. A signal stops it like any worker.
import { prepareApps } from "../apps/start-apps.ts";
import type { Holdfast } from "../client/client.ts";
import { open } from "../open.ts";
import { sleep } from "../shared/sleep.ts";
import { calmTrouble } from "./calm-trouble.ts";
import { EXIT } from "./exit-codes.ts";
import type { Log } from "./log.ts";
import { print } from "./output.ts";
import { reportJobs } from "./report-jobs.ts";
import { openOptions, type Settings } from "./settings.ts";
import { watchSignals } from "./signals.ts";
import { startWorker } from "./take-over.ts";

const LOOK_MS = 100;

const COUNTED = {
  "job.claimed": "runs",
  "job.done": "done",
  "job.retrying": "retrying",
  "job.snoozed": "snoozed",
  "job.dead": "dead",
  "job.cancelled": "cancelled",
} as const;
type Counts = Record<(typeof COUNTED)[keyof typeof COUNTED], number>;

/** Resolves with the exit code. */
export async function runOnce(settings: Settings, log: Log): Promise<number> {
  process.title = "holdfast worker --once";
  const signals = watchSignals((signal) => log.warn(`${signal} again: ending now.`));
  const hf = await open({ ...openOptions(settings), log: calmTrouble(log) });
  try {
    const counts = count(hf);
    const kinds = [...settings.jobs.value, ...(await prepareApps(hf, settings.apps.value, settings.jobs.value))];
    reportJobs(hf, log, "info");
    if (kinds.length > 0) {
      const worker = await startWorker(hf, kinds, settings, log);
      const names = kinds.map(({ kind }) => kind);
      // Twice: a job may have been on its way from the one to the other.
      for (let quiet = 0; quiet < 2 && !signals.received;) {
        quiet = worker.running === 0 && !(await hf.jobs.areDue(names)) ? quiet + 1 : 0;
        if (quiet < 2) await Promise.race([sleep(LOOK_MS), signals.first]);
      }
      await worker.stop();
    }
    print(JSON.stringify(counts));
    return counts.dead > 0 ? EXIT.jobFailed : EXIT.ok;
  } finally {
    await hf.close();
  }
}

function count(hf: Holdfast): Counts {
  const counts: Counts = { runs: 0, done: 0, retrying: 0, snoozed: 0, dead: 0, cancelled: 0 };
  for (const [event, name] of Object.entries(COUNTED)) {
    hf.on(event as keyof typeof COUNTED, () => (counts[name] += 1));
  }
  return counts;
}
