// What a queue holds, as parts of a bar.
import type { Output } from "../api/call.ts";

export type Queue = Output<"listQueues">["queues"][number];

export const depthParts = ({ ready, scheduled, running, retrying, paused, dead }: Queue) => [
  { name: "running", value: running, look: "running" },
  { name: "ready", value: ready, look: "ready" },
  { name: "scheduled", value: scheduled, look: "scheduled" },
  { name: "retrying", value: retrying, look: "retrying" },
  { name: "paused", value: paused, look: "paused" },
  { name: "dead", value: dead, look: "dead" },
];
