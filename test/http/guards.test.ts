// Who may ask: the host, the origin, the token; what every answer carries; how the server comes down.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeHandler, serve } from "#src/http/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { type Api, authorization, KINDS, rawRequest, serveApi, TOKEN } from "./api.ts";

const bench = useHoldfast("server");
let open: Api;
let guarded: Api;
const token = "another-token-for-tests";
const incidents: unknown[] = [];
beforeAll(async () => {
  open = await serveApi(bench.hf);
  guarded = {
    ...open,
    server: await serve({ hf: open.hf, kinds: KINDS, port: 0, token, allowedHosts: ["jobs.example.com"] }),
  };
});
afterAll(async () => {
  await guarded.server.close();
  await open.close();
});

describe("the host", () => {
  test.each(["localhost", "localhost:7070", "LOCALHOST", "127.0.0.1:1", "[::1]:80", "localhost."])(
    "%s is answered",
    async (host) => {
      expect((await rawRequest(open.server.port, { headers: { host } })).status).toBe(200);
    },
  );

  test.each([
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "jobs.example.com",
    "a@b",
  ])("%s is refused, on every route", async (host) => {
    for (const path of ["/livez", "/readyz", "/api/v1/jobs", "/nothing"]) {
      const { status, text } = await rawRequest(open.server.port, { path, headers: { host } });
      expect([400, 403]).toContain(status);
      expect(JSON.parse(text)).toHaveProperty("error.hint");
    }
  });

  test("a name that was allowed is answered, but does not open the door", async () => {
    const headers = { host: "jobs.example.com" };
    expect((await rawRequest(guarded.server.port, { headers })).status).toBe(200);
    expect((await rawRequest(guarded.server.port, { headers, path: "/api/v1/jobs" })).status).toBe(401);
  });

  test("an absolute address in the request line does not get around it", async () => {
    const path = "http://evil.example/api/v1/jobs";
    expect(
      (await rawRequest(open.server.port, { path, headers: { host: "localhost", ...authorization } })).status,
    ).toBe(403);
  });
});

describe("the origin", () => {
  const post = (headers: Record<string, string>) =>
    rawRequest(open.server.port, {
      method: "POST",
      path: "/api/v1/jobs/x/cancel",
      headers: { ...authorization, ...headers },
    });

  test("a page of another origin changes nothing", async () => {
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "http://localhost:1", host: "localhost:2" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ]) {
      const { status, text } = await post(headers);
      expect(status).toBe(403);
      expect(text).toContain("HOLDFAST_HTTP_ORIGIN_REFUSED");
    }
  });

  test("a program, and a page of this server, get past it", async () => {
    const host = `localhost:${open.server.port}`;
    for (const headers of [{}, { host, origin: `http://${host}` }, { "sec-fetch-site": "same-origin" }]) {
      // The id is wrong, and that is what it is told.
      expect((await post(headers)).status).toBe(400);
    }
  });

  test("nobody is told that cross-origin requests are welcome", async () => {
    const { status, headers } = await open.get("/api/v1/jobs", { origin: "https://evil.example" });
    expect(status).toBe(200);
    expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
    const preflight = await fetch(`${open.server.url}/api/v1/jobs`, { method: "OPTIONS", headers: authorization });
    expect(preflight.status).toBe(405);
  });
});

describe("the token", () => {
  const ask = (header?: string) =>
    fetch(`${guarded.server.url}/api/v1/jobs`, { headers: header === undefined ? {} : { authorization: header } });

  test("without it, with another, or in another form: 401", async () => {
    for (const wrong of [undefined, "", "Bearer", "Bearer ", `Bearer ${token}x`, `Basic ${token}`, token]) {
      const response = await ask(wrong);
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toContain("Bearer");
      expect(await response.text()).not.toContain(token);
    }
  });

  test("with it: in", async () => {
    expect(await ask(`Bearer ${token}`)).toMatchObject({ status: 200 });
    expect(await ask(`bearer  ${token}`)).toMatchObject({ status: 200 });
  });

  test("health needs none; an unknown path tells nothing without it", async () => {
    for (const path of ["/livez", "/readyz", "/healthz"]) {
      expect((await fetch(guarded.server.url + path)).status).toBe(200);
    }
    expect((await fetch(`${guarded.server.url}/nothing`)).status).toBe(401);
  });

  test("beyond loopback there is no server without one", async () => {
    for (const host of ["0.0.0.0", "::"]) {
      await expect(serve({ hf: open.hf, kinds: [], host, port: 0 })).rejects.toThrow("there is no token");
      await expect(serve({ hf: open.hf, kinds: [], host, port: 0, token: "fifteen-letters" })).rejects.toThrow(
        "the token has 15 characters",
      );
    }
    const server = await serve({ hf: open.hf, kinds: [], host: "0.0.0.0", port: 0, token });
    expect((await rawRequest(server.port, { headers: { host: "10.1.2.3:80" } })).status).toBe(200);
    expect((await rawRequest(server.port, { headers: { host: "evil.example" } })).status).toBe(403);
    await server.close();
  });

  test("a token that no header can carry is refused at start", () => {
    for (const wrong of ["", "two words", "grün"]) {
      expect(() => makeHandler({ hf: open.hf, kinds: [], token: wrong })).toThrow("The token");
    }
  });
});

describe("every answer", () => {
  test("has the headers that keep browsers away from it", async () => {
    for (const path of ["/livez", "/api/v1/jobs", "/api/v1/jobs/x", "/nothing"]) {
      const { headers } = await open.get(path);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("content-type")).toContain("application/json");
    }
  });

  test("says what is wrong with the route or the method", async () => {
    const missing = await open.get("/api/v1/job");
    expect(missing.status).toBe(404);
    expect(missing.body.error).toMatchObject({
      code: "HOLDFAST_HTTP_ROUTE_UNKNOWN",
      message: "There is nothing at /api/v1/job.",
    });
    const wrong = await fetch(`${open.server.url}/api/v1/jobs`, { method: "DELETE", headers: authorization });
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST, GET, HEAD");
    expect((await fetch(`${open.server.url}/livez`, { method: "HEAD" })).status).toBe(200);
  });

  test("a failure inside tells an incident and nothing else", async () => {
    const boom = new Error("select secret from passwords");
    const hf = { ...open.hf, jobs: { ...open.hf.jobs, list: () => Promise.reject(boom) } };
    const handler = makeHandler({
      hf,
      kinds: [],
      token: TOKEN,
      onError: (error, incident) => incidents.push([error, incident]),
    });
    const response = await handler(new Request("http://localhost/api/v1/jobs", { headers: authorization }));
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).not.toContain("secret");
    expect(text).not.toContain(".ts:");
    const [error, incident] = incidents[0] as [Error, string];
    expect(error).toBe(boom);
    expect(text).toContain(incident);
  });

  test("an unknown option of makeHandler is refused", () => {
    const wrong = { hf: open.hf, kinds: [], tokn: "x" };
    expect(() => makeHandler(wrong)).toThrow('unknown option "tokn"');
  });
});

describe("the server", () => {
  test("a port that is taken is refused with a sentence", async () => {
    const taken = serve({ hf: open.hf, kinds: [], token, port: open.server.port });
    await expect(taken).rejects.toMatchObject({
      name: "PortUnavailable",
      message: `Port ${open.server.port} on 127.0.0.1 is in use by another process.`,
    });
  });

  test("an address that is not ours is refused with a sentence", async () => {
    const elsewhere = serve({ hf: open.hf, kinds: [], host: "192.0.2.1", port: 0, token });
    await expect(elsewhere).rejects.toThrow("not an address of this machine");
  });

  test("close() lets a request under way finish, and is not held up by a silent connection", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    let asked = (): void => {};
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const list: typeof open.hf.jobs.list = async () => {
      asked();
      await held;
      return { jobs: [], next: null };
    };
    const server = await serve({ hf: { ...open.hf, jobs: { ...open.hf.jobs, list } }, kinds: [], token, port: 0 });
    const silent = connect(server.port, "127.0.0.1");
    await new Promise((resolve) => silent.once("connect", resolve));
    const underWay = fetch(`${server.url}/api/v1/jobs`, { headers: { authorization: `Bearer ${token}` } });
    await isAsked;
    const isCut = new Promise((resolve) => silent.once("close", resolve));
    const closed = server.close();
    await isCut;
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow();
    release();
    expect((await underWay).status).toBe(200);
    await closed;
  });
});
