// /api/v1/errors and /api/v1/dead: what fails, and what is dead, by what the errors have in common.
import { z } from "zod";
import { contract } from "../contract.ts";
import { anyText, isoTime, uuid, wholeNumber } from "../fields.ts";

const fingerprint = z.string().meta({ description: "The same for errors of one cause." });

const errorGroup = z
  .object({
    kind: z.string(),
    fingerprint,
    queue: z.string(),
    name: z.string(),
    message: z.string().meta({ description: "Of the newest one." }),
    lastJobId: uuid,
    firstSeenAt: isoTime,
    lastSeenAt: isoTime,
    seen: z
      .array(z.number())
      .length(5)
      .meta({ description: "Failed attempts of the last hour, 3 hours, 24 hours, 3 days and 7 days." }),
    deaths: z.number().meta({ description: "Of these, how many were a job's last, in 7 days." }),
  })
  .meta({ id: "ErrorGroup" });

export type ErrorGroupView = z.output<typeof errorGroup>;

const deadGroup = z
  .object({
    kind: z.string(),
    fingerprint,
    count: z.int().meta({ description: "Counted up to 10,000." }),
    more: z.boolean(),
    queue: z.string().meta({ description: "Of the newest one." }),
    name: z.string().nullable(),
    message: z.string().nullable(),
    reason: z
      .string()
      .nullable()
      .meta({ description: "crashed, timeout, invalid-payload, fatal, exhausted, or null." }),
    lastJobId: uuid,
    lastAt: isoTime,
  })
  .meta({ id: "DeadGroup" });

export const errorContracts = {
  listErrorGroups: contract({
    method: "GET",
    path: "/api/v1/errors",
    access: "viewer",
    summary: "Failed attempts of the last days, grouped by kind and by what their errors have in common.",
    query: z.strictObject({
      kind: anyText("Only this kind."),
      queue: anyText("Only those seen last in this queue."),
      limit: wholeNumber(1, 200, "How many; 50 if not given."),
    }),
    output: z.object({ errors: z.array(errorGroup) }),
    answers: { 200: "The last one first." },
  }),
  listDead: contract({
    method: "GET",
    path: "/api/v1/dead",
    access: "viewer",
    summary: "Dead jobs, grouped by kind and by what their last errors have in common.",
    query: z.strictObject({ limit: wholeNumber(1, 200, "How many; 50 if not given.") }),
    output: z.object({ groups: z.array(deadGroup) }),
    answers: { 200: "The largest first." },
  }),
};
