// /api/v1/batches: bulk work. A token that is bound to an owner makes, sees and changes only its owner's batches.
import { z } from "zod";
import { BATCH_STATES } from "../../job/batch.ts";
import { contract, jsonOrLines, media } from "../contract.ts";
import {
  anyText,
  cursor,
  idParams,
  isoTime,
  jsonText,
  oneOf,
  textField,
  uuid,
  wholeNumber,
  wholeNumbers,
  words,
} from "../fields.ts";
import { errorRecord, outcomes } from "./jobs.ts";

const numberField = (name: string, example: number, description: string) =>
  z
    .number({ error: `Give a number: "${name}": ${example}.` })
    .nullish()
    .meta({ description, examples: [example] });

const flagField = (name: string, description: string) =>
  z
    .boolean({ error: `Give true or false: "${name}": true.` })
    .nullish()
    .meta({ description });

const KIND_HINT = { error: 'Give the name of a batch kind as text: "kind": "articles.import".' };
const ITEMS_HINT = { error: 'Give a list: "items": [{ … }, …]. For more than 10 MiB send lines.' };
const OBJECT_HINT = { error: "Give an object." };

const items = z.array(z.unknown(), ITEMS_HINT).meta({ description: "One payload each, in order." });

const onDone = z.strictObject(
  {
    kind: z.string({ error: 'Give the name of a kind of job: "kind": "mail.send".' }),
    payload: z.unknown().optional(),
    queue: textField("queue", "default", "Instead of the kind's."),
  },
  OBJECT_HINT,
);
const fields = z.record(z.string(), z.unknown(), OBJECT_HINT);
const ON_DONE = "A job that is inserted when the batch is done; its payload is { batch, payload }.";
const FIELDS = "Kept with it, for its owner.";

const newBatch = z
  .strictObject({
    kind: z
      .string(KIND_HINT)
      .min(1, KIND_HINT)
      .meta({ description: "Which kind of batch; the server must know it.", examples: ["articles.import"] }),
    items: items.nullish(),
    key: textField(
      "key",
      "import-42",
      "One key is one batch, within the kind. Sent again, it goes on where it stopped.",
    ),
    owner: textField("owner", "ada", "Whose it is. A token that is bound to an owner makes its owner's."),
    total: numberField("total", 100, "How many items there will be in the end, if not all come with this request."),
    open: flagField("open", "More items will be added; close it after the last."),
    concurrency: numberField("concurrency", 3, "Items that run at once, instead of the kind's."),
    attempts: numberField("attempts", 3, "Instead of the kind's."),
    priority: numberField("priority", 10, "-100 to 100; higher runs sooner."),
    onDone: onDone.nullish().meta({ description: ON_DONE }),
    fields: fields.nullish().meta({ description: FIELDS }),
  })
  .meta({ id: "NewBatch" });

/** The same, where the items are lines and everything else stands in the query. */
const newBatchQuery = z.strictObject({
  kind: anyText("With lines: which kind of batch."),
  key: anyText("With lines: one key is one batch, within the kind."),
  owner: anyText("With lines: whose it is."),
  total: wholeNumber(0, 999_999_999, "With lines: how many items there will be in the end."),
  open: oneOf(["true", "false"], "With lines: whether more items will be added."),
  concurrency: wholeNumber(1, 10_000, "With lines: items that run at once."),
  attempts: wholeNumber(1, 1_000, "With lines: instead of the kind's."),
  priority: wholeNumber(-100, 100, "With lines: higher runs sooner."),
  onDone: jsonText(onDone, '{"kind":"mail.send"}', `With lines, as JSON: ${ON_DONE}`),
  fields: jsonText(fields, '{"title":"spring"}', `With lines, as JSON: ${FIELDS}`),
});

const created = z
  .object({
    id: uuid,
    created: z.boolean().meta({ description: "False: the key was known, and this is its batch." }),
    added: z.int().meta({ description: "Items of this request that were not there before." }),
  })
  .meta({ id: "CreatedBatch" });

const moreItems = z
  .strictObject({
    items,
    writer: textField("writer", "device-7", "Who adds. Items of one writer are taken in order, and each once."),
    from: numberField("from", 0, "How many items of this writer came before these."),
    close: flagField("close", "These are the last of all."),
  })
  .meta({ id: "MoreItems" });

const counts = z.record(z.string(), z.int());

export const batch = z
  .object({
    id: uuid,
    kind: z.string(),
    queue: z.string(),
    owner: z.string().nullable(),
    key: z.string().nullable(),
    state: z.enum(BATCH_STATES),
    reason: z.string().nullable().meta({ description: "Why it was cancelled, if not because somebody asked." }),
    total: z.int().meta({ description: "How many items there will be: what was declared, or what there are." }),
    declared: z.int().nullable(),
    added: z.int(),
    closed: z.boolean().meta({ description: "No more items can be added." }),
    counts: counts.meta({ description: "pending, running, handed-over, error, cancelled, and one for each outcome." }),
    countedAs: counts.meta({ description: "The same, with outcomes counted as what the kind says." }),
    warnings: z.int(),
    ended: z.int().meta({ description: "Items that came to an outcome." }),
    rate: z.number().nullable().meta({ description: "Items per second, lately." }),
    etaMs: z.number().nullable(),
    concurrency: z.int(),
    attempts: z.int(),
    priority: z.int(),
    outcomes,
    fields: z.record(z.string(), z.unknown()),
    completions: z.int().meta({ description: "How often it became done." }),
    version: z.string().meta({ description: "Goes up with every change." }),
    createdAt: isoTime,
    startedAt: isoTime.nullable(),
    pausedAt: isoTime.nullable(),
    closedAt: isoTime.nullable(),
    finishedAt: isoTime.nullable(),
  })
  .meta({ id: "Batch" });

export type BatchView = z.output<typeof batch>;

const batchPage = z
  .object({ batches: z.array(batch), next: uuid.nullable().meta({ description: "The cursor of the next page." }) })
  .meta({ id: "BatchPage" });

export type BatchPage = z.output<typeof batchPage>;

export const item = z
  .object({
    seq: z.int().meta({ description: "Its place, from 1." }),
    state: z.string().meta({ description: "pending, running, handed-over, or what it came to." }),
    payload: z.unknown(),
    attempt: z.int(),
    bounces: z.int().meta({ description: "How often it came back because nobody acked what was handed over." }),
    error: errorRecord.nullable(),
    result: z.unknown(),
    jobId: uuid.nullable(),
    parcelId: uuid.nullable().meta({ description: "What was handed over." }),
    handedUntil: isoTime.nullable(),
    runAt: isoTime.nullable(),
    startedAt: isoTime.nullable(),
    endedAt: isoTime.nullable(),
  })
  .meta({ id: "BatchItem" });

export type ItemView = z.output<typeof item>;

const itemPage = z
  .object({
    items: z.array(item),
    next: z
      .string()
      .nullable()
      .meta({ description: "The cursor of the next page. A page may be short while there is more." }),
  })
  .meta({ id: "BatchItemPage" });

export type ItemPage = z.output<typeof itemPage>;

const errorGroup = z
  .object({
    fingerprint: z.string().meta({ description: "The same for errors that differ only in numbers, ids and the like." }),
    count: z.int(),
    firstAt: isoTime,
    lastAt: isoTime,
    lastSeq: z.int().meta({ description: "The item that failed last in this way." }),
    sample: errorRecord,
  })
  .meta({ id: "BatchErrorGroup" });

export type ErrorGroupView = z.output<typeof errorGroup>;

const itemParams = idParams.extend({
  seq: z
    .string()
    .regex(/^\d{1,15}$/, { error: "Items are counted from 1." })
    .transform(Number)
    .meta({ type: "integer", minimum: 1, description: "Its place in the batch." }),
});

const exportQuery = z.strictObject({ state: anyText("Only items that are this.") });

const look = { method: "GET", access: "viewer", scope: "owner" } as const;
const act = { method: "POST", access: "operator", scope: "owner", params: idParams, output: batch } as const;

export const batchContracts = {
  createBatch: contract({
    method: "POST",
    path: "/api/v1/batches",
    access: "operator",
    scope: "owner",
    summary: "Make a batch, from a list in JSON or from any number of lines. The same key again is the same batch.",
    query: newBatchQuery,
    body: jsonOrLines(newBatch),
    output: created,
    answers: { 201: "A batch was made.", 200: "The key was known." },
  }),
  listBatches: contract({
    ...look,
    path: "/api/v1/batches",
    summary: "Batches, newest first, page by page.",
    query: z.strictObject({
      state: words("state", BATCH_STATES),
      kind: anyText("Only this kind."),
      owner: anyText("Only this owner's."),
      withErrors: oneOf(["true", "false"], "true: only those with items that failed."),
      limit: wholeNumber(1, 500, "How many; 50 if not given."),
      cursor,
    }),
    output: batchPage,
    answers: { 200: "A page." },
  }),
  readBatch: contract({
    ...look,
    path: "/api/v1/batches/:id",
    summary: "A batch and how far it is.",
    params: idParams,
    output: batch,
    answers: { 200: "The batch." },
  }),
  deleteBatch: contract({
    method: "DELETE",
    path: "/api/v1/batches/:id",
    access: "operator",
    scope: "owner",
    summary: "A batch that has ended goes, with its items.",
    params: idParams,
    output: z.object({ id: uuid, deleted: z.boolean().meta({ description: "False: there was none." }) }),
    answers: { 200: "It is gone." },
  }),
  listItems: contract({
    ...look,
    path: "/api/v1/batches/:id/items",
    summary: "The items in their order, page by page. For viewers, values that look like secrets are masked.",
    params: idParams,
    query: z.strictObject({
      state: anyText("pending, running, handed-over, error, cancelled, or another outcome of the kind."),
      limit: wholeNumber(1, 500, "How many; 50 if not given."),
      cursor,
    }),
    output: itemPage,
    answers: { 200: "A page." },
  }),
  readItem: contract({
    ...look,
    path: "/api/v1/batches/:id/items/:seq",
    summary: "One item.",
    params: itemParams,
    output: item,
    answers: { 200: "The item." },
  }),
  addItems: contract({
    ...act,
    path: "/api/v1/batches/:id/items",
    audited: false,
    summary: "More items for a batch that is open, as JSON or as lines. What is sent again is taken once.",
    query: z.strictObject({
      writer: anyText("With lines: who adds."),
      from: wholeNumber(0, 999_999_999, "With lines: how many items of this writer came before."),
      close: oneOf(["true", "false"], "With lines: true if these are the last of all."),
    }),
    body: jsonOrLines(moreItems),
    output: z.object({ id: uuid, added: z.int(), total: z.int().meta({ description: "Items that are there now." }) }),
    answers: { 200: "They are there." },
  }),
  ackItem: contract({
    ...act,
    path: "/api/v1/batches/:id/items/:seq/ack",
    audited: false,
    summary: "The owner's word on an item that was handed over: what it came to. The first one counts.",
    params: itemParams,
    body: z
      .strictObject({
        outcome: textField("outcome", "saved", "One of the kind's, or error; what the kind says if it is left out."),
        result: z.unknown().optional().meta({ description: "Kept with the item." }),
        error: textField("error", "cannot be stored", "Why it is an error."),
      })
      .meta({ id: "AckItem" }),
    output: z
      .object({ outcome: z.string(), first: z.boolean().meta({ description: "False: it had this outcome before." }) })
      .meta({ id: "AckedItem" }),
    answers: { 200: "What it came to." },
  }),
  closeBatch: contract({
    ...act,
    path: "/api/v1/batches/:id/close",
    summary: "No more items will come.",
    answers: { 200: "It is closed; it is done when its items have ended." },
  }),
  listErrors: contract({
    ...look,
    path: "/api/v1/batches/:id/errors",
    summary: "Errors that look alike, the most frequent first.",
    params: idParams,
    output: z.object({ errors: z.array(errorGroup) }).meta({ id: "BatchErrors" }),
    answers: { 200: "At most 201 groups." },
  }),
  exportLines: contract({
    ...look,
    path: "/api/v1/batches/:id/export.ndjson",
    summary: "All items as a download, one JSON object on each line.",
    params: idParams,
    query: exportQuery,
    output: media("application/x-ndjson"),
    answers: { 200: "The items in their order." },
  }),
  exportCsv: contract({
    ...look,
    path: "/api/v1/batches/:id/export.csv",
    summary: "All items as a download for spreadsheets, safe to open in one.",
    params: idParams,
    query: exportQuery,
    output: media("text/csv"),
    answers: { 200: "The items in their order." },
  }),
  pauseBatch: contract({
    ...act,
    path: "/api/v1/batches/:id/pause",
    summary: "What runs finishes, nothing starts.",
    answers: { 200: "It is paused." },
  }),
  resumeBatch: contract({
    ...act,
    path: "/api/v1/batches/:id/resume",
    summary: "A paused batch goes on.",
    answers: { 200: "It goes on." },
  }),
  cancelBatch: contract({
    ...act,
    path: "/api/v1/batches/:id/cancel",
    summary: "What waits is cancelled, what runs is told, and what it still comes to is not published.",
    answers: { 200: "It is cancelled." },
  }),
  retryFailed: contract({
    ...act,
    path: "/api/v1/batches/:id/retry-failed",
    summary: "Items that are errors wait again with all their attempts: all of them, or those at some places.",
    query: z.strictObject({ seqs: wholeNumbers("Only the items at these places: at most 1,000, with commas.") }),
    output: batch.extend({ retried: z.int() }),
    answers: { 200: "They wait again." },
  }),
};
