// The handler is a function from Request to Response: it mounts in any server, also below a path.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Hono } from "hono";
import { expect, test } from "vitest";
import { makeHandler, toNodeHandler } from "#src/http/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { authorization, KINDS, TOKEN } from "./api.ts";

const bench = useHoldfast("embedded");

test("as it is: a Request goes in, a Response comes out", async () => {
  const handler = makeHandler({ hf: bench.hf, kinds: KINDS });
  const response = await handler(
    new Request("http://localhost/api/v1/jobs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"kind":"anything"}',
    }),
  );
  expect(response.status).toBe(201);
  expect(await response.json()).toMatchObject({ created: true, conflict: false });
});

test("the Host counts as well as the address: a proxy may have rewritten one of them", async () => {
  const handler = makeHandler({ hf: bench.hf, kinds: KINDS });
  const ask = (url: string, host: string) => handler(new Request(`${url}/livez`, { headers: { host } }));
  expect((await ask("http://localhost", "localhost:7070")).status).toBe(200);
  expect((await ask("http://localhost", "evil.example")).status).toBe(403);
  expect((await ask("http://evil.example", "localhost")).status).toBe(403);
});

test("in a Hono app, below a path, beside other routes", async () => {
  const handler = makeHandler({ hf: bench.hf, kinds: KINDS, token: TOKEN, allowedHosts: ["shop.example"] });
  const app = new Hono().get("/", (context) => context.text("shop")).mount("/background", handler);
  expect(await (await app.request("http://shop.example/")).text()).toBe("shop");
  const ask = (path: string, headers = {}) => app.request(`http://shop.example/background${path}`, { headers });
  expect((await ask("/api/v1/jobs", authorization)).status).toBe(200);
  expect((await ask("/api/v1/jobs")).status).toBe(401);
  expect((await ask("/livez")).status).toBe(200);
  expect((await app.request("http://other.example/background/livez")).status).toBe(403);
});

test("in node:http, behind a check of one's own, with callers of one's own", async () => {
  const handler = makeHandler({
    hf: bench.hf,
    kinds: KINDS,
    authorize: (request) => (request.headers.get("cookie") === "session=ada" ? { name: "ada", role: "viewer" } : null),
  });
  const listener = toNodeHandler(handler);
  const server = createServer((request, response) => {
    // What Express does for app.use("/background", …).
    request.url = request.url!.replace("/background", "");
    listener(request, response);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const ask = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${port}/background${path}`, init);
  const headers = { cookie: "session=ada" };
  expect((await ask("/api/v1/jobs", { headers })).status).toBe(200);
  expect((await ask("/api/v1/jobs")).status).toBe(401);
  expect((await ask("/api/v1/janitor/run", { method: "POST", headers })).status).toBe(403);
  // A cookie is sent by any page; one of another origin gets nothing done with it.
  const foreign = await ask("/api/v1/jobs", {
    method: "POST",
    headers: { ...headers, origin: "https://evil.example" },
  });
  expect(foreign.status).toBe(403);
  await new Promise((resolve) => server.close(resolve));
});
