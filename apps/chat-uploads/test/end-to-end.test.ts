// The whole way against running processes: `holdfast start` with the app, `holdfast workspace add`, a caller over HTTP, and
// `holdfast workspace pull`. Nine phases, in order.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanUp, makeFolder, run, type Running, start } from "../../../test/cli/holdfast.ts";
import { createDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { memory } from "../storm/memory.mjs";
import { call, idIn, type NewFile, sha256, someBytes, toForm } from "./scene.ts";

const ADMIN = "a-token-of-the-end-to-end-test";
const source = fileURLToPath(new URL("../src/index.ts", import.meta.url));

let database: TestDatabase;
let cwd: string;
let server: Running;
beforeAll(async () => {
  [database, cwd] = await Promise.all([createDatabase(), makeFolder()]);
  await writeFile(
    join(cwd, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { chatUploads } from ${JSON.stringify(source)};
     export default defineConfig({ apps: [chatUploads()] });`,
  );
  server = await start(["start"], {
    cwd,
    env: { DATABASE_URL: database.url, HOLDFAST_PORT: "0", HOLDFAST_TOKEN: ADMIN },
  });
});
afterAll(async () => {
  server.kill("SIGTERM");
  expect((await server.ended).code).toBe(0);
  await cleanUp();
  await database.drop();
});

interface Added {
  id: string;
  token: string;
}

const env = (token: string): Record<string, string> => ({ HOLDFAST_URL: server.ready.url, HOLDFAST_TOKEN: token });

async function add(name: string): Promise<Added> {
  const { stdout, stderr, code } = await run(["workspace", "add", name], { cwd, env: env(ADMIN) });
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as Added;
}

describe("nine phases", () => {
  const files: NewFile[] = [
    { name: "photo 1.png", content: someBytes(300_000), type: "image/png" },
    { name: "notes.txt", content: "hello", type: "text/plain" },
  ];
  let mine: Added;
  let other: Added;
  let ids: string[] = [];
  const ask = (method: string, path: string, token = mine.token, body?: unknown) =>
    call(server.ready.url, method, path, { token, ...(body === undefined ? {} : { body }) });
  const fileAt = (n: number, rest: string, workspace = mine.id): string =>
    `/workspaces/${workspace}/pending-uploads/${ids[n]}/${rest}`;

  test("1 register", async () => {
    [mine, other] = await Promise.all([add("mine"), add("other")]);
    expect(mine.id).not.toBe(other.id);
  });

  test("2 upload two files", async () => {
    const { status, json } = await ask("POST", `/workspaces/${mine.id}/chat/uploads`, ADMIN, toForm(files));
    expect([status, json]).toEqual([
      200,
      {
        files: [
          { uri: expect.any(String), name: "photo_1.png", mimeType: "image/png", size: 300_000 },
          { uri: expect.any(String), name: "notes.txt", mimeType: "text/plain", size: 5 },
        ],
      },
    ]);
    const uris = json.files.map((file: { uri: string }) => file.uri) as string[];
    ids = uris.map(idIn);
    const said = await ask("POST", `/workspaces/${mine.id}/chat/messages`, ADMIN, { text: "for you", files: uris });
    expect(said.status).toBe(201);
  });

  test("3 two inbox rows", async () => {
    const { json } = await ask("GET", `/workspaces/${mine.id}/inbox`);
    expect(
      json.notices.map(({ seq, method, body }: { seq: number; method: string; body: { name?: string } }) => [
        seq,
        method,
        body.name,
      ]),
    ).toEqual([
      [1, "chat_upload_receive", "photo_1.png"],
      [2, "chat_upload_receive", "notes.txt"],
      [3, "chat_message", undefined],
    ]);
  });

  test("4 fetch: bytes and headers", async () => {
    const { status, headers, bytes } = await ask("GET", fileAt(0, "content"));
    expect(status).toBe(200);
    expect(sha256(bytes)).toBe(sha256(files[0]!.content as Buffer));
    expect(headers.get("content-type")).toBe("image/png");
    expect(headers.get("content-length")).toBe("300000");
    expect(headers.get("content-disposition")).toMatch(/^attachment; filename="photo_1\.png"/);
  });

  test("5 fetch again", async () => {
    expect(sha256((await ask("GET", fileAt(0, "content"))).bytes)).toBe(sha256(files[0]!.content as Buffer));
  });

  test("6 ack", async () => {
    const { status, json } = await ask("POST", fileAt(0, "ack"));
    expect([status, json]).toEqual([200, { acked: true }]);
  });

  test("7 ack again", async () => {
    const { status, json } = await ask("POST", fileAt(0, "ack"));
    expect([status, json]).toEqual([200, { acked: true }]);
  });

  test("8 read after the ack", async () => {
    expect((await ask("GET", fileAt(0, "content"))).status).toBe(200);
  });

  test("9 another workspace: 404 for the file, 401 for the token; ids that are none: 400", async () => {
    expect((await ask("GET", fileAt(1, "content", other.id), other.token)).status).toBe(404);
    expect((await ask("POST", fileAt(1, "ack", other.id), other.token)).status).toBe(404);
    expect((await ask("GET", fileAt(1, "content"), other.token)).status).toBe(401);
    expect((await ask("POST", fileAt(1, "ack"), other.token)).status).toBe(401);
    expect((await ask("GET", `/workspaces/${mine.id}/pending-uploads/x/content`)).status).toBe(400);
    expect((await ask("GET", "/workspaces/x/pending-uploads/x/content")).status).toBe(400);
  });

  test("and the workspace's program receives both, with the message that mentions them", async () => {
    const pulled = await run(["workspace", "pull", mine.id, "--into", "mine", "--once"], { cwd, env: env(mine.token) });
    expect(pulled.code, pulled.stderr).toBe(0);
    expect(pulled.stderr).toContain("2 files and 1 messages received.");
    const [text, first = "", second = ""] = pulled.stdout.split("\n");
    expect(text).toBe("for you");
    expect(first).toContain(`photo_1.png: workspace:/files/${ids[0]}-photo_1.png`);
    expect(second).toContain("notes.txt");
    const saved = await readFile(join(cwd, "mine", "files", `${ids[0]}-photo_1.png`));
    expect(sha256(saved)).toBe(sha256(files[0]!.content as Buffer));
    const stranger = await run(["workspace", "pull", mine.id, "--into", "x", "--once"], { cwd, env: env(other.token) });
    expect(stranger.code).not.toBe(0);
    expect(stranger.stderr).toContain("Set HOLDFAST_TOKEN to its token");
  });
});

test.skipIf(process.platform !== "linux")(
  "100 MB go through, and neither the server nor the workspace holds them",
  { timeout: 120_000 },
  async () => {
    const grown = await memory({ database: database.url });
    // Below the file; above what chunks on their way, sockets and lazy garbage take.
    expect(grown.server).toBeLessThan(70);
    expect(grown.workspace).toBeLessThan(70);
  },
);
