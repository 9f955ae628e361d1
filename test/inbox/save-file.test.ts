// Saving: resumed where it broke off, verified, never over something else, never through a link, never twice.
import { randomUUID } from "node:crypto";
import { link, lstat, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { fileName, type FileSource, saveFile } from "#src/inbox/save-file.js";
import { caught } from "../support/make.ts";
import { inPieces, sha256, someBytes } from "./scene.ts";

const folders: string[] = [];
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-save-"));
  folders.push(folder);
});
afterAll(async () => {
  for (const made of folders) await rm(made, { recursive: true, force: true });
});

interface Fake extends FileSource {
  asked: number[];
}

/** `breakAt`: the connection is cut there, the first time. */
function source(bytes: Buffer, { breakAt = Infinity, name = "a.bin" } = {}): Fake {
  const asked: number[] = [];
  return {
    id: randomUUID(),
    name,
    size: bytes.length,
    sha256: sha256(bytes),
    asked,
    async *read(start) {
      asked.push(start);
      let at = start;
      for await (const piece of inPieces(bytes.subarray(start), 10_000)) {
        if (asked.length === 1 && at + piece.length > breakAt) throw new Error("cut");
        at += piece.length;
        yield piece;
      }
    },
  };
}

test("a file appears whole, readable by its owner only, in a folder that is made for it", async () => {
  const bytes = someBytes(100_000);
  const file = source(bytes, { name: "../../evil name.txt" });
  const progress: number[] = [];
  const saved = await saveFile(file, join(folder, "new", "deep"), (done) => progress.push(done));
  expect(saved).toMatchObject({ wasThere: false, resumedAt: 0 });
  expect(saved.path).toBe(join(folder, "new", "deep", `${file.id}-evil_name.txt`));
  expect((await readFile(saved.path)).equals(bytes)).toBe(true);
  expect((await stat(saved.path)).mode & 0o777).toBe(0o600);
  expect(await readdir(join(folder, "new", "deep"))).toEqual([fileName(file)]);
  expect(progress.at(-1)).toBe(100_000);
});

test("a fetch that broke off goes on where it stopped", async () => {
  const bytes = someBytes(100_000);
  const file = source(bytes, { breakAt: 45_000 });
  expect(await caught(saveFile(file, folder))).toMatchObject({ message: "cut" });
  expect(await readdir(folder)).toEqual([`.${file.id}.part`]);
  expect(await saveFile(file, folder)).toMatchObject({ wasThere: false, resumedAt: 40_000 });
  expect(file.asked).toEqual([0, 40_000]);
  expect((await readFile(join(folder, fileName(file)))).equals(bytes)).toBe(true);
});

test("saving again finds it there: no second copy, nothing fetched", async () => {
  const file = source(someBytes(1_000));
  const first = await saveFile(file, folder);
  expect(await saveFile(file, folder)).toEqual({ path: first.path, wasThere: true, resumedAt: 0 });
  expect(file.asked).toEqual([0]);
  expect(await readdir(folder)).toHaveLength(1);
});

test("a process that ended between the two names leaves one file", async () => {
  const file = source(someBytes(1_000));
  const { path } = await saveFile(file, folder);
  await link(path, join(folder, `.${file.id}.part`));
  expect(await saveFile(file, folder)).toMatchObject({ wasThere: true });
  expect(await readdir(folder)).toHaveLength(1);
});

test("nothing is overwritten: another file of that name stays as it is", async () => {
  const file = source(someBytes(1_000));
  await writeFile(join(folder, fileName(file)), "mine");
  expect(await caught(saveFile(file, folder))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
  expect(await readFile(join(folder, fileName(file)), "utf8")).toBe("mine");
  const same = source(someBytes(4));
  await writeFile(join(folder, fileName(same)), "mine");
  expect(await caught(saveFile(same, folder))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
});

test("no link is followed, neither for the part nor for the file", async () => {
  const target = join(folder, "target");
  await writeFile(target, "precious");
  const one = source(someBytes(1_000));
  await symlink(target, join(folder, `.${one.id}.part`));
  expect(await caught(saveFile(one, folder))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
  const two = source(someBytes(1_000));
  await symlink(target, join(folder, fileName(two)));
  expect(await caught(saveFile(two, folder))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
  const three = source(someBytes(1_000));
  await link(target, join(folder, `.${three.id}.part`));
  expect(await caught(saveFile(three, folder))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
  expect(await readFile(target, "utf8")).toBe("precious");
  expect((await lstat(join(folder, fileName(two)))).isSymbolicLink()).toBe(true);
});

test("bytes with another hash are thrown away, and fetched from the start the next time", async () => {
  const bytes = someBytes(50_000);
  const file = source(bytes);
  const wrong = { ...file, sha256: sha256(someBytes(1)) };
  expect(await caught(saveFile(wrong, folder))).toMatchObject({ code: "HOLDFAST_CONTENT_CORRUPT" });
  expect(await readdir(folder)).toEqual([]);
  await writeFile(join(folder, `.${file.id}.part`), "not its beginning");
  expect(await caught(saveFile(file, folder))).toMatchObject({ code: "HOLDFAST_CONTENT_CORRUPT" });
  expect(await saveFile(file, folder)).toMatchObject({ resumedAt: 0 });
});

test("a part that is longer than the file is begun again; more bytes than announced are refused", async () => {
  const bytes = someBytes(50_000);
  const file = source(bytes);
  await writeFile(join(folder, `.${file.id}.part`), someBytes(60_000));
  await saveFile(file, folder);
  expect((await stat(join(folder, fileName(file)))).size).toBe(50_000);
  const more = { ...source(bytes), size: 40_000 };
  expect(await caught(saveFile(more, folder))).toMatchObject({ code: "HOLDFAST_CONTENT_CORRUPT" });
  const less = { ...source(bytes), size: 60_000 };
  expect(await caught(saveFile(less, folder))).toMatchObject({ code: "HOLDFAST_CONTENT_CORRUPT" });
  // Kept, to go on from.
  expect((await stat(join(folder, `.${less.id}.part`))).size).toBe(50_000);
});

test("a part cut in the middle by a crash is completed right", async () => {
  const bytes = someBytes(80_000);
  const file = source(bytes, { breakAt: 70_000 });
  await caught(saveFile(file, folder));
  await truncate(join(folder, `.${file.id}.part`), 12_345);
  expect(await saveFile(file, folder)).toMatchObject({ resumedAt: 12_345 });
  expect((await readFile(join(folder, fileName(file)))).equals(bytes)).toBe(true);
});
