// /api/v1/inbox: bytes handed to a recipient, who polls, fetches and acks.
import { z } from "zod";
import { PARCEL_STATES } from "../../store/inbox/rows.ts";
import { bytes, contract, media } from "../contract.ts";
import { anyText, cursor, isoTime, oneOf, uuid, wholeNumber, words } from "../fields.ts";

const recipientParams = z.strictObject({ recipient: z.string().meta({ description: "Whose inbox it is." }) });
const parcelParams = recipientParams.extend({ id: uuid.transform((id) => id.toLowerCase()) });

const parcel = z
  .object({
    id: uuid,
    recipient: z.string(),
    state: z.enum(PARCEL_STATES),
    reason: z.enum(["never fetched", "fetched, never acked"]).nullable().meta({ description: "Why it expired." }),
    name: z.string().meta({ description: "Safe as a file name." }),
    type: z.string().meta({ description: 'As declared; "" if nothing was.' }),
    size: z.int(),
    sha256: z.string().meta({ description: "In hexadecimal." }),
    key: z.string().nullable(),
    meta: z.unknown(),
    createdAt: isoTime,
    expiresAt: isoTime,
    readableUntil: isoTime.meta({ description: "The expiry, or sooner after an ack." }),
    fetchedAt: isoTime.nullable(),
    fetchCount: z.int(),
    ackedAt: isoTime.nullable(),
    expiredAt: isoTime.nullable(),
    removedAt: isoTime.nullable().meta({ description: "The content is gone; this is what is left of it." }),
  })
  .meta({ id: "Parcel" });

export type ParcelView = z.output<typeof parcel>;

const putParcels = z
  .object({
    parcels: z.array(
      parcel.extend({
        created: z.boolean().meta({ description: "False: the key was known." }),
        conflict: z.boolean().meta({ description: "Same key, other content: the first one stays." }),
      }),
    ),
  })
  .meta({ id: "PutParcels" });

const parcelPage = z
  .object({ parcels: z.array(parcel), next: uuid.nullable().meta({ description: "The cursor of the next page." }) })
  .meta({ id: "ParcelPage" });

const inbox = z
  .object({
    recipient: z.string(),
    waiting: z.int(),
    fetched: z.int().meta({ description: "Fetched and not acked yet." }),
    bytes: z.int().meta({ description: "Of what waits and what is not acked." }),
    oldestAt: isoTime.nullable(),
    acked: z.int(),
    ackedBytes: z.int(),
    expired: z.int(),
    neverFetched: z.int(),
    neverAcked: z.int(),
    expiredBytes: z.int(),
    polledAt: isoTime.nullable(),
    fetchedAt: isoTime.nullable(),
    ackedAt: isoTime.nullable(),
    stuck: z
      .object({ code: z.enum(["not polling", "not fetching", "not acking"]), message: z.string(), forMs: z.number() })
      .nullable()
      .meta({ description: "Why its parcels do not move, if they do not." }),
  })
  .meta({ id: "Inbox" });

export type InboxView = z.output<typeof inbox>;

const limits = z
  .object({
    maxFileBytes: z.int(),
    maxFilesPerPut: z.int(),
    maxPutBytes: z.int(),
    quotaBytes: z.int(),
    quotaParcels: z.int(),
    ttl: z.string(),
    maxTtl: z.string(),
    keepAcked: z.string(),
    keepTombstones: z.string(),
    purgeEvery: z.string(),
    draftTimeout: z.string(),
    stuckAfter: z.string(),
  })
  .meta({ id: "InboxLimits" });

export type LimitsView = z.output<typeof limits>;

export const inboxContracts = {
  listInboxes: contract({
    method: "GET",
    path: "/api/v1/inbox",
    access: "viewer",
    summary: "How each recipient's inbox stands, in the order of their names.",
    query: z.strictObject({
      recipient: anyText("Only this one."),
      limit: wholeNumber(1, 100, "How many; 50 unless given."),
      cursor,
    }),
    output: z.object({ inboxes: z.array(inbox), next: z.string().nullable() }).meta({ id: "InboxPage" }),
    answers: { 200: "A page of inboxes." },
  }),
  inboxLimits: contract({
    method: "GET",
    path: "/api/v1/inbox/limits",
    access: "public",
    summary: "What may be put, and how long it is kept.",
    output: limits,
    answers: { 200: "The limits in force." },
  }),
  putParcels: contract({
    method: "POST",
    path: "/api/v1/inbox/:recipient/parcels",
    access: "operator",
    audited: false,
    summary: "Hands over files: a form, or one file as the body itself. All of them, or none.",
    params: recipientParams,
    query: z.strictObject({
      name: anyText("The name of a file that is the body itself."),
      ttl: anyText('How long it waits, such as "10m"; 24 hours unless given.'),
      key: anyText("One key is one parcel of this recipient. Further files of a form have key.1, key.2 and so on."),
      sha256: anyText("The hash of a file that is the body itself, in hexadecimal; another content is refused."),
      meta: anyText("JSON that is kept with the parcels."),
    }),
    body: bytes("multipart/form-data", "*/*"),
    output: putParcels,
    answers: { 201: "They wait for the recipient.", 200: "The keys were known; nothing new." },
  }),
  listParcels: contract({
    method: "GET",
    path: "/api/v1/inbox/:recipient/parcels",
    access: "viewer",
    scope: "recipient",
    summary: "The parcels of a recipient, oldest first. With `wait` it is a poll: it answers when something waits.",
    params: recipientParams,
    query: z.strictObject({
      state: words("state", PARCEL_STATES),
      order: oneOf(["oldest", "newest"], "Which comes first; the oldest unless given."),
      limit: wholeNumber(1, 500, "How many; 50 unless given."),
      cursor,
      wait: anyText('How long to wait for a parcel if none is there, such as "25s"; at most 60s.'),
    }),
    output: parcelPage,
    answers: { 200: "A page of parcels." },
  }),
  readParcel: contract({
    method: "GET",
    path: "/api/v1/inbox/:recipient/parcels/:id",
    access: "viewer",
    scope: "recipient",
    summary: "What is known of a parcel, also when its content is gone.",
    params: parcelParams,
    output: parcel,
    answers: { 200: "The parcel." },
  }),
  readContent: contract({
    method: "GET",
    path: "/api/v1/inbox/:recipient/parcels/:id/content",
    access: "operator",
    scope: "recipient",
    summary: "The bytes, as an attachment. With `Range` a part of them.",
    params: parcelParams,
    output: media("application/octet-stream"),
    answers: { 200: "All of it.", 206: "The part that was asked for." },
  }),
  ackParcel: contract({
    method: "POST",
    path: "/api/v1/inbox/:recipient/parcels/:id/ack",
    access: "operator",
    audited: false,
    scope: "recipient",
    summary: "The recipient has it safely. Saying it twice is saying it once.",
    params: parcelParams,
    output: z
      .object({
        acked: z.literal(true),
        again: z.boolean().meta({ description: "It was acked before." }),
        gone: z.boolean().meta({ description: "Its time was over: it expired, or its content was removed meanwhile." }),
      })
      .meta({ id: "Acked" }),
    answers: { 200: "It is acked." },
  }),
};
