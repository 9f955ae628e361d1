// The inbox of a server, over HTTP: bodies and downloads are streams.
import type { OutputOf } from "../http/contract.ts";
import type { CONTRACTS } from "../http/contracts.ts";
import { orAfter } from "../shared/either-signal.ts";
import { ANSWER_WITHIN_MS, makeRequests, type Query, withQuery } from "./requests.ts";

type Output<Name extends keyof typeof CONTRACTS> = OutputOf<(typeof CONTRACTS)[Name]>;

export interface InboxApi {
  readonly url: string;
  /** One file as the body, or several as a form: `type` is that of the body. */
  put(recipient: string, query: Query, body: AsyncIterable<Uint8Array>, type: string): Promise<Output<"putParcels">>;
  list(recipient: string, query: Query, signal?: AbortSignal): Promise<Output<"listParcels">>;
  read(recipient: string, id: string): Promise<Output<"readParcel">>;
  /** From this byte on. */
  content(recipient: string, id: string, start: number, signal?: AbortSignal): AsyncIterable<Uint8Array>;
  ack(recipient: string, id: string): Promise<Output<"ackParcel">>;
  stats(query: Query): Promise<Output<"listInboxes">>;
}

/** Longer than a poll waits. */
const POLL_WITHIN_MS = 90_000;

export function makeInboxApi(url: string, token: string | undefined): InboxApi {
  const { call, download } = makeRequests(url, token);
  const at = (recipient: string, rest = ""): string => `/api/v1/inbox/${encodeURIComponent(recipient)}/parcels${rest}`;

  return {
    url,
    put: (recipient, query, body, type) =>
      call(withQuery(at(recipient), query), {
        method: "POST",
        headers: { "content-type": type },
        // Node's fetch takes any stream of bytes.
        body,
        duplex: "half",
      }),
    list: (recipient, query, signal) =>
      call(withQuery(at(recipient), query), {
        signal: orAfter(POLL_WITHIN_MS, ...(signal ? [signal] : [])),
      }),
    read: (recipient, id) =>
      call(at(recipient, `/${encodeURIComponent(id)}`), { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }),
    content: (recipient, id, start, signal) =>
      download(at(recipient, `/${encodeURIComponent(id)}/content`), { start, signal }),
    ack: (recipient, id) =>
      call(at(recipient, `/${encodeURIComponent(id)}/ack`), {
        method: "POST",
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      }),
    stats: (query) => call(withQuery("/api/v1/inbox", query), { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }),
  };
}
