// Delivery to a callback: a real server on this machine takes the posts; the guard is told that it may be called.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { runDue } from "holdfast/testing";
import { idIn, openScene, type Scene, sha256, someBytes } from "./scene.ts";

interface Post {
  headers: IncomingMessage["headers"];
  bytes: Buffer;
}

describe("push", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  let callback = "";
  const posts: Post[] = [];
  /** Statuses to answer with, one after the other; then 204. */
  const answers: (number | "cut" | [number, Record<string, string>])[] = [];
  const receiver = createServer((request: IncomingMessage, response: ServerResponse) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const [status, headers] = [answers.shift() ?? 204].flat() as [number | "cut", Record<string, string>?];
      if (status === "cut") return request.socket.destroy();
      posts.push({ headers: request.headers, bytes: Buffer.concat(pieces) });
      response.writeHead(status, headers).end("thank you");
      return undefined;
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    callback = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    scene = await openScene(bench.hf, { callbacks: { allow: ["127.0.0.1"], ports: "any" } });
  });
  afterAll(() => void receiver.close());
  beforeEach(() => {
    posts.length = 0;
    answers.length = 0;
  });

  const register = (more: object = {}) => scene.register({ delivery_mode: "push", callback_url: callback, ...more });
  const statusOf = async (id: string): Promise<{ code: string; error?: string; tries?: number }> =>
    (await scene.call("GET", `/workspaces/${id}/chat`)).json.messages[0].files[0].status;

  test("files are posted whole, in order, before the message that mentions them, and count as received", async () => {
    const { id } = await register({ callback_token: "for-you-only" });
    const bytes = someBytes(800_000);
    const { json } = await scene.upload(id, [
      { name: "a.bin", content: bytes, type: "image/png" },
      { name: "b.txt", content: "b" },
    ]);
    await scene.say(
      id,
      "look",
      json.files.map((file: { uri: string }) => file.uri),
    );
    expect(await statusOf(id)).toMatchObject({ code: "waiting" });
    expect(await runDue(bench.hf, scene.kinds)).toMatchObject({ done: 3 });
    expect(posts.map(({ headers }) => headers["x-event"])).toEqual([
      "chat_upload_receive",
      "chat_upload_receive",
      "chat_message",
    ]);
    expect(sha256(posts[0]!.bytes)).toBe(sha256(bytes));
    expect(posts[0]!.headers).toMatchObject({
      authorization: "Bearer for-you-only",
      "content-type": "image/png",
      "content-length": "800000",
      "x-file-id": idIn(json.files[0].uri),
      "x-file-name": "a.bin",
      "x-workspace-id": id,
      "idempotency-key": `${id}:1`,
      "repr-digest": `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`,
    });
    expect(JSON.parse(posts[2]!.bytes.toString())).toMatchObject({
      method: "chat_message",
      text: "look",
      files: [{}, {}],
    });
    expect(await statusOf(id)).toMatchObject({ code: "received" });
  });

  test("a mode that was never said is push; without a callback it is 422", async () => {
    const { id } = await scene.register({});
    const { status, json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    expect([status, json.error.code]).toEqual([422, "CHAT_NO_CALLBACK"]);
    const named = await scene.register({ callback_url: callback });
    expect((await scene.upload(named.id, [{ name: "a", content: "a" }])).status).toBe(200);
    expect(await runDue(bench.hf, scene.kinds)).toMatchObject({ done: 1 });
    expect(posts).toHaveLength(1);
  });

  test("what fails is tried again, under the same key, and the sender sees it; Retry-After is kept", async () => {
    const { id } = await register();
    const { json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    await scene.say(id, "look", [json.files[0].uri]);
    answers.push(500, "cut", [503, { "retry-after": "120" }]);
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({ code: "retrying", tries: 1, error: "The workspace answered 500" });
    await bench.hf.clock.advance("11s");
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({ code: "retrying", tries: 2 });
    await bench.hf.clock.advance("31s");
    await runDue(bench.hf, scene.kinds);
    await bench.hf.clock.advance("119s");
    await runDue(bench.hf, scene.kinds);
    expect(posts).toHaveLength(2);
    await bench.hf.clock.advance("2s");
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({ code: "received" });
    expect(new Set(posts.slice(0, 3).map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(posts.at(-1)!.headers["x-event"]).toBe("chat_message");
  });

  test.each([
    ["metadata", "http://169.254.169.254/latest/meta-data/"],
    ["another loopback", "http://127.0.0.2/"],
    ["a private address", "http://10.0.0.1/"],
    ["IPv6 that carries IPv4", "http://[::ffff:10.0.0.1]/"],
  ])("a callback that leads inside is given up at once, and nothing is sent: %s", async (_, url) => {
    const { id } = await register({ callback_url: url });
    const { json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    await scene.say(id, "look", [json.files[0].uri]);
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({
      code: "undelivered",
      error: expect.stringContaining("not a public address"),
    });
    expect(posts).toEqual([]);
  });

  test("a redirect is not followed, and what is hopeless is given up at once", async () => {
    const { id } = await register();
    answers.push([302, { location: "http://169.254.169.254/" }], 410);
    const { json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    await scene.say(id, "look", [json.files[0].uri]);
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({ code: "retrying", error: "The workspace answered 302" });
    await bench.hf.clock.advance("11s");
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({ code: "undelivered", error: "The workspace answered 410" });
  });

  test("what expired before it could be delivered is said to be", async () => {
    const { id } = await register();
    answers.push(500);
    const { json } = await scene.upload(id, [{ name: "a", content: "a" }], { query: "?ttl=1s" });
    await scene.say(id, "look", [json.files[0].uri]);
    await runDue(bench.hf, scene.kinds);
    await bench.hf.clock.advance("11s");
    await runDue(bench.hf, scene.kinds);
    expect(await statusOf(id)).toMatchObject({ code: "expired" });
    expect(posts.filter(({ headers }) => headers["x-event"] === "chat_upload_receive")).toHaveLength(1);
  });

  test.each([
    { name: "" },
    { name: "a", delivery_mode: "mail" },
    { name: "a", delivery_mode: "push" },
    { name: "a", callback_url: "ftp://x" },
    { name: "a", callback_url: "http://me:pw@x/" },
    { name: "a", callback_url: 5 },
    { name: "a", callback_token: "two words" },
  ])("%j is no workspace", async (body) => {
    expect((await scene.call("POST", "/workspaces", { body })).status).toBe(422);
  });
});
