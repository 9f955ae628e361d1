// A real server on a port of its own, in this process, and a way to talk to it. Every answer that succeeds is compared
// with what its contract promises, field by field.
import { request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { defineJob, Fatal, type Holdfast, open } from "#src/index.js";
import { CONTRACTS, type HttpServer, serve, type ServeOptions } from "#src/http/index.js";
import { isMedia } from "#src/http/contract.js";
import { expect } from "vitest";
import { z } from "zod";

export const greet = defineJob("greet", {
  schema: z.object({ name: z.string() }),
  run: (job) => ({ greeting: `Hello, ${job.payload.name}!` }),
});
export const anything = defineJob("anything", { run: (job) => job.payload });
export const hopeless = defineJob("hopeless", {
  run: () => {
    throw new Fatal("no use");
  },
});
/** Runs until it is told to stop. */
export const endless = defineJob("endless", {
  run: (job) => delay(600_000, undefined, { signal: job.signal }),
});
export const KINDS = [greet, anything, hopeless, endless];

export interface Answer {
  status: number;
  headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  body: any;
}

export interface Api {
  hf: Holdfast;
  server: HttpServer;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  delete(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** Any text as the body. */
  postText(path: string, text: string | Uint8Array, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

export async function startApi(database: string, options: Partial<ServeOptions> = {}): Promise<Api> {
  const hf = await open({ database });
  const api = await serveApi(hf, options);
  return {
    ...api,
    async close() {
      await api.close();
      await hf.close();
    },
  };
}

/** The server tier starts only with a token. */
export const TOKEN = "a-token-for-all-tests-of-the-api";
export const authorization = { authorization: `Bearer ${TOKEN}` };

/** For a client that somebody else opens and closes. Calls carry the server's token unless they bring another. */
export async function serveApi(hf: Holdfast, options: Partial<ServeOptions> = {}): Promise<Api> {
  const given = { token: hf.tier === "server" ? TOKEN : undefined, ...options };
  const server = await serve({ hf, kinds: KINDS, port: 0, ...given });
  const own: Record<string, string> = given.token === undefined ? {} : { authorization: `Bearer ${given.token}` };
  const call = async (
    path: string,
    { headers, ...init }: Omit<RequestInit, "headers"> & { headers: Record<string, string> },
  ): Promise<Answer> => {
    const response = await fetch(`${server.url}${path}`, { ...init, headers: { ...own, ...headers } });
    const text = await response.text();
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    if (response.ok) assertAsPromised(init.method ?? "GET", path, response.status, body);
    return { status: response.status, headers: response.headers, body };
  };
  return {
    hf,
    server,
    get: (path, headers = {}) => call(path, { headers }),
    post: (path, body, headers = {}) =>
      call(path, {
        method: "POST",
        headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
        body: body === undefined ? null : JSON.stringify(body),
      }),
    delete: (path, headers = {}) => call(path, { method: "DELETE", headers }),
    postText: (path, text, headers = {}) =>
      call(path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: text }),
    close: () => server.close(),
  };
}

/** What a contract does not list is taken away by its schema, and the difference shows. */
export function assertAsPromised(method: string, path: string, status: number, body: unknown): void {
  const { pathname } = new URL(path, "http://x");
  const found = Object.values(CONTRACTS).find(
    (contract) =>
      contract.method === method && new RegExp(`^${contract.path.replace(/:\w+/g, "[^/]+")}$`).test(pathname),
  );
  if (!found || isMedia(found.output)) return;
  expect(Object.keys(found.answers)).toContain(String(status));
  expect(found.output.parse(body)).toEqual(body);
}

/** fetch() writes its own Host and Origin; this does not. */
export function rawRequest(
  port: number,
  options: { method?: string; path?: string; headers?: Record<string, string>; host?: string },
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { method = "GET", path = "/livez", headers = {}, host = "127.0.0.1" } = options;
    const sent = request({ host, port, method, path, headers, setHost: headers["host"] === undefined }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (more: string) => (text += more));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
