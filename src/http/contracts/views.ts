// /api/v1/views: what an app gives its end users to watch one job or one batch. Whoever has a view may look, from any page.
import { z } from "zod";
import { BATCH_STATES } from "../../job/batch.ts";
import { JOB_STATUSES } from "../../job/states.ts";
import { contract, media } from "../contract.ts";
import { isoTime } from "../fields.ts";

const ID_HINT = { error: 'Give an id as text: "job": "0192a1b2-…".' };

const view = z
  .object({
    what: z.enum(["job", "batch"]),
    status: z.enum([
      ...JOB_STATUSES,
      ...BATCH_STATES.filter((state) => !JOB_STATUSES.some((known) => known === state)),
    ]),
    done: z.number().nullable().meta({ description: "Of a batch: items that ended. Of a job: what its handler said." }),
    total: z.number().nullable(),
    note: z.string().nullable().meta({ description: "What a handler said about its progress." }),
    attempt: z.int().nullable(),
    maxAttempts: z.int().nullable(),
    errors: z.int().nullable().meta({ description: "Items of a batch that failed." }),
    warnings: z.int().nullable(),
    etaMs: z.number().nullable(),
    nextAt: isoTime.nullable().meta({ description: "When it is due: for what is scheduled, or tried again." }),
    startedAt: isoTime.nullable(),
    finishedAt: isoTime.nullable(),
  })
  .meta({ id: "View" });

export type ViewBody = z.output<typeof view>;

const params = z.strictObject({ view: z.string().meta({ description: "What signView answered." }) });

export const viewContracts = {
  signView: contract({
    method: "POST",
    path: "/api/v1/views",
    access: "operator",
    scope: "owner",
    audited: false,
    summary: "Sign a view of one job or one batch, for an end user: it shows how far that is, and nothing else.",
    body: z
      .strictObject({
        job: z.string(ID_HINT).nullish().meta({ description: "The id of a job." }),
        batch: z.string(ID_HINT).nullish().meta({ description: "The id of a batch. One of the two." }),
        expires: z
          .string({ error: 'Give a duration: "expires": "1h".' })
          .nullish()
          .meta({ description: "How long it counts: 1d if not given, at most 400d.", examples: ["1h"] }),
      })
      .meta({ id: "NewView" }),
    output: z.object({
      view: z.string(),
      path: z.string().meta({ description: "Where it is, on this server: the src of <job-progress>." }),
      expiresAt: isoTime,
    }),
    answers: { 201: "Whoever has it may look, until then." },
  }),
  readView: contract({
    method: "GET",
    path: "/api/v1/views/:view",
    access: "public",
    summary: "How far the job or the batch of a view is. Pages of every origin may ask.",
    params,
    output: view,
    answers: { 200: "How it stands now." },
  }),
  watchView: contract({
    method: "GET",
    path: "/api/v1/views/:view/events",
    access: "public",
    summary:
      "The same as server-sent events named `view`: at once, and whenever it has changed. It ends with the work.",
    params,
    output: media("text/event-stream"),
    answers: { 200: "A stream." },
  }),
};
