// holdfast batches, as its users have it: each command in a process of its own, against a server with the samples.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, main, makeUsedFolder, type Output, run, type Running, start } from "./holdfast.ts";

let dev: Running;
let cwd: string;
const holdfast = (...args: string[]): Promise<Output> => withStdin("", ...args);
const withStdin = (stdin: string, ...args: string[]): Promise<Output> =>
  run(["batches", ...args], { cwd, stdin, env: { HOLDFAST_URL: dev.ready.url } });
const numbers = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, n) => `{"n":${from + n}}`).join("\n");
const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";

beforeAll(async () => {
  cwd = await makeUsedFolder();
  dev = await start(["dev", "--port", "0"], { cwd });
});
afterAll(cleanUp);

test("create from stdin and wait: the id and the lines on stdout, exit code 0", async () => {
  const { code, stdout, stderr } = await withStdin(numbers(1, 6), "create", "sample.check", "--file", "-", "--wait");
  expect(code, stderr).toBe(0);
  const [id, ...lines] = stdout.trim().split("\n");
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  expect(lines.at(-1)).toBe("6 of 6 (100 %)  done  fine 6");
});

test(
  "items that fail: exit code 4, errors in groups, retry-failed, show, list, items, export",
  { timeout: 90_000 },
  async () => {
    await writeFile(join(cwd, "items.json"), JSON.stringify([{ n: 1 }, { n: 7 }, { n: 10 }, { n: 14 }]));
    const created = await holdfast("create", "sample.check", "--file", "items.json", "--owner", "ada", "--json");
    expect(created.code, created.stderr).toBe(0);
    const { id, added } = JSON.parse(created.stdout) as { id: string; added: number };
    expect(added).toBe(4);

    const watched = await holdfast("watch", id);
    expect(watched.code, watched.stderr).toBe(4);
    expect(watched.stdout.trim().split("\n").at(-1)).toBe("4 of 4 (100 %)  done  fine 1  duplicate 1  error 2");
    const asLines = await holdfast("watch", id, "--ndjson");
    expect([asLines.code, JSON.parse(asLines.stdout)]).toEqual([4, expect.objectContaining({ id, state: "done" })]);

    // None of these changes anything: all at once.
    const [shown, asJson, withErrors, owned, none, failed, paged, errors, errorsAsJson, exported, csv, wrong] =
      await Promise.all(
        [
          ["show", id],
          ["show", id, "--json"],
          ["list", "--with-errors"],
          ["--owner", "ada", "--ndjson"],
          ["list", "--owner", "nobody"],
          ["items", id, "--state", "error"],
          ["items", id, "--limit", "1", "--json"],
          ["errors", id],
          ["errors", id, "--json"],
          ["export", id],
          ["export", id, "--csv", "--state", "fine", "--out", "fine.csv"],
          ["export", id, "--state", "lost", "--out", "lost.csv"],
        ].map((args) => holdfast(...args)),
      );
    expect(shown!.stdout).toMatch(/owner +ada[^]*state +done[^]*items +4 of 4 have ended[^]*counts[^]*error +2/);
    expect(JSON.parse(asJson!.stdout)).toMatchObject({ id, counts: { error: 2 } });
    expect(withErrors!.stdout).toMatch(new RegExp(`${id} +done +sample.check +ada +4/4 +2 `));
    expect(JSON.parse(owned!.stdout)).toMatchObject({ id });
    expect(none!.stderr).toContain("There are no such batches.");
    expect(failed!.stdout).toMatch(/SEQ[^]*\n2 +error +2 +\{"n":7\} +7 is a multiple of seven\n4 +error/);
    const page = JSON.parse(paged!.stdout) as { next: string };
    const second = await holdfast("items", id, "--limit", "1", "--cursor", page.next, "--ndjson");
    expect(JSON.parse(second.stdout)).toMatchObject({ seq: 2 });
    expect(second.stderr).toContain("There are more: --cursor 2");
    expect(errors!.stdout).toMatch(/COUNT[^]*\n2 +\d+ +\S+ +Error: \d+ is a multiple of seven/);
    expect(JSON.parse(errorsAsJson!.stdout)).toMatchObject({ errors: [{ count: 2 }] });
    const lines = exported!.stdout.trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { state: string }).state)).toEqual([
      "fine",
      "error",
      "duplicate",
      "error",
    ]);
    expect([csv!.code, csv!.stdout]).toEqual([0, "fine.csv\n"]);
    expect(await readFile(join(cwd, "fine.csv"), "utf8")).toMatch(/^seq,state,.*\r\n1,fine,1,.*\r\n$/);
    expect(wrong!.code).toBe(2);
    expect((await readdir(cwd)).filter((name) => name.startsWith("lost"))).toEqual([]);

    expect(await holdfast("retry-failed", id, "--items", "4,1")).toMatchObject({
      code: 0,
      stdout: `1 item of ${id} waits again.\n`,
    });
    expect((await holdfast("watch", id)).code).toBe(4);
    expect(await holdfast("retry-failed", id, nobody, "--items", "4")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--items is given with several batches."),
    });
    const unread = await holdfast("retry-failed", id, "--items", "four");
    expect([unread.code, unread.stderr]).toEqual([2, expect.stringContaining("Give whole numbers with commas")]);
    const retried = await holdfast("retry-failed", id);
    expect([retried.code, retried.stdout]).toEqual([0, `2 items of ${id} wait again.\n`]);
    expect((await holdfast("watch", id)).code).toBe(4);

    expect(await holdfast("delete", id)).toMatchObject({ code: 2, stderr: expect.stringContaining("Give --yes") });
    expect(await holdfast("delete", id, "--yes")).toMatchObject({ code: 0, stdout: `${id} is gone.\n` });
    expect(await holdfast("delete", id, "--yes")).toMatchObject({ code: 0, stdout: `${id} was not there.\n` });
    expect(await holdfast("show", id)).toMatchObject({ code: 5 });
  },
);

test("priority, a follow-up and fields go along, with a list and with lines", { timeout: 60_000 }, async () => {
  await writeFile(join(cwd, "one.json"), '[{"n":1}]');
  const said = ["--priority", "-3", "--on-done", "sample.hello", "--fields", '{"title":"spring"}'];
  for (const [file, stdin] of [
    ["one.json", ""],
    ["-", '{"n":1}'],
  ] as const) {
    const made = await withStdin(stdin, "create", "sample.check", "--file", file, "--wait", "--json", ...said);
    expect([made.code, JSON.parse(made.stdout.trim().split("\n").at(-1)!)], made.stderr).toEqual([
      0,
      expect.objectContaining({ priority: -3, fields: { title: "spring" } }),
    ]);
  }
  const greeted = await run(["jobs", "--kind", "sample.hello", "--ndjson"], {
    cwd,
    env: { HOLDFAST_URL: dev.ready.url },
  });
  expect(greeted.stdout.trim().split("\n")).toHaveLength(2);
  const wrong = await holdfast("create", "sample.check", "--fields", "title");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--fields is "title".')]);
});

test("an open batch: add, pause, resume, close, cancel; what cannot be is exit code 6, and the rest is done", async () => {
  const { stdout } = await holdfast("create", "sample.check", "--open", "--key", "open-1");
  const id = stdout.trim();
  const again = await holdfast("create", "sample.check", "--open", "--key", "open-1");
  expect([again.code, again.stdout]).toEqual([0, stdout]);
  expect(again.stderr).toContain("was known");
  expect((await holdfast("pause", id)).stdout).toBe(`${id} is paused.\n`);
  const add = ["add", id, "--file", "-", "--writer", "me", "--from", "0"];
  expect((await withStdin(numbers(1, 3), ...add)).stdout).toBe("3 items were added; there are 3.\n");
  expect((await withStdin(numbers(1, 3), ...add)).stdout).toBe("0 items were added; there are 3.\n");
  expect((await withStdin("8\n\n 9 \n", "add", id, "--file", "-", "--field", "n", "--close")).stdout).toContain(
    "2 items",
  );
  expect((await holdfast("watch", id, "--timeout", "1s")).code).toBe(124);
  expect((await holdfast("resume", id)).stdout).toBe(`${id} goes on.\n`);
  expect((await holdfast("watch", id)).code).toBe(0);
  const refused = await holdfast("cancel", id, nobody, "--yes", "--json");
  expect(refused.code).toBe(6);
  expect(JSON.parse(refused.stdout)).toEqual([
    { id, ok: false, message: `Batch ${id} is done and cannot be cancelled.` },
    { id: nobody, ok: false, message: expect.stringContaining("There is no batch") },
  ]);

  const other = (await withStdin(numbers(1, 500), "create", "sample.check", "--file", "-")).stdout.trim();
  expect(await holdfast("cancel", other)).toMatchObject({ code: 2 });
  expect((await holdfast("cancel", other, "-y")).stdout).toContain(`${other} is cancelled`);
  expect((await holdfast("watch", other)).code).toBe(4);
  expect((await holdfast("close", other)).stdout).toBe(`${other} is closed, with 500 items.\n`);
});

test("what is wrong, and what is not there: each with its exit code and its words", async () => {
  const cases: [string[], number, string][] = [
    [["create", "sample.check", "--file", "missing.ndjson"], 2, "cannot be read"],
    [["create", "sample.check", "--file", "."], 2, "is not a file"],
    [["create", "sample.check", "--field", "n"], 2, "--field is given without --file"],
    [["create", "sample.check", "--timeout", "5s"], 2, "without --wait"],
    [["create", "sample.chek"], 2, "Known batch kinds: sample.check"],
    [["create", "sample.hello"], 2, "is a kind of job"],
    [["create", "sample.check", "--total", "x"], 2, "--total"],
    [["add", nobody], 2, "There are no items"],
    [["show", nobody], 5, "There is no batch"],
    [["show", "x"], 2, "The batch id"],
    [["pause", nobody], 5, "There is no batch"],
    [["watch", nobody], 5, "There is no batch"],
    [["export", nobody], 5, "There is no batch"],
    [["list", "--state", "lost"], 2, "state is"],
    [["list", "--url", "http://127.0.0.1:1"], 69, "No server answers"],
  ];
  const outputs = await Promise.all(cases.map(([args]) => holdfast(...args)));
  for (const [index, [args, code, text]] of cases.entries()) {
    const output = outputs[index]!;
    expect([args, output.code, output.stderr]).toEqual([args, code, expect.stringContaining(text)]);
  }
});

test("on a terminal watch is a bar that is written over, and cancel asks first", async ({ skip }) => {
  const onTerminal = async (stdin: string, ...args: string[]): Promise<string> => {
    const command = [process.execPath, main, "batches", ...args].join(" ");
    const child = spawn("script", ["-qefc", command, "/dev/null"], {
      env: { ...process.env, HOLDFAST_URL: dev.ready.url, COLUMNS: "120" },
    });
    child.stdin.end(stdin);
    let text = "";
    child.stdout.on("data", (piece: Buffer) => (text += piece.toString()));
    await once(child, "close");
    return text;
  };
  if (spawnSync("script", ["--version"]).status !== 0) skip("script (util-linux) is not installed");
  const id = (await withStdin(numbers(1, 30), "create", "sample.check", "--file", "-")).stdout.trim();
  const drawn = (await onTerminal("", "watch", id)).split("\r\u001b[K");
  expect(drawn.length).toBeGreaterThan(2);
  expect(drawn[1]).toMatch(/^\[#* *\] \d+ of 30 \(\d+ %\) {2}running/);
  expect(drawn.at(-1)).toMatch(/^\[#{30}\] 30 of 30 \(100 %\) {2}done/);

  const other = (await holdfast("create", "sample.check", "--open")).stdout.trim();
  expect(await onTerminal("n\n", "cancel", other)).toMatch(
    /What is cancelled cannot go on\. Cancel .* \[y\/N\][^]*Nothing was done/,
  );
  expect((await holdfast("show", other)).stdout).toMatch(/state +queued/);
  expect(await onTerminal("y\n", "cancel", other)).toContain(`${other} is cancelled`);
});

test("lines that are wrong are named, with their batch", async () => {
  const { code, stderr } = await withStdin('{"n":1}\n{"n":', "create", "sample.check", "--file", "-");
  expect([code, stderr]).toEqual([2, expect.stringContaining("Line 2 is not JSON")]);
});
