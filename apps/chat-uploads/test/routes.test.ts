// The routes with their exact answers, on both tiers.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, describe, expect, test, beforeAll } from "vitest";
import { TIERS, useHoldfast } from "../../../test/support/open-test.ts";
import type { Announcement } from "../src/index.ts";
import { addNotices } from "../src/notices.ts";
import { ADMIN, idIn, openScene, type Scene, sha256, someBytes } from "./scene.ts";

const NOBODY = "00000000-0000-4000-8000-000000000000";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier, { inbox: { maxFileBytes: 1_000_000, quotaBytes: 3_000_000 } });
  const announced: Announcement[] = [];
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, { onAnnounced: (announcement) => void announced.push(announcement) });
  });
  afterEach(() => {
    announced.length = 0;
  });

  /** What the next purge leaves of what was on its way. */
  async function draftsOf(id: string): Promise<number> {
    await bench.hf.janitor.run("purge-inbox");
    const { rows } = await bench.hf.sql.query("select 1 from :schema.parcel_drafts where recipient = $1", [id]);
    return rows.length;
  }

  test("limits come from the inbox's, and are public", async () => {
    const { status, json } = await scene.call("GET", "/uploads/limits", { token: null });
    expect({ status, json }).toEqual({
      status: 200,
      json: { per_file_bytes: 1_000_000, per_request_bytes: 3_000_000, max_attachments_per_message: 64 },
    });
  });

  test("an upload: names and types made safe, one notice for each file, and told after the commit", async () => {
    const { id, token } = await scene.register();
    const png = someBytes(5_000);
    const { status, json } = await scene.upload(id, [
      { name: "../../my cat (1).png", content: png, type: "image/png; x=y" },
      { name: "a.txt", content: "hello", type: "" },
      { name: "a.txt", content: "again", type: "not a type" },
    ]);
    expect(status).toBe(200);
    expect(json).toEqual({
      files: [
        {
          uri: expect.stringMatching(`^platform-pending:${id}/`),
          name: "my_cat__1_.png",
          mimeType: "image/png",
          size: 5_000,
        },
        { uri: expect.any(String), name: "a.txt", mimeType: "application/octet-stream", size: 5 },
        { uri: expect.any(String), name: "a.txt", mimeType: "application/octet-stream", size: 5 },
      ],
    });
    const ids = json.files.map((file: { uri: string }) => idIn(file.uri)) as string[];
    expect(new Set(ids).size).toBe(3);
    const inbox = await scene.call("GET", `/workspaces/${id}/inbox`, { token });
    expect(inbox.json.notices).toHaveLength(3);
    expect(inbox.json.notices[0]).toEqual({
      seq: 1,
      activity_type: "a2a_receive",
      method: "chat_upload_receive",
      body: {
        file_id: ids[0],
        name: "my_cat__1_.png",
        mimeType: "image/png",
        size: 5_000,
        uri: json.files[0].uri,
        sha256: sha256(png),
      },
      created_at: expect.any(String),
    });
    expect(announced).toEqual([{ workspaceId: id, what: "files", ids }]);
  });

  test("the content, with its headers, again, and in parts; then the ack, twice; and readable after it", async () => {
    const { id, token } = await scene.register();
    const bytes = someBytes(700_000);
    const { json } = await scene.upload(id, [{ name: "b.bin", content: bytes, type: "text/html" }]);
    const fileId = idIn(json.files[0].uri);
    const at = `/workspaces/${id}/pending-uploads/${fileId}`;
    const first = await scene.call("GET", `${at}/content`, { token });
    expect(first.status).toBe(200);
    expect(Object.fromEntries(first.headers)).toMatchObject({
      "content-type": "text/html",
      "content-length": "700000",
      "content-disposition": expect.stringMatching(/^attachment; filename="b\.bin"/),
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("sandbox"),
    });
    expect(first.bytes.equals(bytes)).toBe(true);
    expect((await scene.call("GET", `${at}/content`, { token })).bytes.equals(bytes)).toBe(true);
    const rest = await scene.call("GET", `${at}/content`, { token, headers: { range: "bytes=699990-" } });
    expect([rest.status, rest.bytes.equals(bytes.subarray(699_990))]).toEqual([206, true]);
    // Noted when the last byte is out.
    await expect.poll(() => bench.hf.inbox(id).get(fileId)).toMatchObject({ state: "fetched", fetchCount: 3 });
    for (let n = 0; n < 2; n += 1) {
      const acked = await scene.call("POST", `${at}/ack`, { token });
      expect([acked.status, acked.json]).toEqual([200, { acked: true }]);
    }
    expect((await scene.call("GET", `${at}/content`, { token })).status).toBe(200);
    await bench.hf.clock.advance("61m");
    expect((await scene.call("GET", `${at}/content`, { token })).status).toBe(404);
    expect((await scene.call("POST", `${at}/ack`, { token })).json).toEqual({ acked: true });
  });

  test("an ack is not told as if files had come", async () => {
    const { id, token } = await scene.register();
    const { json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    const at = `/workspaces/${id}/pending-uploads/${idIn(json.files[0].uri)}`;
    await scene.call("GET", `${at}/content`, { token });
    expect((await scene.call("POST", `${at}/ack`, { token })).json).toEqual({ acked: true });
    expect(announced).toEqual([{ workspaceId: id, what: "files", ids: [idIn(json.files[0].uri)] }]);
  });

  test("no type is served as bytes", async () => {
    const { id, token } = await scene.register();
    await bench.hf.inbox(id).put(Buffer.from("x"), { name: "n", type: "" });
    const [parcel] = (await bench.hf.inbox(id).list()).parcels;
    const { headers } = await scene.call("GET", `/workspaces/${id}/pending-uploads/${parcel!.id}/content`, { token });
    expect(headers.get("content-type")).toBe("application/octet-stream");
  });

  test("what expired: 404 for what was never fetched, raced for what was", async () => {
    const { id, token } = await scene.register();
    const { json } = await scene.upload(id, [
      { name: "a", content: "a" },
      { name: "b", content: "b" },
    ]);
    const [a, b] = json.files.map((file: { uri: string }) => `/workspaces/${id}/pending-uploads/${idIn(file.uri)}`);
    await scene.call("GET", `${b}/content`, { token });
    await bench.hf.clock.advance("25h");
    const unknown = await scene.call("GET", `/workspaces/${id}/pending-uploads/${NOBODY}/content`, { token });
    const expired = await scene.call("GET", `${a}/content`, { token });
    // One body for all that is not there.
    expect([expired.status, expired.json]).toEqual([404, unknown.json]);
    expect((await scene.call("POST", `${a}/ack`, { token })).status).toBe(404);
    const raced = await scene.call("POST", `${b}/ack`, { token });
    expect([raced.status, raced.json]).toEqual([200, { acked: true, raced: true }]);
  });

  test("what is refused, and that nothing is left of it", async () => {
    const { id } = await scene.register();
    const { upload } = scene;
    const ok = { name: "ok.txt", content: "ok" };
    const error = expect.objectContaining({
      code: expect.stringMatching(/^(CHAT|HOLDFAST)_/),
      message: expect.any(String),
    });
    const none = await upload(id, [ok], { field: "other" });
    expect([none.status, none.json]).toEqual([400, { error }]);
    const many = await upload(
      id,
      Array.from({ length: 65 }, () => ok),
    );
    expect([many.status, many.json.error.code]).toEqual([400, "CHAT_TOO_MANY_FILES"]);
    const large = await upload(id, [ok, { name: "big file", content: someBytes(1_000_001) }, ok]);
    expect([large.status, large.json]).toEqual([413, { error, filename: "big file", size: 1_000_001, max: 1_000_000 }]);
    const huge = await upload(
      id,
      Array.from({ length: 5 }, () => ({ name: "x", content: someBytes(999_999) })),
    );
    expect([huge.status, huge.json]).toEqual([
      413,
      { error, filename: null, size: expect.any(Number), max: 3_000_000 },
    ]);
    const empty = await upload(id, [ok, { name: "empty.txt", content: "" }]);
    expect([empty.status, empty.json]).toEqual([400, { error, filename: "empty.txt" }]);
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    for (const body of [
      "",
      "--x\r\n",
      "nonsense",
      '--x\r\ncontent-disposition: form-data; name="files"; filename="a"\r\n\r\nabc',
    ]) {
      const { status } = await scene.call("POST", `/workspaces/${id}/chat/uploads`, { headers, body });
      expect(status, body).toBe(400);
    }
    expect((await scene.call("POST", `/workspaces/${id}/chat/uploads`, { body: {} })).status).toBe(400);
    for (const ttl of ["0s", "25h", "5", "-1s"])
      expect((await upload(id, [ok], { query: `?ttl=${ttl}` })).status).toBe(400);
    expect((await upload(NOBODY, [ok])).status).toBe(404);
    expect((await upload("not-a-uuid", [ok])).status).toBe(400);
    const exact = await upload(id, [{ name: "exact", content: someBytes(1_000_000) }]);
    expect(exact.status).toBe(200);
    const inbox = await scene.call("GET", `/workspaces/${id}/inbox`);
    expect(inbox.json.notices).toHaveLength(1);
    expect((await bench.hf.inbox(id).stats()).waiting).toBe(1);
    expect(await draftsOf(id)).toBe(0);
    expect(announced).toHaveLength(1);
  });

  test.each([
    ["a file", "files", "a.bin"],
    ["something else in the form", "other", "a.bin"],
    ["a field without a name of a file", "files", undefined],
  ])("%s without an end is cut off at what a request may have, and is told so", async (_, field, filename) => {
    const { id } = await scene.register();
    const named = filename === undefined ? "" : `; filename="${filename}"`;
    const { sent, answer } = await pour(
      `${scene.url}/workspaces/${id}/chat/uploads`,
      `--x\r\ncontent-disposition: form-data; name="${field}"${named}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain("CHAT_TOO_LARGE");
    // What was on its way when the answer came is beyond it.
    expect(sent).toBeLessThan(15_000_000);
    expect((await bench.hf.inbox(id).stats()).waiting).toBe(0);
    expect(await draftsOf(id)).toBe(0);
    expect(announced).toEqual([]);
  });

  test("files and notices are one commit: what fails in it leaves neither, and nobody is told", async () => {
    const { id } = await scene.register();
    // Refuses at the commit itself, after every statement has succeeded.
    await bench.hf.sql.query(`create function :schema.refuse_doom() returns trigger language plpgsql as
      $$ begin if new.body ->> 'name' = 'doomed.txt' then raise exception 'doomed'; end if; return null; end $$`);
    await bench.hf.sql.query(`create constraint trigger doom after insert on :schema.chat_uploads_notices
      deferrable initially deferred for each row execute function :schema.refuse_doom()`);
    const failed = await scene.upload(id, [
      { name: "fine.txt", content: "fine" },
      { name: "doomed.txt", content: "doomed" },
    ]);
    expect(failed.status).toBe(500);
    expect(failed.bytes.toString()).not.toContain("doomed'");
    const inbox = await scene.call("GET", `/workspaces/${id}/inbox`);
    expect(inbox.json.notices).toEqual([]);
    expect((await bench.hf.inbox(id).list()).parcels).toEqual([]);
    for (const table of ["chat_uploads_files", "chat_uploads_notices"]) {
      const { rows } = await bench.hf.sql.query(`select 1 from :schema.${table} where workspace_id = $1`, [id]);
      expect(rows, table).toEqual([]);
    }
    expect(await draftsOf(id)).toBe(0);
    expect(announced).toEqual([]);
    expect((await scene.upload(id, [{ name: "fine.txt", content: "fine" }])).status).toBe(200);
    expect(announced).toHaveLength(1);
  });

  test("messages: with files of this workspace, each once; the same id is the same message", async () => {
    const [one, other] = [await scene.register(), await scene.register()];
    const { json } = await scene.upload(one.id, [{ name: "a", content: "a" }]);
    const foreign = (await scene.upload(other.id, [{ name: "b", content: "b" }])).json.files[0].uri as string;
    const uri = json.files[0].uri as string;
    for (const uris of [
      [foreign],
      [uri, uri],
      [`platform-pending:${one.id}/${idIn(foreign)}`],
      ["http://x"],
      [uri, foreign],
    ]) {
      expect((await scene.say(one.id, "hello", uris)).status, uris.join()).toBe(422);
    }
    expect((await scene.say(one.id, "")).status).toBe(422);
    expect((await scene.say(one.id, "x".repeat(10_001))).status).toBe(422);
    const body = { id: NOBODY.replace("4000", "4001"), text: "look\u0000 here", files: [uri] };
    const path = `/workspaces/${one.id}/chat/messages`;
    expect((await scene.call("POST", path, { body })).status).toBe(201);
    expect((await scene.call("POST", path, { body })).status).toBe(200);
    expect((await scene.say(one.id, "the same file again", [uri])).status).toBe(422);
    expect((await scene.call("POST", path, { token: one.token, body: { text: "I am the workspace" } })).status).toBe(
      201,
    );
    const { json: chat } = await scene.call("GET", `/workspaces/${one.id}/chat`);
    expect(chat.messages).toMatchObject([
      { author: "person", text: "look here", files: [{ name: "a", status: { code: "waiting" } }] },
      { author: "workspace", text: "I am the workspace", files: [] },
    ]);
    const { json: inbox } = await scene.call("GET", `/workspaces/${one.id}/inbox?after=1`, { token: one.token });
    expect(inbox.notices).toMatchObject([{ seq: 2, method: "chat_message", body: { files: [{ name: "a" }] } }]);
  });

  test("an id that a message elsewhere has is refused: 200 would say that it was sent", async () => {
    const [one, other] = [await scene.register(), await scene.register()];
    const id = randomUUID();
    const send = (workspace: { id: string }, token = ADMIN, text = "hello") =>
      scene.call("POST", `/workspaces/${workspace.id}/chat/messages`, { token, body: { id, text } });
    expect((await send(one)).status).toBe(201);
    for (const taken of [await send(other), await send(one, one.token)]) {
      expect([taken.status, taken.json.error.code]).toEqual([409, "CHAT_MESSAGE_ID_TAKEN"]);
    }
    expect((await send(one)).status).toBe(200);
    expect((await scene.call("GET", `/workspaces/${other.id}/inbox`)).json.notices).toEqual([]);
    expect((await scene.call("GET", `/workspaces/${one.id}/inbox`)).json.notices).toHaveLength(1);
  });

  test("a poll waits for news and hears it at once; nonsense in it is refused", async () => {
    const { id, token } = await scene.register();
    const began = performance.now();
    const waiting = scene.call("GET", `/workspaces/${id}/inbox?wait=20s`, { token });
    await expect.poll(() => bench.hf.inbox(id).stats()).toMatchObject({ polledAt: expect.any(Date) });
    await scene.upload(id, [{ name: "a", content: "a" }]);
    expect((await waiting).json.notices).toHaveLength(1);
    expect(performance.now() - began).toBeLessThan(1_900);
    for (const query of ["after=x", "after=-1", "wait=5", "after=99999999999999999999"]) {
      expect((await scene.call("GET", `/workspaces/${id}/inbox?${query}`, { token })).status, query).toBe(400);
    }
  });

  test("what is old is forgotten", async () => {
    const { id } = await scene.register();
    const { json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    await scene.say(id, "old", [json.files[0].uri]);
    await bench.hf.clock.advance("31d");
    const [result] = await bench.hf.janitor.run("chat-uploads-forget");
    expect(result).toMatchObject({ error: null });
    const { json: chat } = await scene.call("GET", `/workspaces/${id}/chat`);
    expect(chat.messages).toEqual([]);
    expect((await scene.call("GET", `/workspaces/${id}/inbox`)).json.notices).toEqual([]);
  });
});

describe("a broadcast of somebody's own that fails", () => {
  const bench = useHoldfast("server");

  const announced: string[] = [];
  let isLate = false;
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, {
      onAnnounced({ what }) {
        announced.push(what);
        if (isLate) return Promise.reject(new Error("The broadcast is down")) as unknown as void;
        throw new Error("The broadcast is down");
      },
    });
  });

  test.each(["throws", "rejects"])("when it %s, an upload and a message are answered as stored", async (how) => {
    isLate = how === "rejects";
    announced.length = 0;
    const { id, token } = await scene.register();
    const { status, json } = await scene.upload(id, [{ name: "a", content: "a" }]);
    expect(status).toBe(200);
    expect((await scene.say(id, "look", [json.files[0].uri])).status).toBe(201);
    const content = `/workspaces/${id}/pending-uploads/${idIn(json.files[0].uri)}/content`;
    expect((await scene.call("GET", content, { token })).bytes.toString()).toBe("a");
    expect((await scene.call("GET", `/workspaces/${id}/inbox`, { token })).json.notices).toHaveLength(2);
    expect(announced).toEqual(["files", "message"]);
  });
});

/** A request that never ends by itself, from a socket: what it could send, and what it heard. */
async function pour(url: string, head: string): Promise<{ sent: number; answer: string }> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  let sent = 0;
  socket.on("data", (more: Buffer) => (answer += more.toString()));
  socket.on("error", () => {});
  const over = new Promise((resolve) => socket.once("close", resolve));
  const headers = [
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${ADMIN}`,
    "content-type: multipart/form-data; boundary=x",
  ];
  socket.write(`POST ${pathname} HTTP/1.1\r\n${headers.join("\r\n")}\r\ntransfer-encoding: chunked\r\n\r\n`);
  const chunk = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
  socket.write(chunk(Buffer.from(head)));
  const piece = chunk(Buffer.alloc(65_536, "a"));
  while (!socket.destroyed && answer === "" && sent < 60_000_000) {
    sent += 65_536;
    if (!socket.write(piece)) await Promise.race([once(socket, "drain"), over]).catch(() => {});
  }
  await expect.poll(() => answer, { timeout: 2_000 }).toContain("\r\n\r\n");
  socket.destroy();
  return { sent, answer };
}

describe("two at once, on two connections", () => {
  const bench = useHoldfast("server");

  test("a notice whose commit is late is not overtaken: whoever remembers the last number misses nothing", async () => {
    const scene = await openScene(bench.hf);
    const { id, token } = await scene.register();
    let commit: () => void = () => {};
    const held = new Promise<void>((resolve) => (commit = resolve));
    let isAdded: () => void = () => {};
    const added = new Promise<void>((resolve) => (isAdded = resolve));
    const late = bench.hf.sql.transaction(async (tx) => {
      await addNotices(tx, id, [{ method: "chat_message", body: { message_id: id, text: "late", files: [] } }]);
      isAdded();
      await held;
    });
    await added;
    const uploading = scene.upload(id, [{ name: "a", content: "a" }]);
    const waits = async (): Promise<number> =>
      (await bench.hf.sql.query("select 1 from pg_locks where not granted")).rows.length;
    await expect.poll(waits).toBeGreaterThan(0);
    expect((await scene.call("GET", `/workspaces/${id}/inbox`, { token })).json.notices).toEqual([]);
    commit();
    await late;
    expect((await uploading).status).toBe(200);
    const { json } = await scene.call("GET", `/workspaces/${id}/inbox`, { token });
    expect(json.notices).toMatchObject([
      { seq: 1, method: "chat_message" },
      { seq: 2, method: "chat_upload_receive" },
    ]);
  });
});
