// What only a terminal gets: colours, bars that are written over, questions. The terminal is a real one, made by script(1).
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanUp, main, makeUsedFolder, run, type Running, start } from "./holdfast.ts";

const hasScript = spawnSync("script", ["--version"]).stdout?.toString().includes("util-linux");
const ESC = "\u001b";

/** Runs a command on a terminal of its own; `says` is typed when the question is there. */
async function onTerminal(
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string>; answer?: [question: string, says: string] },
): Promise<{ code: number | null; screen: string }> {
  const quoted = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  // With CI set, Node takes every terminal for one without colours.
  const { FORCE_COLOR: _, NO_COLOR: __, HOLDFAST_URL: ___, CI: ____, ...env } = process.env;
  const child: ChildProcess = spawn("script", ["-qec", quoted, "/dev/null"], {
    cwd: options.cwd,
    env: { ...env, TERM: "xterm-256color", ...options.env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let screen = "";
  let isAnswered = false;
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
    if (isAnswered || !options.answer || !screen.includes(options.answer[0])) return;
    isAnswered = true;
    child.stdin!.write(`${options.answer[1]}\n`);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, screen };
}

describe.skipIf(!hasScript)("on a terminal", () => {
  let server: Running;
  let cwd: string;
  beforeAll(async () => {
    cwd = await makeUsedFolder();
    server = await start(["dev"], { cwd, env: { HOLDFAST_PORT: "0" } });
  }, 180_000);
  afterAll(async () => {
    server.kill("SIGTERM");
    await server.ended;
    await cleanUp();
  });

  test("marks are coloured, unless NO_COLOR or a dumb terminal says otherwise; elsewhere only if FORCE_COLOR does", async () => {
    const [plain, none, dumb, piped, forced, both] = await Promise.all([
      onTerminal(["doctor"], { cwd }),
      onTerminal(["doctor"], { cwd, env: { NO_COLOR: "1" } }),
      onTerminal(["doctor"], { cwd, env: { TERM: "dumb" } }),
      run(["doctor"], { cwd }),
      run(["doctor"], { cwd, env: { FORCE_COLOR: "1" } }),
      run(["doctor"], { cwd, env: { FORCE_COLOR: "1", NO_COLOR: "1" } }),
    ]);
    expect(plain.screen).toContain(`${ESC}[32m✓${ESC}[39m database`);
    for (const { screen } of [none, dumb]) {
      expect(screen).toContain("✓ database");
      expect(screen).not.toContain(ESC);
    }
    expect(forced.stdout).toContain(`${ESC}[32m✓`);
    for (const { stdout } of [piped, both]) expect(stdout).not.toContain(ESC);
  });

  test("a batch that is waited for has a bar; piped, it has lines", async () => {
    const args = ["batches", "create", "sample.check", "--file", "items.json", "--wait"];
    await writeFile(join(cwd, "items.json"), JSON.stringify(Array.from({ length: 40 }, (_, n) => ({ n }))));
    const [bar, lines] = await Promise.all([onTerminal(args, { cwd }), run(args, { cwd })]);
    expect(bar.screen).toContain(`\r${ESC}[K[${"#".repeat(30)}] `);
    for (const drawn of ["\r", ESC]) expect(lines.stdout + lines.stderr).not.toContain(drawn);
  });

  test("what destroys asks, with how many: anything but yes does nothing", async () => {
    for (let n = 0; n < 2; n += 1) {
      const { code } = await run(["enqueue", "sample.flaky", "--attempts", "1", "--wait"], { cwd });
      expect(code).toBe(4);
    }
    const question = "Discard 2 dead jobs?";
    const dead = async () =>
      JSON.parse((await run(["jobs", "--status", "dead", "--json"], { cwd })).stdout) as { jobs: object[] };
    const no = await onTerminal(["dead", "discard"], { cwd, answer: [question, "n"] });
    expect([no.code, no.screen]).toEqual([1, expect.stringContaining("Nothing was done.")]);
    expect((await dead()).jobs).toHaveLength(2);
    const yes = await onTerminal(["dead", "discard", "--wait"], { cwd, answer: [question, "y"] });
    expect(yes.code, yes.screen).toBe(0);
    expect((await dead()).jobs).toHaveLength(0);
  });
});
