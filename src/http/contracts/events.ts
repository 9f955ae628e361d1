// /api/v1/events: what happens in the server's process, as it happens.
import { z } from "zod";
import { contract, media } from "../contract.ts";
import { anyText } from "../fields.ts";

export const eventContracts = {
  streamEvents: contract({
    method: "GET",
    path: "/api/v1/events",
    access: "viewer",
    summary: "What happens in this server's process, as server-sent events. docs/events.md lists them.",
    query: z.strictObject({
      type: anyText("Only these events, with commas: job.done,job.dead."),
      kind: anyText("Only jobs of this kind."),
      queue: anyText("Only jobs of this queue."),
      job: anyText("Only this job."),
    }),
    output: media("text/event-stream"),
    answers: { 200: "A stream that goes on until either side ends it." },
  }),
};
