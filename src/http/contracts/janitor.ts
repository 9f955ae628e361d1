// /api/v1/janitor: what it does, did and would do.
import { z } from "zod";
import { contract } from "../contract.ts";
import { anyText, cursor, isoTime, wholeNumber } from "../fields.ts";

const rows = z.record(z.string(), z.number()).meta({ description: "How many of what, by outcome." });

const chore = z
  .object({
    name: z.string(),
    everyMs: z.number(),
    deadlineMs: z.number(),
    batchSize: z.int(),
    budgetMs: z.number(),
    canPreview: z.boolean(),
    everywhere: z.boolean().meta({ description: "It runs in every process by itself, and has no turn." }),
    succeededAt: isoTime.nullable().meta({ description: "null: never, or it runs everywhere." }),
    nextAt: isoTime.nullable(),
    failures: z.int().meta({ description: "In a row." }),
    error: z.string().nullable(),
  })
  .meta({ id: "Chore" });

const choreRun = z
  .object({
    id: z.string(),
    chore: z.string(),
    startedAt: isoTime,
    tookMs: z.number(),
    rows,
    error: z.string().nullable(),
    by: z.string().meta({ description: "Which process." }),
  })
  .meta({ id: "ChoreRun" });

const choreResult = z
  .discriminatedUnion("ran", [
    z.object({
      chore: z.string(),
      ran: z.literal(true),
      rows,
      tookMs: z.number(),
      more: z.boolean().meta({ description: "Something is left for the next run." }),
      error: z.string().nullable(),
    }),
    z.object({
      chore: z.string(),
      ran: z.literal(false),
      by: z.string().nullable().meta({ description: "Which process has it." }),
    }),
  ])
  .meta({ id: "ChoreResult" });

const onlyChore = z.strictObject({ chore: anyText("Only this chore.") });

export const janitorContracts = {
  listChores: contract({
    method: "GET",
    path: "/api/v1/janitor",
    access: "viewer",
    summary: "The chores.",
    output: z.object({ chores: z.array(chore) }),
    answers: { 200: "All of them." },
  }),
  choreHistory: contract({
    method: "GET",
    path: "/api/v1/janitor/history",
    access: "viewer",
    summary: "Runs that did something or failed, newest first, page by page.",
    query: z.strictObject({
      chore: anyText("Only this chore."),
      limit: wholeNumber(1, 500, "How many; 50 if not given."),
      cursor,
    }),
    output: z.object({ runs: z.array(choreRun), next: z.string().nullable() }),
    answers: { 200: "A page." },
  }),
  previewChores: contract({
    method: "GET",
    path: "/api/v1/janitor/preview",
    access: "viewer",
    summary: "What a run would remove, without touching it.",
    query: onlyChore,
    output: z.object({ previews: z.array(z.object({ chore: z.string(), rows, more: z.boolean() })) }),
    answers: { 200: "For each chore that can say." },
  }),
  runChores: contract({
    method: "POST",
    path: "/api/v1/janitor/run",
    access: "admin",
    summary: "Run one chore now, or all, whether they are due or not.",
    query: onlyChore,
    output: z.object({ results: z.array(choreResult) }),
    answers: { 200: "What each did." },
  }),
};
