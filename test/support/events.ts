// Waiting for what Holdfast reports, instead of for time to pass.
import type { Holdfast } from "#src/client/client.js";
import type { Job } from "#src/job/job.js";
import type { HoldfastEvents } from "#src/metrics/events.js";
import { waitForEvent } from "#src/testing/wait-for-event.js";

/** The job when it is done, dead or cancelled. */
export function ended(hf: Holdfast, id: string): Promise<Job> {
  return hf.jobs.wait(id, { timeout: "15s" });
}

/** The next event of this name about this job. Ask before what causes it. */
export function nextOf<Name extends keyof HoldfastEvents>(
  hf: Holdfast,
  name: Name,
  jobId: string,
): Promise<HoldfastEvents[Name]> {
  return waitForEvent(hf, name, (event) => "jobId" in event && event.jobId === jobId, { timeout: "15s" });
}

/** Events of this name as they come, until stop() is called. */
export function collect<Name extends keyof HoldfastEvents>(
  hf: Holdfast,
  name: Name,
): { readonly events: HoldfastEvents[Name][]; stop(): void } {
  const events: HoldfastEvents[Name][] = [];
  return { events, stop: hf.on(name, (event) => void events.push(event)) };
}

/** Resolves when `count` events of this name that match have come. */
export function times<Name extends keyof HoldfastEvents>(
  hf: Holdfast,
  name: Name,
  count: number,
  matches: (event: HoldfastEvents[Name]) => boolean = () => true,
): Promise<HoldfastEvents[Name]> {
  let seen = 0;
  return waitForEvent(hf, name, (event) => matches(event) && ++seen === count, { timeout: "20s" });
}
