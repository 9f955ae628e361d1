// /api/v1/queues and /api/v1/stats: figures from roll-ups, some seconds old; pausing and resuming.
import { z } from "zod";
import { OptionInvalid } from "../../errors.ts";
import { contract } from "../contract.ts";
import { anyText, isoTime } from "../fields.ts";

const depth = {
  queue: z.string(),
  ready: z.int(),
  scheduled: z.int(),
  retrying: z.int(),
  running: z.int(),
  dead: z.int(),
  paused: z.int().meta({ description: "Waiting because the queue is paused." }),
};

const queue = z
  .object({
    ...depth,
    oldestReadyAt: isoTime.nullable().meta({ description: "Since when the first of those that are due is due." }),
    estimated: z.boolean().meta({ description: "From a part of a large table." }),
    takenAt: isoTime.nullable().meta({ description: "When it was counted; null: not yet." }),
    pausedAt: isoTime.nullable(),
    pausedBy: z.string().nullable(),
  })
  .meta({ id: "Queue" });

const time = (description: string) =>
  z
    .string()
    .transform((text) => toTime(text))
    .optional()
    .meta({ format: "date-time", description });

/** A time without a zone would mean the server's. */
function toTime(text: string): Date {
  const date = new Date(text);
  if (/T.*(Z|[+-]\d\d:?\d\d)$/i.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new OptionInvalid(
    `The time is ${JSON.stringify(text.slice(0, 100))}.`,
    "Give ISO 8601 with its zone: 2030-01-31T08:00:00Z.",
  );
}

const queueParams = z.strictObject({ queue: z.string().meta({ description: "Its name." }) });

const stats = z
  .object({
    runs: z
      .array(
        z.object({
          at: isoTime,
          queue: z.string(),
          outcome: z.string(),
          runs: z.int(),
          waitMs: z.number().meta({ description: "From due to started, all together." }),
          runMs: z.number(),
        }),
      )
      .meta({ description: "By minute; by hour when more than two days are asked for." }),
    depths: z
      .array(z.object({ at: isoTime, ...depth }))
      .meta({ description: "By minute; a queue keeps its last value until its next point." }),
  })
  .meta({ id: "Stats" });

const span = z.strictObject({
  from: time("An hour ago if not given."),
  to: time("Now if not given."),
  queue: anyText("Only this queue."),
});

const quantiles = {
  waitP50: z.number().nullable(),
  waitP95: z.number().nullable(),
  runP50: z.number().nullable(),
  runP95: z.number().nullable(),
};

const kindStats = z
  .object({
    queue: z.string(),
    kind: z.string(),
    runs: z.int(),
    failures: z.int().meta({ description: "Attempts that failed." }),
    deaths: z.int(),
    ...quantiles,
  })
  .meta({ id: "KindStats" });

export const queueContracts = {
  listQueues: contract({
    method: "GET",
    path: "/api/v1/queues",
    access: "viewer",
    summary: "Queues that had jobs in the last two days, or are paused, with how deep they are.",
    output: z.object({ queues: z.array(queue) }),
    answers: { 200: "All of them." },
  }),
  pauseQueue: contract({
    method: "POST",
    path: "/api/v1/queues/:queue/pause",
    access: "operator",
    summary: "Start no job of this queue any more, in any process; what runs goes on.",
    params: queueParams,
    output: z.object({ queue: z.string(), paused: z.literal(true), changed: z.boolean() }),
    answers: { 200: "It is paused; twice is once." },
  }),
  resumeQueue: contract({
    method: "POST",
    path: "/api/v1/queues/:queue/resume",
    access: "operator",
    summary: "Go on with a queue that was paused.",
    params: queueParams,
    output: z.object({ queue: z.string(), paused: z.literal(false), changed: z.boolean() }),
    answers: { 200: "It is not paused; twice is once." },
  }),
  readLatency: contract({
    method: "GET",
    path: "/api/v1/stats/latency",
    access: "viewer",
    summary: "How long jobs waited and ran, as quantiles in milliseconds, in about sixty steps.",
    query: span,
    output: z.object({ points: z.array(z.object({ at: isoTime, ...quantiles })) }).meta({ id: "LatencySeries" }),
    answers: { 200: "Steps in which something ran." },
  }),
  readKindStats: contract({
    method: "GET",
    path: "/api/v1/stats/kinds",
    access: "viewer",
    summary: "What each kind came to in that time.",
    query: span,
    output: z.object({ kinds: z.array(kindStats) }),
    answers: { 200: "The busiest first, at most 500." },
  }),
  readStats: contract({
    method: "GET",
    path: "/api/v1/stats",
    access: "viewer",
    summary: "Figures over time: what runs came to, and how deep the queues were.",
    query: span,
    output: stats,
    answers: { 200: "At most 50,000 points of each." },
  }),
};
