// The command line against a running server, with files as somebody has them; and how many specs are embedded at a time.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { startEmbedder } from "../storm/embedder.mjs";
import { ADMIN, CATALOG, makeDocument, openScene, type Scene } from "./scene.ts";

describe("the command line", () => {
  const bench = useHoldfast("server");
  let embedder: Awaited<ReturnType<typeof startEmbedder>>;
  let scene: Scene;
  let folder: string;
  beforeAll(async () => {
    embedder = await startEmbedder();
    scene = await openScene(bench.hf, {
      embedder: { provider: "openai", url: `${embedder.url}/v1`, model: "tiny" },
      batchSize: 8,
    });
    folder = await mkdtemp(join(tmpdir(), "catalog-files-"));
  });
  afterAll(async () => {
    await scene.stopWork();
    await embedder.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function run(name: string, args: string[], options: Record<string, unknown> = {}) {
    const command = scene.app.commands!.find((each) => each.name === name)!;
    const said = { out: [] as string[], notes: [] as string[] };
    const code = await command.run({
      open: () => Promise.reject(new Error("it talks to the server")),
      server: { url: scene.url, token: ADMIN },
      args,
      options,
      print: (text) => void said.out.push(text),
      note: (text) => void said.notes.push(text),
      signal: new AbortController().signal,
    });
    return { code, ...said };
  }

  test("upload, status, search; one spec at a time is embedded", async () => {
    embedder.state.behave = () => ({ slow: 150 });
    const files = ["one", "two", "three"].map((name) => join(folder, `${name}.json`));
    for (const file of files) await writeFile(file, JSON.stringify(makeDocument(16, (n) => `${file.slice(-9)} ${n}`)));
    const sent = await run("catalog upload", [CATALOG, ...files]);
    expect(sent).toMatchObject({ code: 0, notes: [] });
    expect(sent.out.map((line) => (JSON.parse(line) as { operations: number }).operations)).toEqual([16, 16, 16]);
    for (const name of ["one", "two", "three"]) await scene.reaches(name, "indexed");
    expect(embedder.state.most).toBe(1);

    expect((await run("catalog status", [CATALOG])).out).toEqual([
      "All 3 specs indexed",
      "one  16/16 indexed",
      "three  16/16 indexed",
      "two  16/16 indexed",
    ]);
    const found = await run("catalog search", [CATALOG, "things", "0007"], { limit: "3", by: "words" });
    expect(found.out).toHaveLength(3);
    expect(found.out[0]).toMatch(/^(one|two|three) {2}GET \/things\/0007 /);
  }, 30_000);

  test("what is wrong is said, and is the exit code", async () => {
    const file = join(folder, "bad.yaml");
    await writeFile(file, "hello: there\n");
    const bad = await run("catalog upload", [CATALOG, file]);
    expect([bad.code, bad.notes[0]]).toEqual([1, expect.stringContaining('says neither "openapi" nor "swagger"')]);
    expect((await run("catalog status", ["nowhere"])).code).toBe(1);
    expect((await run("catalog upload", ["No Good", file])).code).toBe(1);
    const missing = await run("catalog upload", [CATALOG, join(folder, "nowhere.yaml"), join(folder, "one.json")]);
    expect([missing.code, missing.notes, missing.out.length]).toEqual([
      1,
      [expect.stringContaining("nowhere.yaml cannot be read: ENOENT")],
      1,
    ]);
    expect((await run("catalog upload", [CATALOG, file, file], { name: "both" })).code).toBe(2);
    expect((await run("catalog status", ["../../readyz?"])).notes[0]).toContain("There is no such catalog.");
  });
});
