// The inbox of a server, over HTTP: bodies and downloads are streams.
import type { OutputOf } from "../http/contract.ts";
import type { CONTRACTS } from "../http/contracts.ts";
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
/** A download that is silent for so long has broken off. */
const SILENT_MS = 30_000;

export function makeInboxApi(url: string, token: string | undefined): InboxApi {
  const requests = makeRequests(url, token);
  const at = (recipient: string, rest = ""): string => `/api/v1/inbox/${encodeURIComponent(recipient)}/parcels${rest}`;
  const call = requests.call;

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
      call(withQuery(at(recipient), query), { signal: either(AbortSignal.timeout(POLL_WITHIN_MS), signal) }),
    read: (recipient, id) =>
      call(at(recipient, `/${encodeURIComponent(id)}`), { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }),
    async *content(recipient, id, start, signal) {
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(new Error("The download fell silent.")), SILENT_MS);
      try {
        const response = await requests.reach(at(recipient, `/${encodeURIComponent(id)}/content`), {
          headers: start > 0 ? { range: `bytes=${start}-` } : {},
          signal: either(silence.signal, signal),
        });
        if (!response.ok) throw requests.refusal(response.status, await response.text());
        if (start > 0 && response.status !== 206) throw new Error("The server did not go on where it was asked to.");
        for await (const piece of response.body ?? []) {
          timer.refresh();
          yield piece as Uint8Array;
        }
      } finally {
        clearTimeout(timer);
      }
    },
    ack: (recipient, id) =>
      call(at(recipient, `/${encodeURIComponent(id)}/ack`), {
        method: "POST",
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      }),
    stats: (query) => call(withQuery("/api/v1/inbox", query), { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }),
  };
}

const either = (one: AbortSignal, other: AbortSignal | undefined): AbortSignal =>
  other === undefined ? one : AbortSignal.any([one, other]);
