// The batches of a server, over HTTP: items go in and out as streams.
import type { OutputOf } from "../http/contract.ts";
import type { Contracts } from "../http/contracts.ts";
import { ANSWER_WITHIN_MS, makeRequests, type Query, withQuery } from "./requests.ts";

type Output<Name extends keyof Contracts> = OutputOf<Contracts[Name]>;
/** JSON (the server checks its fields), or lines with everything else in the query. */
export type Sent = { json: Record<string, unknown> } | { query: Query; lines: AsyncIterable<Uint8Array> };

export interface BatchesApi {
  readonly url: string;
  create(sent: Sent): Promise<Output<"createBatch">>;
  add(id: string, sent: Sent): Promise<Output<"addItems">>;
  list(query: Query): Promise<Output<"listBatches">>;
  read(id: string): Promise<Output<"readBatch">>;
  items(id: string, query: Query): Promise<Output<"listItems">>;
  errors(id: string): Promise<Output<"listErrors">>;
  close(id: string): Promise<Output<"closeBatch">>;
  pause(id: string): Promise<Output<"pauseBatch">>;
  resume(id: string): Promise<Output<"resumeBatch">>;
  cancel(id: string): Promise<Output<"cancelBatch">>;
  /** `seqs`: only the items at these places. */
  retryFailed(id: string, seqs?: string): Promise<Output<"retryFailed">>;
  remove(id: string): Promise<Output<"deleteBatch">>;
  export(id: string, format: "ndjson" | "csv", query: Query): AsyncIterable<Uint8Array>;
}

export function makeBatchesApi(url: string, token: string | undefined): BatchesApi {
  const { call, download } = makeRequests(url, token);
  const soon = (): AbortSignal => AbortSignal.timeout(ANSWER_WITHIN_MS);
  const get = <Answer>(path: string, query: Query = {}): Promise<Answer> =>
    call(withQuery(path, query), { signal: soon() });
  const act =
    (verb: string) =>
    <Answer>(id: string): Promise<Answer> =>
      call(`${at(id)}/${verb}`, { method: "POST", signal: soon() });
  const send = <Answer>(path: string, sent: Sent): Promise<Answer> =>
    "json" in sent
      ? call(path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(sent.json),
          signal: soon(),
        })
      : // As long as it takes: there may be any number of lines.
        call(withQuery(path, sent.query), {
          method: "POST",
          headers: { "content-type": "application/x-ndjson" },
          body: sent.lines,
          duplex: "half",
        });

  return {
    url,
    create: (sent) => send(ALL, sent),
    add: (id, sent) => send(`${at(id)}/items`, sent),
    list: (query) => get(ALL, query),
    read: (id) => get(at(id)),
    items: (id, query) => get(`${at(id)}/items`, query),
    errors: (id) => get(`${at(id)}/errors`),
    close: act("close"),
    pause: act("pause"),
    resume: act("resume"),
    cancel: act("cancel"),
    retryFailed: (id, seqs) => call(withQuery(`${at(id)}/retry-failed`, { seqs }), { method: "POST", signal: soon() }),
    remove: (id) => call(at(id), { method: "DELETE", signal: soon() }),
    export: (id, format, query) => download(withQuery(`${at(id)}/export.${format}`, query)),
  };
}

const ALL = "/api/v1/batches";
const at = (id: string): string => `${ALL}/${encodeURIComponent(id)}`;
