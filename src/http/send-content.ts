// A parcel's bytes as an answer: always an attachment that a browser neither guesses at nor runs, with a range if one was
// asked for. The stream is read as fast as the socket takes it.
import type { Inbox } from "../inbox/inbox.ts";
import { unknownParcel } from "../inbox/open-content.ts";
import { PLAIN_BYTES } from "../inbox/safe-type.ts";
import type { Parcel } from "../store/inbox/rows.ts";
import { readRange } from "./content-range.ts";
import { Refusal } from "./errors.ts";
import { toWebStream } from "./web-stream.ts";

/** A parcel's content as a Response: an attachment, whole or by Range, verified on the way. */
export async function sendContent(inbox: Inbox, id: string, request: Request): Promise<Response> {
  const known = await inbox.get(id);
  if (!known) throw unknownParcel(id);
  const asked = isUnchanged(request, known) ? readRange(request.headers.get("range"), known.size) : null;
  if (asked === "unsatisfiable") {
    throw new Refusal(
      "HOLDFAST_HTTP_RANGE_UNSATISFIABLE",
      `The range is not in the ${known.size} bytes of parcel ${id}.`,
      "Ask for bytes from 0 on.",
      { "content-range": `bytes */${known.size}` },
    );
  }
  const opened = await inbox.open(id, asked ?? {});
  const { start, end, parcel } = opened;
  const headers = headersOf(parcel, end - start);
  if (asked !== null) headers["content-range"] = `bytes ${start}-${end - 1}/${parcel.size}`;
  const status = asked === null ? 200 : 206;
  // A HEAD is a question about the headers: nothing is read, and nothing is marked as fetched.
  if (request.method === "HEAD") return new Response(null, { status, headers });
  return new Response(toWebStream(opened.stream()), { status, headers });
}

/** If-Range: the rest of something else is of no use. */
function isUnchanged(request: Request, { sha256 }: Parcel): boolean {
  const expected = request.headers.get("if-range");
  return expected === null || expected === `"${sha256}"`;
}

function headersOf(parcel: Parcel, length: number): Record<string, string> {
  return {
    "content-type": parcel.type === "" ? PLAIN_BYTES : parcel.type,
    "content-length": String(length),
    // The name is safe: letters, digits, dots, dashes, underscores.
    "content-disposition": `attachment; filename="${parcel.name}"; filename*=UTF-8''${parcel.name}`,
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "accept-ranges": "bytes",
    etag: `"${parcel.sha256}"`,
    "repr-digest": `sha-256=:${Buffer.from(parcel.sha256, "hex").toString("base64")}:`,
  };
}
