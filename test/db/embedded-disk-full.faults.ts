// The embedded database on a disk that is full: commits fail, what was acknowledged stays, and when there is room again the
// folder opens with all of it. Needs a file system of its own, so it is skipped where none can be mounted.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { startChild } from "./children/child.ts";
import { testSeed } from "./children/seed.mjs";
import { saveResult } from "../support/history/save-result.ts";

const home = mkdtempSync(join(tmpdir(), "holdfast-full-"));
const mount = (size: string, more = ""): boolean =>
  spawnSync("mount", ["-t", "tmpfs", "-o", `${more}size=${size}`, "tmpfs", home]).status === 0;
const canMount = process.platform === "linux" && mount("64m");
const WHY_NOT = "no file system can be mounted here (it takes root on Linux)";
if (!canMount) process.stderr.write(`Skipped: a full disk: ${WHY_NOT}.\n`);
afterAll(() => {
  if (canMount) spawnSync("umount", ["-l", home]);
  rmdirSync(home);
});

interface Found {
  entries: number;
  last: number;
  twins: number;
  tally: number;
}

const name = `a full disk loses nothing that was acknowledged${canMount ? "" : `: ${WHY_NOT}`}`;
test.skipIf(!canMount)(name, { timeout: 240_000 }, async () => {
  const seed = await testSeed();
  const folder = join(home, "data");
  mkdirSync(folder);
  const acked = (lines: readonly string[]): number => Math.max(0, ...lines.map(Number).filter(Number.isInteger));
  // Room for the database, and for a little more.
  expect(mount("1g", "remount,")).toBe(true);
  const first = startChild("commit-rows.mjs", [folder, seed]);
  await first.line("50");
  const used = spawnSync("du", ["-sk", home], { encoding: "utf8" }).stdout.split("\t")[0]!;
  expect(mount(`${Number(used) + 300}k`, "remount,")).toBe(true);
  const ended = await Promise.race([first.ended, delay(120_000)]);
  expect(ended, "the disk never became full").toBeDefined();
  const acknowledged = acked(first.lines);
  expect(acknowledged).toBeGreaterThanOrEqual(50);
  expect(mount("1g", "remount,")).toBe(true);
  const second = startChild("commit-rows.mjs", [folder, seed]);
  const found = JSON.parse((await second.line("found ")).slice("found ".length)) as Found;
  expect(found).toEqual({ entries: found.last, last: found.last, twins: found.last, tally: found.last });
  expect(found.last).toBeGreaterThanOrEqual(acknowledged);
  expect(found.last).toBeLessThanOrEqual(acknowledged + 1);
  // It goes on.
  await second.line(String(found.last + 20));
  second.kill("SIGTERM");
  expect((await second.ended).code).toBe(0);
  await saveResult("disk-full", 0, { commits: found.last, faults: { "embedded: disk full": 1 }, violations: [] });
});
