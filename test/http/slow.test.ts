// Clients that are slow, silent, cut off or send more than they said: an answer with a sentence where there is somebody
// to read it, a closed connection in any case, and a server that goes on.
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { streamBody } from "#src/http/body.js";
import { toErrorAnswer } from "#src/http/errors.js";
import { toNodeHandler } from "#src/http/index.js";
import { useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";

interface Talk {
  socket: Socket;
  /** All that was said until the other side closed. */
  closed: Promise<string>;
}

function talk(port: number, text: string): Talk {
  const socket = connect(port, "127.0.0.1");
  let said = "";
  socket.setEncoding("utf8").on("data", (more: string) => (said += more));
  socket.on("error", () => {});
  const closed = new Promise<string>((resolve) => socket.once("close", () => resolve(said)));
  socket.write(text);
  return { socket, closed };
}

const head = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;

describe("the API", () => {
  const bench = useHoldfast("embedded");
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf);
  });
  afterAll(() => api.close());

  test("headers or a body that stop are answered with 408 after ten seconds, and the connection is closed", async () => {
    const startedAt = performance.now();
    const { closed } = talk(api.server.port, `${head("/api/v1/jobs", 100)}{"kind":`);
    const headers = talk(api.server.port, "POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nx-");
    const said = await closed;
    expect(said).toContain("HTTP/1.1 408");
    expect(said).toContain("HOLDFAST_HTTP_BODY_TOO_SLOW");
    expect(performance.now() - startedAt).toBeGreaterThan(9_500);
    expect(await headers.closed).toContain("HTTP/1.1 408");
    // Looked for every five seconds.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    expect((await api.get("/livez")).status).toBe(200);
  });

  test("a client that goes away in the middle of its body harms nobody", async () => {
    for (let n = 0; n < 20; n += 1) {
      const { socket } = talk(api.server.port, `${head("/api/v1/jobs", 100_000)}{"kind":"anything","payload":"`);
      await new Promise((resolve) => socket.once("connect", resolve));
      socket.resetAndDestroy();
    }
    expect((await api.post("/api/v1/jobs", { kind: "anything" })).status).toBe(201);
  });

  test.each([
    ["not HTTP", "hello\r\n\r\n", "HTTP/1.1 400"],
    [
      "two lengths",
      "POST /api/v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
      "HTTP/1.1 400",
    ],
    [
      "a length and chunks",
      "POST /api/v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
      "HTTP/1.1 400",
    ],
    [
      "headers without end",
      `GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ${"x".repeat(70_000)}\r\n\r\n`,
      "HTTP/1.1 431",
    ],
    ["no host", "GET /livez HTTP/1.1\r\n\r\n", "HTTP/1.1 400"],
    ["two hosts", "GET /livez HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n", "HTTP/1.1 4"],
  ])("%s", async (_, text, answer) => {
    const { closed, socket } = talk(api.server.port, text);
    setTimeout(() => socket.end(), 500);
    const said = await closed;
    expect(said.startsWith(answer), said).toBe(true);
    expect((await api.get("/livez")).status).toBe(200);
  });

  test("a body that nobody reads does not hold the connection", async () => {
    const { closed } = talk(api.server.port, `${head("/api/v1/jobs/x/cancel", 50_000_000)}abc`);
    const said = await closed;
    expect(said).toContain("HTTP/1.1 400");
  });
});

describe("streamBody", () => {
  let server: Server;
  let port: number;
  const outcomes: string[] = [];
  beforeAll(async () => {
    const listener = toNodeHandler(async (request) => {
      try {
        let size = 0;
        for await (const chunk of streamBody(request, { maxBytes: 1_000, idleMs: 300, withinMs: 1_000 })) {
          size += chunk.byteLength;
        }
        return Response.json({ size });
      } catch (error) {
        const { status, body, headers } = toErrorAnswer({ error, invalidStatus: 400, onError: () => {} });
        outcomes.push(body.error.code);
        return Response.json(body, { status, headers });
      }
    });
    server = createServer(listener);
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => void server.close());

  test("a drip that never pauses is ended by the time for all of it", async () => {
    const { socket, closed } = talk(port, head("/", 900));
    const drip = setInterval(() => socket.write("x"), 100);
    const said = await closed;
    clearInterval(drip);
    expect(said).toContain("HTTP/1.1 408");
  });

  test("exactly as much as it may be is taken, one byte more is not, announced or not", async () => {
    const send = (size: number, headers: string) =>
      talk(port, `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${headers}\r\n\r\n`).socket.end(
        headers.includes("chunked") ? `${size.toString(16)}\r\n${"x".repeat(size)}\r\n0\r\n\r\n` : "x".repeat(size),
      );
    for (const [size, status] of [
      [1_000, 200],
      [1_001, 413],
    ] as const) {
      for (const headers of [`content-length: ${size}`, "transfer-encoding: chunked"]) {
        const socket = send(size, headers);
        let said = "";
        socket.on("data", (more: string) => (said += more));
        await new Promise((resolve) => socket.once("close", resolve));
        expect(said, headers).toContain(`HTTP/1.1 ${status}`);
      }
    }
  });

  test("a body that is announced as too large is refused before any of it came", async () => {
    const said = await talk(port, head("/", 1_001)).closed;
    expect(said).toContain("HTTP/1.1 413");
  });

  test("a client that goes away is a body that is incomplete", async () => {
    outcomes.length = 0;
    const { socket } = talk(port, `${head("/", 900)}x`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    socket.resetAndDestroy();
    await expect.poll(() => outcomes).toEqual(["HOLDFAST_HTTP_REQUEST_UNREADABLE"]);
  });
});
