// /api/v1/inbox: puts and gets are streams; neither ever holds a file.
import type { Holdfast } from "../../client/client.ts";
import { OptionInvalid, TooLarge } from "../../errors.ts";
import { unknownParcel } from "../../inbox/open-content.ts";
import type { FileOptions, PutFile } from "../../inbox/put-options.ts";
import { durationMs, type Duration } from "../../shared/duration.ts";
import { streamBody } from "../body.ts";
import { inboxContracts } from "../contracts/inbox.ts";
import { Refusal } from "../errors.ts";
import { boundaryOf, readParts } from "../multipart.ts";
import { toInboxView, toLimitsView, toParcelView } from "../parcel-view.ts";
import { sendContent } from "../send-content.ts";
import { mediaRoute, route } from "./route.ts";

const LONGEST_WAIT_MS = 60_000;
/** What a form has besides its files. */
const FORM_BYTES = 1_048_576;

export function makeInboxRoutes(hf: Holdfast) {
  const { limits } = hf.inboxes;
  return {
    listInboxes: route(inboxContracts.listInboxes, async ({ query: { recipient, limit, cursor } }) => {
      if (recipient !== undefined) {
        return { body: { inboxes: [toInboxView(await hf.inbox(recipient).stats())], next: null } };
      }
      const { inboxes, next } = await hf.inboxes.list({ ...(limit && { limit }), ...(cursor && { cursor }) });
      return { body: { inboxes: inboxes.map(toInboxView), next } };
    }),
    inboxLimits: route(inboxContracts.inboxLimits, async () => ({ body: toLimitsView(limits) })),
    putParcels: route(inboxContracts.putParcels, async ({ params: { recipient }, query }, { request }) => {
      const inbox = hf.inbox(recipient);
      const { name, sha256, ...shared } = query;
      const options = toFileOptions(shared);
      const boundary = boundaryOf(request.headers.get("content-type"));
      const most =
        boundary === undefined ? limits.maxFileBytes : limits.maxFileBytes * limits.maxFilesPerPut + FORM_BYTES;
      refuseAnnounced(request, name ?? "The body", most, limits.maxFileBytes);
      // Each file has its own cap, and says so by its name.
      const body = streamBody(request, { maxBytes: Infinity });
      if (boundary !== undefined && (name !== undefined || sha256 !== undefined)) {
        throw new OptionInvalid("name and sha256 are for a body that is the file itself.", "Leave them out in a form.");
      }
      const files =
        boundary === undefined
          ? ofBody(
              body,
              { ...options, ...(name !== undefined && { name }), ...(sha256 !== undefined && { sha256 }) },
              request,
            )
          : ofForm(readParts(body, boundary), options);
      const parcels = await inbox.putMany(files).catch((error: unknown) => {
        throw error instanceof TooLarge ? asRefusal(error) : error;
      });
      if (parcels.length === 0) {
        throw new Refusal(
          "HOLDFAST_HTTP_REQUEST_UNREADABLE",
          "The form has no files.",
          "Send at least one part that has a filename.",
        );
      }
      const shown = parcels.map(({ created, conflict, ...parcel }) => ({ ...toParcelView(parcel), created, conflict }));
      return { status: parcels.some(({ created }) => created) ? 201 : 200, body: { parcels: shown } };
    }),
    listParcels: route(inboxContracts.listParcels, async ({ params: { recipient }, query }, { caller, request }) => {
      const inbox = hf.inbox(recipient);
      const { wait, state, order, limit, cursor } = query;
      const timeoutMs = wait === undefined ? 0 : Math.min(durationMs("wait", wait), LONGEST_WAIT_MS);
      // The recipient itself asks: its sender wants to know that it did.
      if (wait !== undefined || caller.recipient === recipient) {
        await inbox.arrival({ timeoutMs, signal: request.signal });
      }
      const { parcels, next } = await inbox.list({
        ...(state && { state }),
        ...(order && { order }),
        ...(limit && { limit }),
        ...(cursor && { cursor }),
      });
      return { body: { parcels: parcels.map(toParcelView), next } };
    }),
    readParcel: route(inboxContracts.readParcel, async ({ params: { recipient, id } }) => {
      const parcel = await hf.inbox(recipient).get(id);
      if (!parcel) throw unknownParcel(id);
      return { body: toParcelView(parcel) };
    }),
    readContent: mediaRoute(inboxContracts.readContent, async ({ params: { recipient, id } }, { request }) =>
      sendContent(hf.inbox(recipient), id, request),
    ),
    ackParcel: route(inboxContracts.ackParcel, async ({ params: { recipient, id } }) => {
      const { again, gone } = await hf.inbox(recipient).ack(id);
      return { body: { acked: true, again, gone } };
    }),
  };
}

function toFileOptions({
  ttl,
  key,
  meta,
}: {
  ttl?: string | undefined;
  key?: string | undefined;
  meta?: string | undefined;
}) {
  const options: FileOptions = {};
  // Whether it is a duration is said by the put.
  if (ttl !== undefined) options.ttl = ttl as Duration;
  if (key !== undefined) options.key = key;
  if (meta !== undefined) {
    try {
      options.meta = JSON.parse(meta) as NonNullable<FileOptions["meta"]>;
    } catch (error) {
      throw new OptionInvalid("meta is not JSON.", "Give JSON, percent-encoded.", { cause: error });
    }
  }
  return options;
}

async function* ofBody(
  content: AsyncIterable<Uint8Array>,
  options: FileOptions,
  request: Request,
): AsyncGenerator<PutFile> {
  const announced = request.headers.get("content-length");
  const size = announced === null ? {} : { size: Number(announced) };
  yield { ...options, ...size, type: request.headers.get("content-type") ?? "", content };
}

async function* ofForm(parts: ReturnType<typeof readParts>, options: FileOptions): AsyncGenerator<PutFile> {
  let n = 0;
  for await (const { field, filename, type, content } of parts) {
    if (filename === undefined) {
      throw new OptionInvalid(
        `The form's field ${JSON.stringify(field.slice(0, 100))} is not a file.`,
        "Give ttl, key and meta in the URL, and files only in the form.",
      );
    }
    const key = options.key === undefined || n === 0 ? {} : { key: `${options.key}.${n}` };
    n += 1;
    yield { ...options, ...key, name: filename === "" ? "file" : filename, type, content };
  }
}

function refuseAnnounced(request: Request, name: string, most: number, perFile: number): void {
  const announced = Number(request.headers.get("content-length") ?? Number.NaN);
  if (!(announced > most)) return;
  throw asRefusal(
    new TooLarge(
      `${name} has ${announced} bytes; a file may have ${perFile}.`,
      "GET /api/v1/inbox/limits says what may be put.",
    ),
  );
}

/** What is left of the body is not read. */
const asRefusal = ({ message, hint }: TooLarge): Refusal =>
  new Refusal("HOLDFAST_HTTP_BODY_TOO_LARGE", message, hint, { connection: "close" });
