// The embedded folder: what cannot be opened is refused with what to do, and left as it is.
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openEmbedded } from "#src/db/embedded.js";
import { makeFolder, POSTGRES_MAJOR, readyPgdata } from "#src/db/embedded-folder.js";
import { FolderUnusable, OptionInvalid } from "#src/errors.js";
import { testSeed } from "./children/seed.mjs";

let seed: string;
let home: string;
let whole: string;
let folder: string;
beforeAll(async () => {
  seed = await testSeed();
  home = await mkdtemp(join(tmpdir(), "holdfast-folder-"));
  whole = join(home, "whole");
  const db = await openEmbedded({ folder: whole }, { seed });
  await db.close();
});
afterAll(() => rm(home, { recursive: true, force: true }));

let count = 0;
beforeEach(() => {
  count += 1;
  folder = join(home, `folder-${count}`);
});

const never = (): Promise<void> => Promise.reject(new Error("initialised"));

async function refusal(opening: Promise<unknown>): Promise<{ message: string; hint: string }> {
  const error = await opening.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FolderUnusable);
  return error as FolderUnusable;
}

describe("a new folder", () => {
  test("says what made it, is ours alone and stays out of git", async () => {
    expect((await readdir(whole)).toSorted()).toEqual([".gitignore", "holdfast.json", "pgdata"]);
    const note: unknown = JSON.parse(await readFile(join(whole, "holdfast.json"), "utf8"));
    expect(note).toEqual({
      pgliteVersion: "0.5.16",
      pgVersion: expect.stringMatching(`^${POSTGRES_MAJOR}\\.`),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    expect(await readFile(join(whole, ".gitignore"), "utf8")).toBe("*\n");
  });

  test("is made only when it is whole: what a killed start left is removed", async () => {
    await mkdir(join(folder, "pgdata.init-1", "base"), { recursive: true });
    const pgdata = await readyPgdata(folder, async (path) => {
      expect(await readdir(folder)).toEqual([]);
      await mkdir(path);
    });
    expect(pgdata).toBe(join(folder, "pgdata"));
    expect(await readdir(folder)).toEqual(["pgdata"]);
  });

  test("is not made when initialising fails", async () => {
    await mkdir(folder);
    const failing = readyPgdata(folder, async (path) => {
      await mkdir(path);
      throw new Error("disk full");
    });
    await expect(failing).rejects.toThrow("disk full");
    expect(await readdir(folder)).not.toContain("pgdata");
  });

  test("may be an empty folder that exists, like the mount point of a volume", async () => {
    await mkdir(folder);
    const db = await openEmbedded({ folder }, { seed });
    await db.close();
    expect(await readdir(folder)).toContain("pgdata");
  });
});

describe("refused", () => {
  test.each(["", "  ", "a\0b"])("the path %j", async (path) => {
    await expect(makeFolder(path)).rejects.toBeInstanceOf(OptionInvalid);
  });

  test("a file in its place, or above it", async () => {
    await writeFile(folder, "precious");
    expect((await refusal(makeFolder(folder))).message).toContain("is a file");
    expect((await refusal(makeFolder(join(folder, "below")))).message).toContain("is a file");
    expect(await readFile(folder, "utf8")).toBe("precious");
  });

  test.skipIf(process.getuid?.() === 0)("a folder that cannot be written", async () => {
    await mkdir(folder, { mode: 0o500 });
    const { message, hint } = await refusal(makeFolder(folder));
    expect(message).toContain("cannot be written (EACCES)");
    expect(hint).toContain("right to write");
    await chmod(folder, 0o700);
  });

  test("a database of another PostgreSQL, and who made it", async () => {
    await mkdir(join(folder, "pgdata"), { recursive: true });
    await writeFile(join(folder, "pgdata", "PG_VERSION"), "17\n");
    const note = { pgliteVersion: "0.4.9", pgVersion: "17.5", createdAt: "2025-01-01T00:00:00Z" };
    await writeFile(join(folder, "holdfast.json"), JSON.stringify(note));
    const { message, hint } = await refusal(readyPgdata(folder, never));
    expect(message).toContain("holds a database of PostgreSQL 17 (PGlite 0.4.9, made 2025-01-01T00:00:00Z)");
    expect(message).toContain(`embeds PostgreSQL ${POSTGRES_MAJOR}. Nothing in it was changed.`);
    expect(hint).toContain("Open it with the version of Holdfast that made it");
  });

  test("a copy that is not complete", async () => {
    const pgdata = join(folder, "pgdata");
    await mkdir(join(pgdata, "global"), { recursive: true });
    expect((await refusal(readyPgdata(folder, never))).message).toContain("it has no PG_VERSION");
    await writeFile(join(pgdata, "PG_VERSION"), `${POSTGRES_MAJOR}\n`);
    expect((await refusal(readyPgdata(folder, never))).message).toContain("it has no global/pg_control");
    await writeFile(join(pgdata, "global", "pg_control"), "");
    expect((await refusal(readyPgdata(folder, never))).message).toContain("has 0 bytes");
    await writeFile(join(pgdata, "global", "pg_control"), Buffer.alloc(8192));
    expect((await refusal(readyPgdata(folder, never))).message).toContain("has format 0");
    expect((await readdir(pgdata)).toSorted()).toEqual(["PG_VERSION", "global"]);
  });

  test("a folder whose pgdata is gone, instead of an empty database in its place", async () => {
    await mkdir(folder);
    await cp(join(whole, "holdfast.json"), join(folder, "holdfast.json"));
    expect((await refusal(readyPgdata(folder, never))).message).toContain("its pgdata is gone");
  });

  test("the data folder of PostgreSQL itself", async () => {
    const { message } = await refusal(readyPgdata(join(whole, "pgdata"), never));
    expect(message).toContain("is itself a data folder of PostgreSQL");
  });

  test("a database that PostgreSQL cannot start, with what it says, and then it is unlocked", async () => {
    await cp(whole, folder, { recursive: true });
    const control = join(folder, "pgdata", "global", "pg_control");
    const bytes = await readFile(control);
    bytes.writeUInt32LE(0xdeadbeef, 100);
    await writeFile(control, bytes);
    const open = (): Promise<unknown> => openEmbedded({ folder }, { seed });
    const { message, hint } = await refusal(open());
    expect(message).toMatch(/cannot be opened: .*(checksum|control file)/);
    expect(hint).toContain("Keep a copy of the folder");
    expect((await refusal(open())).message).toBe(message);
    expect((await readFile(control)).equals(bytes)).toBe(true);
  });
});
