// A guarded fetch against real servers on this machine's loopback network, of which the tests allow one address: the others
// stand for the inside that must not be reached.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeGuardedFetch, type GuardedFetchOptions } from "#src/guarded-fetch/index.js";
import { makeFetch } from "#src/guarded-fetch/guarded-fetch.js";
import { readOptions } from "#src/guarded-fetch/options.js";

const OUTSIDE = "127.0.0.1";
const INSIDE = "127.0.0.2";
const closers: (() => void)[] = [];
let port = 0;
let other = 0;
const reachedInside: string[] = [];

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
const routes: Record<string, Handler> = {};

async function listen(server: Server, host: string, at = 0): Promise<number> {
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(at, host, resolve));
  closers.push(() => (server.closeAllConnections(), server.close()));
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  const answer: Handler = (request, response) => {
    const route = routes[new URL(request.url!, "http://x").pathname];
    if (route) route(request, response);
    else response.writeHead(404).end("nothing here");
  };
  port = await listen(createServer(answer), OUTSIDE);
  other = await listen(createServer(answer), OUTSIDE);
  await listen(
    createServer((request, response) => {
      reachedInside.push(request.url ?? "");
      response.end("the inside");
    }),
    INSIDE,
    port,
  );
});
afterAll(() => {
  for (const close of closers) close();
});

const allowed = (more: GuardedFetchOptions = {}): GuardedFetchOptions => ({ allow: [OUTSIDE], ports: "any", ...more });
const fetchThere = (path: string, more: GuardedFetchOptions = {}, request = {}) =>
  makeGuardedFetch(allowed(more))(`http://${OUTSIDE}:${port}${path}`, request);
const refused = (reason: string) => expect.objectContaining({ code: "HOLDFAST_FETCH_REFUSED", reason });
const failed = (reason: string) => expect.objectContaining({ code: "HOLDFAST_FETCH_FAILED", reason });

test("an answer: status, headers, body as bytes, text and JSON, by its charset", async () => {
  routes["/ok"] = (_, response) => {
    response.writeHead(201, { "content-type": "text/plain; charset=latin1", "x-a": "b" }).end(Buffer.from([0xe9]));
  };
  const answer = await fetchThere("/ok");
  expect(answer).toMatchObject({ status: 201, url: `http://${OUTSIDE}:${port}/ok`, redirects: [] });
  expect(answer.headers.get("x-a")).toBe("b");
  expect(await answer.text()).toBe("é");
  routes["/json"] = (_, response) => response.end('{"a":[1]}');
  expect(await (await fetchThere("/json")).json()).toEqual({ a: [1] });
  await expect((await fetchThere("/missing")).json()).rejects.toThrow(failed("answer"));
});

test("what is sent: method, headers, body in one piece and as a stream with its length", async () => {
  const seen: unknown[] = [];
  routes["/take"] = (request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      const { "content-length": length, "user-agent": agent, "x-own": own, connection } = request.headers;
      seen.push({ method: request.method, body, length, agent, own, connection });
      response.end();
    });
  };
  await (await fetchThere("/take", {}, { method: "POST", body: "hello", headers: { "X-Own": "1" } })).bytes();
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("str");
    yield Buffer.from("eam");
  }
  const sent = { method: "PUT", body: pieces(), headers: { "content-length": "6" } };
  await (await fetchThere("/take", { userAgent: "me" }, sent)).bytes();
  expect(seen).toEqual([
    { method: "POST", body: "hello", length: "5", agent: "holdfast", own: "1", connection: "close" },
    { method: "PUT", body: "stream", length: "6", agent: "me", own: undefined, connection: "close" },
  ]);
  for (const headers of [{ host: "evil" }, { "transfer-encoding": "chunked" }, { "x-a": "b\r\nc: d" }, { "": "a" }]) {
    await expect(fetchThere("/take", {}, { headers })).rejects.toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
  }
});

test("an address inside is not reached: as such, by a name, and by a name of which one address is inside", async () => {
  reachedInside.length = 0;
  const guarded = makeGuardedFetch({ ports: "any" });
  await expect(guarded(`http://${INSIDE}:${port}/`)).rejects.toThrow(refused("address"));
  await expect(guarded(`http://localhost:${port}/`)).rejects.toThrow(refused("address"));
  const named = (...addresses: string[]) =>
    makeFetch(readOptions(allowed()), async () => addresses.map((address) => ({ address, family: 4 })));
  await expect(named(INSIDE)(`http://shop.example:${port}/`)).rejects.toThrow(refused("address"));
  await expect(named(OUTSIDE, INSIDE)(`http://shop.example:${port}/`)).rejects.toThrow(refused("address"));
  await expect(named("::ffff:127.0.0.2")(`http://shop.example:${port}/`)).rejects.toThrow(refused("address"));
  await expect(named()(`http://shop.example:${port}/`)).rejects.toThrow(failed("name"));
  expect((await named(OUTSIDE)(`http://shop.example:${port}/`)).status).toBe(404);
  expect(reachedInside).toEqual([]);
});

test("a name that comes to mean the inside after its first look-up (DNS rebinding) does not lead there", async () => {
  reachedInside.length = 0;
  routes["/again"] = (_, response) => response.writeHead(302, { location: "/secret" }).end();
  let lookups = 0;
  const rebinding = makeFetch(readOptions(allowed()), async () => {
    lookups += 1;
    return [{ address: lookups === 1 ? OUTSIDE : INSIDE, family: 4 }];
  });
  await expect(rebinding(`http://rebind.example:${port}/again`)).rejects.toThrow(refused("address"));
  // What is connected to is what was checked: one look-up for each connection.
  expect(lookups).toBe(2);
  expect(reachedInside).toEqual([]);
});

test("redirects are followed by hand, up to five, and each is checked as the first was", async () => {
  reachedInside.length = 0;
  routes["/hops"] = (request, response) => {
    const left = Number(new URL(request.url!, "http://x").searchParams.get("left"));
    if (left === 0) response.end("there");
    else response.writeHead(302, { location: `/hops?left=${left - 1}` }).end("x".repeat(1_000));
  };
  const five = await fetchThere("/hops?left=5");
  expect(five.redirects).toHaveLength(5);
  expect(five.url).toContain("left=0");
  expect(await five.text()).toBe("there");
  await expect(fetchThere("/hops?left=6")).rejects.toThrow(refused("redirect"));
  const first = await fetchThere("/hops?left=1", { maxRedirects: 0 });
  expect(first.status).toBe(302);
  first.cancel();
  for (const [location, reason] of [
    [`http://${INSIDE}:${port}/`, "address"],
    ["http://169.254.169.254/latest/meta-data/", "address"],
    ["http://2130706434/", "address"],
    [`//[::ffff:127.0.0.2]:${port}/`, "address"],
    ["file:///etc/passwd", "url"],
    [`http://me:secret@${OUTSIDE}:${port}/ok`, "url"],
    ["http://[", "url"],
  ] as const) {
    routes["/to"] = (_, response) => response.writeHead(301, { location }).end();
    await expect(fetchThere("/to"), location).rejects.toThrow(refused(reason));
  }
  expect(reachedInside).toEqual([]);
});

test("a redirect to another origin takes no secrets along; 303 makes a GET, 307 sends the same again", async () => {
  const seen: object[] = [];
  routes["/land"] = (request, response) => {
    const { authorization, cookie, "x-own": own } = request.headers;
    request.resume().on("end", () => {
      seen.push({ method: request.method, authorization, cookie, own });
      response.end();
    });
  };
  const headers = { authorization: "Bearer a", cookie: "b=c", "x-own": "1" };
  for (const [status, host] of [
    [303, `http://${OUTSIDE}:${port}`],
    [307, `http://${OUTSIDE}:${other}`],
  ] as const) {
    routes["/leave"] = (request, response) => {
      request.resume().on("end", () => response.writeHead(status, { location: `${host}/land` }).end());
    };
    await (await fetchThere("/leave", {}, { method: "POST", body: "x", headers })).bytes();
  }
  expect(seen).toEqual([
    { method: "GET", authorization: "Bearer a", cookie: "b=c", own: "1" },
    { method: "POST", authorization: undefined, cookie: undefined, own: "1" },
  ]);
  async function* once(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("x");
  }
  await expect(fetchThere("/leave", {}, { method: "POST", body: once() })).rejects.toThrow(refused("redirect"));
});

test("compressed bodies are read, a chain of encodings and an unknown one are not", async () => {
  const text = "compressed ".repeat(100);
  for (const [encoding, body] of [
    ["gzip", gzipSync(text)],
    ["br", brotliCompressSync(text)],
    ["deflate", deflateSync(text)],
    ["identity", Buffer.from(text)],
  ] as const) {
    routes["/packed"] = (_, response) => response.writeHead(200, { "content-encoding": encoding }).end(body);
    expect(await (await fetchThere("/packed")).text(), encoding).toBe(text);
  }
  routes["/packed"] = (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end();
  expect(await (await fetchThere("/packed")).text()).toBe("");
  for (const encoding of ["gzip, gzip", "zstd", "constructor"]) {
    routes["/packed"] = (_, response) => response.writeHead(200, { "content-encoding": encoding }).end("x");
    await expect(fetchThere("/packed"), encoding).rejects.toThrow(refused("encoding"));
  }
  const cut = gzipSync(text).subarray(0, 20);
  routes["/packed"] = (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(cut);
  await expect((await fetchThere("/packed")).text()).rejects.toThrow(failed("answer"));
});

test("a body above the cap ends at the cap: announced, not announced, and as a bomb", async () => {
  routes["/large"] = (_, response) => response.end(Buffer.alloc(2_001));
  await expect((await fetchThere("/large", { maxBodyBytes: 2_000 })).bytes()).rejects.toThrow(refused("size"));
  expect(await (await fetchThere("/large", { maxBodyBytes: 2_001 })).bytes()).toHaveLength(2_001);
  let sent = 0;
  routes["/endless"] = (_, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536;
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  };
  await expect((await fetchThere("/endless", { maxBodyBytes: 1_000_000 })).bytes()).rejects.toThrow(refused("size"));
  expect(sent).toBeLessThan(50_000_000);
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  routes["/bomb"] = (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
  await expect((await fetchThere("/bomb", { maxBodyBytes: 1_000_000 })).bytes()).rejects.toThrow("decompressed");
  await expect((await fetchThere("/bomb", { maxBodyBytes: 100_000_000 })).bytes()).rejects.toThrow("100 times as many");
  expect(await (await fetchThere("/bomb", { maxBodyBytes: 100_000_000, maxRatio: 2_000 })).bytes()).toHaveLength(
    50_000_000,
  );
});

test("headers above the cap, and what is not HTTP", async () => {
  routes["/headers"] = (_, response) => response.writeHead(200, { "x-long": "y".repeat(5_000) }).end();
  await expect(fetchThere("/headers", { maxHeaderBytes: 4_096 })).rejects.toThrow(refused("size"));
  expect((await fetchThere("/headers", { maxHeaderBytes: 8_192 })).status).toBe(200);
  const tcp = createTcpServer((socket) => void socket.on("error", () => {}).end("SSH-2.0-OpenSSH\r\n"));
  await new Promise<void>((resolve) => tcp.listen(0, OUTSIDE, resolve));
  closers.push(() => tcp.close());
  const at = (tcp.address() as AddressInfo).port;
  await expect(makeGuardedFetch(allowed())(`http://${OUTSIDE}:${at}/`)).rejects.toThrow(failed("answer"));
});

test("time: no headers, a silent body, a body drop by drop, nobody there; and the caller's own signal", async () => {
  routes["/silent"] = () => {};
  await expect(fetchThere("/silent", { headersTimeout: "1s" })).rejects.toThrow(failed("timeout"));
  await expect(fetchThere("/silent", { timeout: "200ms" })).rejects.toThrow(failed("timeout"));
  routes["/drops"] = (request, response) => {
    const timer = setInterval(() => response.write("x"), 50);
    request.on("close", () => clearInterval(timer));
  };
  const drops = await fetchThere("/drops", { timeout: "400ms" });
  await expect(drops.text()).rejects.toThrow(failed("timeout"));
  const controller = new AbortController();
  const waiting = fetchThere("/silent", {}, { signal: controller.signal });
  controller.abort(new Error("not any more"));
  await expect(waiting).rejects.toThrow("not any more");
  const slowLookup = makeFetch(readOptions(allowed({ timeout: "200ms" })), () => new Promise(() => {}));
  await expect(slowLookup("http://slow.example/")).rejects.toThrow(failed("timeout"));
  const free = await new Promise<number>((resolve) => {
    const probe = createTcpServer().listen(0, OUTSIDE, () => {
      const { port: found } = probe.address() as AddressInfo;
      probe.close(() => resolve(found));
    });
  });
  await expect(makeGuardedFetch(allowed())(`http://${OUTSIDE}:${free}/`)).rejects.toThrow(failed("connection"));
});

test("a body that nobody reads, or that is cancelled, leaves no connection behind", async () => {
  let open = 0;
  const server = createServer((_, response) => void response.write("the beginning"));
  server.on("connection", (socket) => {
    open += 1;
    socket.on("close", () => (open -= 1));
  });
  const at = await listen(server, OUTSIDE);
  const url = `http://${OUTSIDE}:${at}/`;
  (await makeGuardedFetch(allowed())(url)).cancel();
  await makeGuardedFetch(allowed({ timeout: "300ms" }))(url);
  for await (const piece of (await makeGuardedFetch(allowed())(url)).body) {
    expect(Buffer.from(piece).toString()).toBe("the beginning");
    break;
  }
  await expect.poll(() => open).toBe(0);
});
