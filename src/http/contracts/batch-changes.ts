// /api/v1/batches/changes and /commands: for clients that keep a copy of batches and work offline.
import { z } from "zod";
import { contract, media } from "../contract.ts";
import { anyText, isoTime, uuid, wholeNumber } from "../fields.ts";
import { batch, item } from "./batches.ts";

const change = z
  .object({
    seq: z.string().meta({ description: "Its place in the feed." }),
    batchId: uuid,
    owner: z.string().nullable(),
    what: z.string().meta({ description: "created, added, started, settled, paused, cancelled, acked and so on." }),
    by: z.string().nullable(),
    at: isoTime.nullable(),
    seqs: z.array(z.int()).meta({ description: "The items it is about." }),
  })
  .meta({ id: "BatchChange" });

const changes = z
  .object({
    changes: z.array(change),
    batches: z.array(batch).meta({ description: "Those they are about, as they are now." }),
    items: z
      .record(z.string(), z.array(item))
      .meta({ description: "By batch: the items they are about, as they are now." }),
    next: z.string().meta({ description: "The `since` of the next request." }),
    more: z.boolean().meta({ description: "There is more right now." }),
    reset: z.boolean().meta({ description: "`since` is older than what is kept: read everything anew, then go on." }),
  })
  .meta({ id: "BatchChanges" });

export type ChangesView = z.output<typeof changes>;

const about = { batch: uuid, n: z.number({ error: "Count the commands of a client from 1." }) };
const fieldsOf = z.record(z.string(), z.unknown(), { error: "Give an object." });

const command = z
  .discriminatedUnion(
    "type",
    [
      z.strictObject({
        type: z.literal("create"),
        n: about.n,
        kind: z.string(),
        items: z.array(z.unknown()),
        key: z.string().exactOptional(),
        total: z.number().exactOptional(),
        open: z.boolean().exactOptional(),
        fields: fieldsOf.exactOptional(),
      }),
      z.strictObject({ type: z.enum(["pause", "resume", "cancel", "retry", "delete"]), ...about }),
      z.strictObject({
        type: z.literal("outcome"),
        ...about,
        seq: z.number(),
        outcome: z.string(),
        result: z.unknown().optional(),
        error: z.string().exactOptional(),
      }),
      z.strictObject({
        type: z.literal("set"),
        ...about,
        fields: fieldsOf,
        meta: z
          .record(
            z.string(),
            z.union([
              z.string(),
              z.object({ at: z.unknown().optional(), actor: z.unknown().optional(), origin: z.unknown().optional() }),
            ]),
          )
          .exactOptional()
          .meta({ description: "When each field was written: a time, or { at, actor, origin }." }),
      }),
    ],
    { error: "Known commands: create, pause, resume, cancel, retry, delete, outcome, set." },
  )
  .meta({ id: "BatchCommand" });

const applied = z
  .object({
    applied: z.int().meta({ description: "The last command of this client that was applied." }),
    results: z.array(
      z.object({
        n: z.int(),
        status: z.enum(["applied", "known", "refused"]),
        batch: uuid.exactOptional(),
        error: z.object({ code: z.string(), message: z.string(), hint: z.string() }).exactOptional(),
      }),
    ),
  })
  .meta({ id: "AppliedCommands" });

const since = anyText("The `next` of the last answer.");
const owner = anyText("Only this owner's.");

export const batchChangeContracts = {
  listChanges: contract({
    method: "GET",
    path: "/api/v1/batches/changes",
    access: "viewer",
    scope: "owner",
    summary: "What happened to batches since, in an order that never changes and skips nothing.",
    query: z.strictObject({ since, owner, limit: wholeNumber(1, 500, "How many; 100 if not given.") }),
    output: changes,
    answers: { 200: "The changes, and what they are about as it is now." },
  }),
  streamChanges: contract({
    method: "GET",
    path: "/api/v1/batches/changes/stream",
    access: "viewer",
    scope: "owner",
    summary: "The same as server-sent events, from `since` or Last-Event-ID on; without either from now on.",
    query: z.strictObject({ since, owner }),
    output: media("text/event-stream"),
    answers: { 200: "A stream that goes on until either side ends it." },
  }),
  applyCommands: contract({
    method: "POST",
    path: "/api/v1/batches/commands",
    access: "operator",
    scope: "owner",
    audited: false,
    summary: "Commands of a client that works offline, applied in its order, each once.",
    body: z
      .strictObject({
        client: z
          .string({ error: 'Give the name of the device as text: "client": "phone-1".' })
          .meta({ description: "The device, or whatever counts its commands." }),
        owner: z.string().nullish().meta({ description: "Whose batches; a token that is bound to an owner knows it." }),
        commands: z.array(command, { error: "Give a list of commands." }),
      })
      .meta({ id: "BatchCommands" }),
    output: applied,
    answers: { 200: "What became of each." },
  }),
};
