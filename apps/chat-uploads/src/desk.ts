// What the routes, the jobs and the sample share: one for each client of the database.
import type { Holdfast, JobKind, Logger } from "holdfast";
import type { Announcements } from "./announcements.ts";
import type { Settings } from "./options.ts";
import type { PushPayload } from "./push.ts";
import type { Sample } from "./sample.ts";

export interface Desk {
  readonly hf: Holdfast;
  readonly settings: Settings;
  readonly announcements: Announcements;
  readonly push: JobKind<PushPayload>;
  log: Logger;
  /** The sample workspace of `holdfast dev`. */
  sample: Sample | undefined;
  /** In `holdfast dev` people want to see it sooner. */
  offlineAfterMs: number;
}

export type DeskOf = (hf: Holdfast) => Desk;
