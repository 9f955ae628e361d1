// The workspace's side, as a library: what arrives, in which order, and what happens when something goes wrong.
import { mkdir, readdir, readFile, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTcpProxy, type TcpProxy } from "../../../test/support/tcp-proxy.ts";
import { useHoldfast } from "../../../test/support/open-test.ts";
import type { JournalEntry, ReceivedFile, ReceivedMessage } from "../src/index.ts";
import { idIn, openScene, type Scene, sha256, someBytes } from "./scene.ts";

const journalOf = async (folder: string): Promise<JournalEntry[]> =>
  (await readFile(join(folder, "journal.ndjson"), "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as JournalEntry);

describe("pulling", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf);
  });

  test("files are saved safely and acked; the message names them where they are; the second time there is nothing to do", async () => {
    const workspace = await scene.register();
    const contents = [someBytes(600_000), Buffer.from("small")];
    const uploaded = await scene.upload(
      workspace.id,
      contents.map((content) => ({ name: "../a b.txt", content })),
    );
    const uris = uploaded.json.files.map((file: { uri: string }) => file.uri) as string[];
    await scene.say(workspace.id, "two files", uris);
    const into = await scene.folder();
    const seen: (ReceivedFile | ReceivedMessage)[] = [];
    const here: boolean[] = [];
    const pulled = await scene.pull(workspace, {
      into,
      onFile: (file) => void seen.push(file),
      async onMessage(message) {
        seen.push(message);
        // Ready before it is shown.
        for (const file of message.files) {
          const bytes = await readFile(join(into, file.uri.slice("workspace:/".length)));
          here.push(sha256(bytes) === file.sha256);
        }
      },
    });
    expect(pulled).toEqual({ files: 2, messages: 1, gone: 0 });
    expect(here).toEqual([true, true]);
    const names = uris.map((uri) => `${idIn(uri)}-a_b.txt`);
    expect(seen).toMatchObject([
      { seq: 1, kind: "file", uri: `workspace:/files/${names[0]}`, isHere: true },
      { seq: 2, kind: "file", uri: `workspace:/files/${names[1]}`, isHere: true },
      {
        seq: 3,
        kind: "message",
        text: "two files",
        files: [{ uri: `workspace:/files/${names[0]}` }, { name: "a_b.txt" }],
      },
    ]);
    expect((await readdir(join(into, "files"))).toSorted()).toEqual(names.toSorted());
    expect((await stat(join(into, "files", names[0]!))).mode & 0o777).toBe(0o600);
    expect(await journalOf(into)).toEqual(seen.map((entry) => ({ workspace: workspace.id, ...entry })));
    for (const uri of uris) expect(await bench.hf.inbox(workspace.id).get(idIn(uri))).toMatchObject({ state: "acked" });
    expect(await scene.pull(workspace, { into })).toEqual({ files: 0, messages: 0, gone: 0 });
    // A folder that lost its journal: what is there is not fetched again, what is gone is said to be gone.
    await writeFile(join(into, "journal.ndjson"), "");
    expect(await scene.pull(workspace, { into })).toEqual({ files: 2, messages: 1, gone: 0 });
    expect(await bench.hf.inbox(workspace.id).get(idIn(uris[0]!))).toMatchObject({ fetchCount: 1 });
    expect(await readdir(join(into, "files"))).toHaveLength(2);
  });

  test("a journal whose last line was cut goes on before it; a message comes again until it is dealt with", async () => {
    const workspace = await scene.register();
    for (const text of ["one", "two", "three"]) await scene.say(workspace.id, text);
    const into = await scene.folder();
    const seen: string[] = [];
    await expect(
      scene.pull(workspace, {
        into,
        signal: AbortSignal.timeout(1_500),
        onTrouble: () => {},
        onMessage({ text }) {
          seen.push(text);
          if (text === "two") throw new Error("not now");
        },
      }),
    ).resolves.toMatchObject({ messages: expect.any(Number) });
    expect(seen.slice(0, 3)).toEqual(["one", "two", "two"]);
    expect(await journalOf(into)).toHaveLength(1);
    await writeFile(join(into, "journal.ndjson"), '{"seq":2,"kind":"mess', { flag: "a" });
    const again: string[] = [];
    await scene.pull(workspace, { into, onMessage: ({ text }) => void again.push(text) });
    expect(again).toEqual(["two", "three"]);
    expect((await journalOf(into)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test("a folder of another workspace is refused: its numbers would let notices be skipped", async () => {
    const [one, other] = [await scene.register(), await scene.register()];
    for (const text of ["one", "two"]) await scene.say(one.id, text);
    await scene.say(other.id, "for the other");
    const into = await scene.folder();
    expect(await scene.pull({ ...one, id: one.id.toUpperCase() }, { into })).toMatchObject({ messages: 2 });
    await expect(scene.pull(other, { into })).rejects.toMatchObject({
      code: "HOLDFAST_OPTION_INVALID",
      message: expect.stringContaining(one.id),
      hint: expect.stringContaining("folder of its own"),
    });
    // Neither has lost anything by it.
    expect(await scene.pull(other)).toMatchObject({ messages: 1 });
    expect(await scene.pull(one, { into })).toMatchObject({ messages: 0 });
  });

  test.each([
    ["one byte less than a MiB", 1_048_575],
    ["exactly a MiB", 1_048_576],
    ["several MiB", 3_500_000],
  ])("a journal that ends with %s of zeros goes on where it was, and nothing comes again", async (_, zeros) => {
    const workspace = await scene.register();
    for (const text of ["one", "two"]) await scene.say(workspace.id, text);
    const into = await scene.folder();
    await scene.pull(workspace, { into });
    const before = await readFile(join(into, "journal.ndjson"));
    // What a file system can leave after a loss of power; with a line end somewhere in it, too.
    await writeFile(join(into, "journal.ndjson"), Buffer.alloc(zeros), { flag: "a" });
    await writeFile(join(into, "journal.ndjson"), "\n\0\0", { flag: "a" });
    await scene.say(workspace.id, "three");
    const seen: string[] = [];
    await scene.pull(workspace, { into, onMessage: ({ text }) => void seen.push(text) });
    expect(seen).toEqual(["three"]);
    const after = await readFile(join(into, "journal.ndjson"));
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
    expect((await journalOf(into)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test.each([0, -1, 1.5, Number.NaN])("parallel %d is refused, and does not wait for ever", async (parallel) => {
    const workspace = await scene.register();
    await scene.upload(workspace.id, [{ name: "a", content: "a" }]);
    await expect(scene.pull(workspace, { parallel })).rejects.toMatchObject({
      code: "HOLDFAST_OPTION_INVALID",
      message: `parallel is ${parallel}.`,
    });
    expect(await scene.pull(workspace, { parallel: 1 })).toMatchObject({ files: 1 });
  });

  test("a file that expired is gone, and holds nobody up; the message says so", async () => {
    const workspace = await scene.register();
    const { json } = await scene.upload(workspace.id, [{ name: "late.txt", content: "late" }]);
    await scene.say(workspace.id, "too late", [json.files[0].uri]);
    await bench.hf.clock.advance("25h");
    const seen: ReceivedMessage[] = [];
    const pulled = await scene.pull(workspace, { onMessage: (message) => void seen.push(message) });
    expect(pulled).toEqual({ files: 0, messages: 1, gone: 1 });
    expect(seen[0]!.files).toMatchObject([{ isHere: false, uri: json.files[0].uri }]);
  });

  test("a file that cannot be written now is not skipped: it comes when it can be, and the message after it", async () => {
    const workspace = await scene.register();
    const { json } = await scene.upload(workspace.id, [{ name: "a", content: "a" }]);
    await scene.say(workspace.id, "look", [json.files[0].uri]);
    const into = await scene.folder();
    const blocker = join(into, "files", `${idIn(json.files[0].uri)}-a`);
    await mkdir(join(into, "files"));
    await writeFile(blocker, "somebody else's");
    const troubles: string[] = [];
    const seen: string[] = [];
    const pulling = scene.pull(workspace, {
      into,
      onTrouble: (error) => void troubles.push(String(error)),
      onMessage: ({ text }) => void seen.push(text),
    });
    await expect.poll(() => troubles.length).toBeGreaterThan(1);
    expect(troubles[0]).toContain("is there and is not the content");
    expect(seen).toEqual([]);
    expect(await readFile(blocker, "utf8")).toBe("somebody else's");
    await unlink(blocker);
    expect(await pulling).toEqual({ files: 1, messages: 1, gone: 0 });
  });

  test("symbolic links in its way are not followed", async () => {
    const workspace = await scene.register();
    const { json } = await scene.upload(workspace.id, [{ name: "a", content: "a" }]);
    const id = idIn(json.files[0].uri);
    const [into, elsewhere] = [await scene.folder(), await scene.folder()];
    await mkdir(join(into, "files"));
    await symlink(join(elsewhere, "target"), join(into, "files", `.${id}.part`));
    await symlink(join(elsewhere, "target"), join(into, "files", `${id}-a`));
    const signal = AbortSignal.timeout(700);
    const troubles: unknown[] = [];
    await scene.pull(workspace, { into, signal, onTrouble: (error) => void troubles.push(error) });
    expect(troubles.length).toBeGreaterThan(0);
    expect(await readdir(elsewhere)).toEqual([]);
  });

  test("up to four at once, and no more", async () => {
    const workspace = await scene.register();
    await scene.upload(
      workspace.id,
      Array.from({ length: 12 }, (_, n) => ({ name: `f${n}`, content: someBytes(300_000) })),
    );
    let now = 0;
    let most = 0;
    const { fetch: real } = globalThis;
    // What the puller asks for goes through fetch; the rest of this test does not.
    globalThis.fetch = async (input, init) => {
      if (typeof input !== "string" || !input.endsWith("/content")) return await real(input, init);
      most = Math.max(most, (now += 1));
      await sleep(30);
      const response = await real(input, init);
      now -= 1;
      return response;
    };
    try {
      expect(await scene.pull(workspace)).toMatchObject({ files: 12 });
    } finally {
      globalThis.fetch = real;
    }
    expect(most).toBe(4);
  });

  test("a wrong token, another workspace's, and no such workspace end it at once; so does a second one in its folder", async () => {
    const [one, other] = [await scene.register(), await scene.register()];
    for (const [id, token] of [
      [one.id, "hf_nonsense"],
      [one.id, other.token],
      ["00000000-0000-4000-8000-000000000000", "a-token-for-the-chat-tests"],
    ] as const) {
      await expect(scene.pull({ id, token })).rejects.toMatchObject({ code: "CHAT_ACCESS_REFUSED" });
    }
    const into = await scene.folder();
    const ending = new AbortController();
    const first = scene.pull(one, { into, once: false, signal: ending.signal });
    await sleep(100);
    await expect(scene.pull(one, { into })).rejects.toMatchObject({ code: "HOLDFAST_FOLDER_LOCKED" });
    ending.abort();
    await first;
  });

  describe("through a network that breaks", () => {
    let proxy: TcpProxy;
    afterAll(() => proxy.close());

    test("downloads that are cut go on where they stopped, and everything arrives once", async () => {
      const workspace = await scene.register();
      const contents = Array.from({ length: 6 }, () => someBytes(2_000_000));
      for (const content of contents) await scene.upload(workspace.id, [{ name: "big", content }]);
      proxy = await startTcpProxy(scene.url);
      const into = await scene.folder();
      let troubles = 0;
      const pulling = scene.pull(workspace, {
        url: `http://127.0.0.1:${proxy.port}`,
        into,
        onTrouble: () => void (troubles += 1),
      });
      for (let n = 0; n < 6; n += 1) {
        await sleep(40);
        proxy.cut();
      }
      expect(await pulling).toMatchObject({ files: 6, gone: 0 });
      expect(troubles).toBeGreaterThan(0);
      const saved = await readdir(join(into, "files"));
      const hashes = await Promise.all(saved.map(async (name) => sha256(await readFile(join(into, "files", name)))));
      expect(hashes.toSorted()).toEqual(contents.map(sha256).toSorted());
    });
  });
});
