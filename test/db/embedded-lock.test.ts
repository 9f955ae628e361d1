// One process at a time in an embedded folder, whatever becomes of the one that holds it.
import { mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openEmbedded } from "#src/db/embedded.js";
import { lockFolder, type LockOptions } from "#src/db/folder-lock.js";
import { FolderLocked } from "#src/errors.js";
import { type Child, startChild } from "./children/child.ts";
import { testSeed } from "./children/seed.mjs";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function startHolder(options: LockOptions = {}): Promise<Child> {
  const child = startChild("lock-folder.mjs", [folder, JSON.stringify(options)]);
  await child.line("held");
  return child;
}

async function sockets(): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith("lock-"));
}

describe("a database", () => {
  test("that another process has open is refused, with who has it and what to do", async () => {
    const seed = await testSeed();
    const child = startChild("commit-rows.mjs", [folder, seed]);
    await child.line("1");
    const refused = await openEmbedded({ folder }, { seed }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(FolderLocked);
    expect(refused).toMatchObject({
      message: expect.stringMatching(
        new RegExp(
          `^The folder ${folder} is in use by process ${child.pid} \\(commit-rows\\) on host ${hostname()} since \\d\\d:\\d\\d\\.$`,
        ),
      ),
      hint: expect.stringMatching(/Stop that process, use its HTTP API instead, or set DATABASE_URL/),
    });
    child.kill("SIGTERM");
    expect(await child.ended).toEqual({ code: 0, signal: null });

    const db = await openEmbedded({ folder }, { seed });
    await expect(openEmbedded({ folder }, { seed })).rejects.toThrow(/This process has already opened/);
    await db.close();
    expect(await sockets()).toEqual([]);
    const again = await openEmbedded({ folder }, { seed });
    await again.close();
  });
});

// kernelName false: what containers on one volume see, and all there is on macOS.
describe.each([{}, { kernelName: false }])("the lock, with %o", (options: LockOptions) => {
  test("of ten that start at once, one gets it", async () => {
    const at = String(Date.now() + 1_500);
    const children = Array.from({ length: 10 }, () =>
      startChild("lock-folder.mjs", [folder, JSON.stringify(options), at]),
    );
    const outcomes = await Promise.all(
      children.map((child) => Promise.race([child.line("held"), child.line("HOLDFAST_FOLDER_LOCKED")])),
    );
    const holders = children.filter((_, index) => outcomes[index] === "held");
    expect(holders, outcomes.join("\n")).toHaveLength(1);
    expect(await sockets()).toHaveLength(1);
    await expect(lockFolder(folder, options)).rejects.toThrow(`process ${holders[0]?.pid} `);
    for (const child of children) child.finish();
    await Promise.all(children.map((child) => child.ended));
    expect(await sockets()).toEqual([]);
  });

  test("is free when its holder was killed, and what that left behind is removed", async () => {
    const child = await startHolder(options);
    child.kill("SIGKILL");
    await child.ended;
    expect(await sockets()).toHaveLength(1);
    const lock = await lockFolder(folder, options);
    expect(await sockets()).toHaveLength(1);
    await lock.release();
    expect(await sockets()).toEqual([]);
  });

  test("stays with a holder that is stopped", async () => {
    const child = await startHolder(options);
    child.kill("SIGSTOP");
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const startedAt = performance.now();
      await expect(lockFolder(folder, options)).rejects.toThrow(/in use by a process that does not answer/);
      expect(performance.now() - startedAt).toBeLessThan(2_000);
    }
    child.kill("SIGCONT");
    await expect(lockFolder(folder, options)).rejects.toThrow(`process ${child.pid} `);
    child.kill("SIGKILL");
    await child.ended;
  });

  test("is one for all names of the folder, however long", async () => {
    const parent = folder;
    folder = join(parent, "long".repeat(30), "folder");
    await mkdir(folder, { recursive: true });
    const child = await startHolder(options);
    expect(await sockets()).toHaveLength(1);
    await expect(lockFolder(folder, options)).rejects.toThrow(`process ${child.pid} `);
    child.finish();
    await child.ended;
    const lock = await lockFolder(folder, options);
    await lock.release();
    expect(await readdir(parent)).toEqual(["long".repeat(30)]);
    folder = parent;
  });
});

test("a holder that cannot be seen from outside the folder is seen inside it", async () => {
  const inContainer = await startHolder({ kernelName: false, command: "in a container" });
  await expect(lockFolder(folder)).rejects.toThrow(/\(in a container\)/);
  inContainer.finish();
  await inContainer.ended;
  const outside = await startHolder();
  await expect(lockFolder(folder, { kernelName: false })).rejects.toThrow(`process ${outside.pid} `);
  outside.finish();
  await outside.ended;
});

test("a symbolic link leads to the same lock", async () => {
  const seed = await testSeed();
  const link = `${folder}-link`;
  await symlink(folder, link);
  try {
    const holder = await lockFolder(folder);
    await expect(openEmbedded({ folder: link }, { seed })).rejects.toBeInstanceOf(FolderLocked);
    await holder.release();
  } finally {
    await rm(link);
  }
});
