// /api/v1/actions: one verb on all jobs that match a filter, in the background.
import { z } from "zod";
import { ACTION_STATES, ACTION_VERBS } from "../../store/actions/rows.ts";
import { contract } from "../contract.ts";
import { cursor, idParams, isoTime, uuid, wholeNumber } from "../fields.ts";

const textField = (example: string) =>
  z
    .string({ error: `Give a text, such as "${example}".` })
    .nullish()
    .meta({ examples: [example] });
const words = z.union([z.string(), z.array(z.string())], { error: "Give a text, or a list of texts." }).nullish();
const whole = z.number({ error: "Give a whole number." }).nullish();

const filter = z
  .strictObject({
    state: words,
    status: words,
    kind: textField("mail.send"),
    queue: textField("imports"),
    key: textField("order-17"),
    group: textField("customer-5"),
    error: textField("ECONNREFUSED").meta({ description: "Part of the last error's name or message." }),
    fingerprint: textField("90f6b1c2d3e4a5b6"),
    leastAttempts: whole,
    mostAttempts: whole,
    olderThan: textField("5m"),
    youngerThan: textField("1h"),
    payload: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .nullish()
      .meta({ examples: [{ "user.id": 42 }] }),
    ids: z.array(z.string()).nullish().meta({ description: "Only these; at most 1,000." }),
  })
  .meta({ id: "JobFilter" });

const newAction = z
  .strictObject({
    verb: z.enum(ACTION_VERBS, { error: `Give one of ${ACTION_VERBS.join(", ")}.` }),
    filter,
    perMinute: whole.meta({ description: "At most so many jobs a minute." }),
    title: textField("redrive after the outage"),
  })
  .meta({ id: "NewAction" });

export type NewActionBody = z.input<typeof newAction>;

const action = z
  .object({
    id: uuid,
    verb: z.enum(ACTION_VERBS),
    title: z.string(),
    state: z.enum(ACTION_STATES),
    askedBy: z.string(),
    createdAt: isoTime,
    finishedAt: isoTime.nullable(),
    perMinute: z.int().nullable(),
    done: z.int().meta({ description: "Jobs that it changed." }),
    skipped: z.int().meta({ description: "Jobs that had moved on meanwhile." }),
    expected: z.int().nullable().meta({ description: "How many matched when it was asked for; null: many." }),
    error: z.string().nullable(),
  })
  .meta({ id: "Action" });

export type ActionView = z.output<typeof action>;

export const actionContracts = {
  startAction: contract({
    method: "POST",
    path: "/api/v1/actions",
    access: "operator",
    summary: "Retry, discard or cancel all jobs that match a filter, in the background, at a rate if asked for.",
    body: newAction,
    output: action,
    answers: { 201: "It is on its way." },
  }),
  listActions: contract({
    method: "GET",
    path: "/api/v1/actions",
    access: "viewer",
    summary: "The actions of the last 90 days, newest first, page by page.",
    query: z.strictObject({ limit: wholeNumber(1, 100, "How many; 50 if not given."), cursor }),
    output: z.object({ actions: z.array(action), next: uuid.nullable() }),
    answers: { 200: "A page." },
  }),
  readAction: contract({
    method: "GET",
    path: "/api/v1/actions/:id",
    access: "viewer",
    summary: "How far an action is.",
    params: idParams,
    output: action,
    answers: { 200: "The action." },
  }),
  cancelAction: contract({
    method: "POST",
    path: "/api/v1/actions/:id/cancel",
    access: "operator",
    summary: "Stop an action. What it has done stays done.",
    params: idParams,
    output: action,
    answers: { 200: "It does nothing more." },
  }),
};
