// The inbox over HTTP: forms and raw bodies in, attachments and ranges out, the same 404 for what is somebody else's and
// for what is not there, a recipient's token that opens its own inbox and no other.
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHUNK_BYTES } from "#src/inbox/put.js";
import { type Api, assertAsPromised, serveApi, TOKEN } from "../http/api.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { purge, sha256, someBytes, someone, tablesOf } from "./scene.ts";

const MISSING = "00000000-0000-7000-8000-000000000000";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier, { inbox: { maxFileBytes: 4 * CHUNK_BYTES, maxFilesPerPut: 3 } });
  let api: Api;
  let bound: string;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { token: TOKEN });
    bound = (await bench.hf.tokens.create({ name: "ws", role: "operator", recipient: "ws-1" })).token;
  });
  afterAll(() => api.close());

  const at = (path: string): string => `${api.server.url}/api/v1/inbox${path}`;
  const auth = (token = TOKEN): Record<string, string> => ({ authorization: `Bearer ${token}` });
  async function post(path: string, body: RequestInit["body"], headers: Record<string, string> = {}) {
    const init = { method: "POST", headers: { ...auth(), ...headers }, body, duplex: "half" };
    const response = await fetch(at(path), init as RequestInit);
    // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
    const answer = (await response.json()) as any;
    if (response.ok) assertAsPromised("POST", `/api/v1/inbox${path}`, response.status, answer);
    return { status: response.status, headers: response.headers, body: answer };
  }
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(at(path), { headers: { ...auth(), ...headers } });

  test("a raw body is a file, with the name in the URL and the type in its header", async () => {
    const to = someone();
    const bytes = someBytes(CHUNK_BYTES + 77);
    const put = await post(`/${to}/parcels?name=my%20cat.png&ttl=10m&meta=%7B%22chat%22%3A5%7D`, bytes, {
      "content-type": "image/png",
    });
    expect(put.status).toBe(201);
    const [parcel] = put.body.parcels;
    expect(parcel).toMatchObject({ name: "my_cat.png", type: "image/png", size: bytes.length, sha256: sha256(bytes) });
    expect(parcel).toMatchObject({ state: "waiting", recipient: to, created: true, meta: { chat: 5 } });
    const content = await get(`/${to}/parcels/${parcel.id}/content`);
    expect(content.status).toBe(200);
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true);
    expect(Object.fromEntries(content.headers)).toMatchObject({
      "content-type": "image/png",
      "content-length": String(bytes.length),
      "content-disposition": `attachment; filename="my_cat.png"; filename*=UTF-8''my_cat.png`,
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("sandbox") as string,
      "cross-origin-resource-policy": "same-origin",
      "accept-ranges": "bytes",
      "cache-control": "no-store",
      etag: `"${sha256(bytes)}"`,
      "repr-digest": `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`,
    });
    await expect
      .poll(async () => ((await (await get(`/${to}/parcels/${parcel.id}`)).json()) as { state: string }).state)
      .toBe("fetched");
    expect((await post(`/${to}/parcels/${parcel.id}/ack`, "")).body).toEqual({
      acked: true,
      again: false,
      gone: false,
    });
    expect((await post(`/${to}/parcels/${parcel.id}/ack`, "")).body).toEqual({ acked: true, again: true, gone: false });
    // Within its retention it is still there to be read again.
    expect((await get(`/${to}/parcels/${parcel.id}/content`)).status).toBe(200);
  });

  test("a type that was not given is plain bytes; an HTML file is an attachment like any other", async () => {
    const to = someone();
    const html = await post(`/${to}/parcels?name=x.html`, "<script>", { "content-type": "text/html; charset=utf-8" });
    const none = await post(`/${to}/parcels`, new Uint8Array([1, 2]));
    expect(html.body.parcels[0]).toMatchObject({ type: "text/html" });
    expect(none.body.parcels[0]).toMatchObject({ type: "", name: "file" });
    const answer = await get(`/${to}/parcels/${html.body.parcels[0].id}/content`);
    expect(answer.headers.get("content-disposition")).toMatch(/^attachment/);
    const plain = await get(`/${to}/parcels/${none.body.parcels[0].id}/content`);
    expect(plain.headers.get("content-type")).toBe("application/octet-stream");
  });

  test("a form brings several files, in order, all or none", async () => {
    const to = someone();
    const files = [someBytes(3), someBytes(2 * CHUNK_BYTES), someBytes(CHUNK_BYTES)];
    const form = new FormData();
    for (const [n, bytes] of files.entries())
      form.append("files", new Blob([bytes], { type: "image/gif" }), `${n} a.gif`);
    const put = await post(`/${to}/parcels?key=k`, form);
    expect(put.status).toBe(201);
    expect(put.body.parcels.map((p: Record<string, unknown>) => [p["name"], p["sha256"], p["type"], p["key"]])).toEqual(
      files.map((bytes, n) => [`${n}_a.gif`, sha256(bytes), "image/gif", n === 0 ? "k" : `k.${n}`]),
    );
    const again = new FormData();
    for (const [n, bytes] of files.entries()) again.append("files", new Blob([bytes]), `${n}`);
    const second = await post(`/${to}/parcels?key=k`, again);
    expect(second.status).toBe(200);
    expect(second.body.parcels.map((p: { id: string }) => p.id)).toEqual(
      put.body.parcels.map((p: { id: string }) => p.id),
    );

    const tooMany = new FormData();
    for (let n = 0; n < 4; n += 1) tooMany.append("files", new Blob(["x"]), `${n}`);
    const tooLarge = new FormData();
    tooLarge.append("files", new Blob(["x"]), "small");
    tooLarge.append("files", new Blob([someBytes(4 * CHUNK_BYTES + 1)]), "large.bin");
    const noFiles = new FormData();
    const field = new FormData();
    field.append("note", "hello");
    for (const [wrong, status, text] of [
      [tooMany, 400, "more than 3 files"],
      [tooLarge, 413, "large.bin"],
      [noFiles, 400, "no files"],
      [field, 400, '"note" is not a file'],
    ] as const) {
      const refused = await post(`/${to}/parcels`, wrong);
      expect(refused.status).toBe(status);
      expect(refused.body.error.message).toContain(text);
    }
    expect((await bench.hf.inbox(to).list()).parcels).toHaveLength(3);
  });

  test("forms that are cut off, or are none, are refused, and nothing of them is stored", async () => {
    const to = someone();
    const type = "multipart/form-data; boundary=b";
    const whole = `--b\r\ncontent-disposition: form-data; name="f"; filename="a"\r\n\r\nabc\r\n--b--\r\n`;
    for (let end = 0; end < whole.length - 4; end += 1) {
      const refused = await post(`/${to}/parcels`, whole.slice(0, end), { "content-type": type });
      expect([end, refused.status]).toEqual([end, 400]);
    }
    for (const body of [
      whole.replace("--b--", "--bXX"),
      whole.replace("content-disposition", "x-other"),
      whole.replace("form-data", "attachment"),
      `--b\r\n${"x: y\r\n".repeat(5_000)}\r\nabc\r\n--b--`,
      "x".repeat(100_000),
    ]) {
      expect((await post(`/${to}/parcels`, body, { "content-type": type })).status).toBe(400);
    }
    expect((await post(`/${to}/parcels`, whole, { "content-type": "multipart/form-data" })).status).toBe(400);
    expect((await bench.hf.inbox(to).list()).parcels).toEqual([]);
    expect((await post(`/${to}/parcels`, whole, { "content-type": type })).status).toBe(201);
    await expect
      .poll(async () => (await purge(bench), await tablesOf(bench, to)))
      .toMatchObject({ drafts: 0, chunks: 1 });
  });

  test("what is wrong with a put is said with its status", async () => {
    const to = someone();
    const large = new Uint8Array(4 * CHUNK_BYTES + 1);
    const streamed = new ReadableStream({
      start(controller) {
        controller.enqueue(large);
        controller.close();
      },
    });
    for (const [path, body, status, text] of [
      [`/${to}/parcels?name=a.bin`, large, 413, "a.bin"],
      [`/${to}/parcels?name=a.bin`, streamed, 413, "a.bin"],
      [`/${to}/parcels`, "", 400, "empty"],
      [`/${to}/parcels?ttl=5`, "x", 400, "ttl"],
      [`/${to}/parcels?meta=x`, "x", 400, "meta"],
      [`/${to}/parcels?nmae=x`, "x", 400, "nmae"],
      [`/${to}/parcels?sha256=${"0".repeat(64)}`, "x", 422, "SHA-256"],
      [`/no%20body/parcels`, "x", 400, "recipient"],
    ] as const) {
      const refused = await post(path, body);
      expect([path, refused.status]).toEqual([path, status]);
      expect(refused.body.error.message).toContain(text);
    }
    expect((await bench.hf.inbox(to).list()).parcels).toEqual([]);
  });

  test("an upload whose connection is cut is never seen", async () => {
    const to = someone();
    for (const [how, header] of [
      ["with a length", "content-length: 600000"],
      ["in chunks", "transfer-encoding: chunked"],
    ]) {
      const socket = connect(api.server.port, "127.0.0.1");
      const lines = [
        `POST /api/v1/inbox/${to}/parcels?name=cut HTTP/1.1`,
        "host: 127.0.0.1",
        `authorization: Bearer ${TOKEN}`,
      ];
      const piece = how === "in chunks" ? Buffer.from(`49c0c\r\n${"x".repeat(0x49c0c)}\r\n`) : someBytes(302_092);
      socket.write(`${[...lines, header].join("\r\n")}\r\n\r\n`);
      socket.write(piece);
      await expect.poll(async () => (await tablesOf(bench, to)).chunks).toBeGreaterThan(0);
      socket.destroy();
      await expect
        .poll(async () => (await purge(bench), await tablesOf(bench, to)))
        .toMatchObject({ parcels: 0, drafts: 0, chunks: 0 });
    }
  });

  test("ranges: a fetch that broke off goes on where it stopped", async () => {
    const to = someone();
    const bytes = someBytes(2 * CHUNK_BYTES + 10);
    const { id } = await bench.hf.inbox(to).put(bytes);
    const path = `/${to}/parcels/${id}/content`;
    const { length } = bytes;
    for (const [range, start, end] of [
      ["bytes=0-0", 0, 1],
      [`bytes=${CHUNK_BYTES - 1}-${CHUNK_BYTES}`, CHUNK_BYTES - 1, CHUNK_BYTES + 1],
      [`bytes=100-`, 100, length],
      ["bytes=-5", length - 5, length],
      [`bytes=5-${length * 2}`, 5, length],
      [`bytes=-${length * 2}`, 0, length],
    ] as const) {
      const part = await get(path, { range });
      expect([range, part.status]).toEqual([range, 206]);
      expect(part.headers.get("content-range")).toBe(`bytes ${start}-${end - 1}/${length}`);
      expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(start, end))).toBe(true);
    }
    for (const range of ["bytes=5-2", "bytes=0-1,4-5", "lines=1-2", "bytes=-"]) {
      const whole = await get(path, { range });
      expect([range, whole.status]).toEqual([range, 200]);
      await whole.arrayBuffer();
    }
    for (const range of [`bytes=${length}-`, "bytes=-0"]) {
      const refused = await get(path, { range });
      expect([range, refused.status]).toEqual([range, 416]);
      expect(refused.headers.get("content-range")).toBe(`bytes */${length}`);
    }
    const changed = await get(path, { range: "bytes=5-", "if-range": '"something else"' });
    expect(changed.status).toBe(200);
    await changed.arrayBuffer();
    expect((await get(path, { range: "bytes=5-", "if-range": changed.headers.get("etag")! })).status).toBe(206);
  });

  test("a HEAD, and a part, are not a fetch", async () => {
    const to = someone();
    const { id } = await bench.hf.inbox(to).put(someBytes(1_000));
    const head = await fetch(at(`/${to}/parcels/${id}/content`), { method: "HEAD", headers: auth() });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "1000"]);
    await (await get(`/${to}/parcels/${id}/content`, { range: "bytes=0-10" })).arrayBuffer();
    expect((await bench.hf.inbox(to).get(id))!.state).toBe("waiting");
  });

  test("somebody else's parcel is the same 404 as none; a wrong id is 400", async () => {
    const [mine, theirs] = [someone(), someone()];
    const { id } = await bench.hf.inbox(mine).put("secret");
    const answers = async (of: string): Promise<unknown[]> => [
      await (await get(`/${theirs}/parcels/${of}`)).json(),
      await (await get(`/${theirs}/parcels/${of}/content`)).json(),
      (await post(`/${theirs}/parcels/${of}/ack`, "")).body,
    ];
    const foreign = JSON.stringify(await answers(id)).replaceAll(id, MISSING);
    expect(foreign).toBe(JSON.stringify(await answers(MISSING)));
    expect(foreign).toContain("HOLDFAST_NOT_FOUND");
    expect((await get(`/${theirs}/parcels/${id}/content`)).status).toBe(404);
    expect((await get(`/${mine}/parcels/nonsense/content`)).status).toBe(400);
    expect((await post(`/${mine}/parcels/nonsense/ack`, "")).status).toBe(400);
    expect((await bench.hf.inbox(mine).get(id))!.state).toBe("waiting");
  });

  test("a recipient's token opens its own inbox and no other, and puts nothing", async () => {
    const own = await bench.hf.inbox("ws-1").put("mine");
    const other = await bench.hf.inbox("ws-2").put("theirs");
    const status = async (path: string, method = "GET", headers = auth(bound)): Promise<number> => {
      const response = await fetch(at(path), { method, headers });
      await response.arrayBuffer();
      return response.status;
    };
    expect(await status(`/ws-1/parcels`)).toBe(200);
    expect(await status(`/ws-1/parcels/${own.id}/content`)).toBe(200);
    expect(await status(`/ws-1/parcels/${own.id}/ack`, "POST")).toBe(200);
    expect(await status(`/ws-1/parcels/${other.id}/content`)).toBe(404);
    expect(await status(`/ws-2/parcels`)).toBe(403);
    expect(await status(`/ws-2/parcels/${other.id}/content`)).toBe(403);
    expect(await status(`/ws-2/parcels/${other.id}/ack`, "POST")).toBe(403);
    expect(await status(`/ws-1/parcels?name=x`, "POST")).toBe(403);
    expect(await status("")).toBe(403);
    expect(await status(`/ws-1/parcels`, "GET", {})).toBe(401);
    expect(await status(`/limits`, "GET", {})).toBe(200);
    const viewer = (await bench.hf.tokens.create({ name: "eyes", role: "viewer" })).token;
    expect(await status(`/ws-2/parcels`, "GET", auth(viewer))).toBe(200);
    expect(await status(`/ws-2/parcels/${other.id}/content`, "GET", auth(viewer))).toBe(403);
    expect((await bench.hf.inbox("ws-2").get(other.id))!.state).toBe("waiting");
    // The recipient itself asked, so it has polled.
    await expect.poll(async () => (await bench.hf.inbox("ws-1").stats()).polledAt).not.toBeNull();
    expect((await bench.hf.inbox("ws-2").stats()).polledAt).toBeNull();
  });

  test("a poll that waits answers when something arrives, and otherwise in the end", async () => {
    const to = someone();
    const began = Date.now();
    expect((await api.get(`/api/v1/inbox/${to}/parcels?state=waiting&wait=300ms`)).body).toEqual({
      parcels: [],
      next: null,
    });
    expect(Date.now() - began).toBeGreaterThan(250);
    const waiting = api.get(`/api/v1/inbox/${to}/parcels?state=waiting,fetched&wait=50s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const { id } = await bench.hf.inbox(to).put("x");
    expect((await waiting).body.parcels).toMatchObject([{ id, state: "waiting" }]);
    expect((await api.get(`/api/v1/inbox/${to}/parcels?wait=5`)).status).toBe(400);
  });

  test("lists, tombstones, the limits and how inboxes stand", async () => {
    const to = someone();
    const inbox = bench.hf.inbox(to);
    await inbox.put("12345", { ttl: "1m" });
    await bench.hf.clock.advance("2m");
    await purge(bench);
    const { id } = await inbox.put("123");
    expect((await api.get(`/api/v1/inbox/${to}/parcels?state=expired`)).body.parcels).toMatchObject([
      { state: "expired", reason: "never fetched", size: 5 },
    ]);
    expect((await api.get(`/api/v1/inbox/${to}/parcels?order=newest&limit=1`)).body).toMatchObject({
      parcels: [{ id }],
    });
    expect((await api.get(`/api/v1/inbox/${to}/parcels?state=lost`)).status).toBe(400);
    expect((await api.get(`/api/v1/inbox?recipient=${to}`)).body.inboxes).toMatchObject([
      { recipient: to, waiting: 1, fetched: 0, bytes: 3, expired: 1, neverFetched: 1, neverAcked: 0, stuck: null },
    ]);
    const { body } = await api.get("/api/v1/inbox?limit=100");
    expect(body.inboxes.map((one: { recipient: string }) => one.recipient)).toContain(to);
    expect((await api.get("/api/v1/inbox/limits")).body).toMatchObject({
      maxFileBytes: 4 * CHUNK_BYTES,
      maxFilesPerPut: 3,
      maxPutBytes: 12 * CHUNK_BYTES,
      ttl: "1d",
      keepAcked: "1h",
      purgeEvery: "5m",
    });
  });
});
