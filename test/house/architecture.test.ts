// ARCHITECTURE.md is the house as it is: the files and tables it names are there, and a job really takes the walk it tells,
// function by function.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { useHoldfast } from "../support/open-test.ts";
import { root } from "./sources.ts";

const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
const section = (title: string): string => {
  const start = page.indexOf(`\n## ${title}\n`);
  return page.slice(start, page.indexOf("\n## ", start + 1));
};

/** `file` (`function`), in the order of the text. */
const stepsIn = (text: string): { file: string; name: string }[] =>
  [...text.matchAll(/`([a-z]+(?:\/[a-z-]+)+)` \(`(\w+)`\)/g)].map(([, file, name]) => ({ file: file!, name: name! }));

test("every file that it names exists", () => {
  const rooms =
    "shared|job|options|guarded-fetch|db|metrics|store|migrate|worker|janitor|inbox|batches|client|apps|http|cli|testing";
  const named = [...page.matchAll(new RegExp(`\`(?:src/)?((?:${rooms})(?:/[a-z-]+)+)(\\.ts)?\``, "g"))].map(
    (m) => m[1]!,
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(join(root, "src", `${file}.ts`)))).toEqual([]);
});

/** A copy of the build in which each function of these files says that it was called. */
function makeTalkingCopy(files: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-walk-"));
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true });
  cpSync(join(root, "package.json"), join(folder, "package.json"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const file of new Set(files)) {
    const path = join(folder, "dist", `${file}.js`);
    writeFileSync(path, talking(file, readFileSync(path, "utf8")));
  }
  return folder;
}

function talking(file: string, code: string): string {
  const tree = ts.createSourceFile("x.js", code, ts.ScriptTarget.Latest, true);
  const places: { at: number; name: string }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) {
      const { name, body } = node;
      if (name && body && ts.isIdentifier(name)) places.push({ at: body.getStart() + 1, name: name.text });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  let talkative = code;
  for (const { at, name } of places.toSorted((a, b) => b.at - a.at)) {
    talkative = `${talkative.slice(0, at)}globalThis.walked?.("${file} ${name}");${talkative.slice(at)}`;
  }
  return talkative;
}

/** The steps that were not taken after the one before them. What runs in the background may be called at other times, too. */
function notTaken(steps: string[], calls: string[]): string[] {
  let last = -1;
  return steps.filter((step) => {
    const at = calls.indexOf(step, last + 1);
    if (at < 0) return true;
    last = at;
    return false;
  });
}

test("a job takes the walk, step by step, in this order", { timeout: 60_000 }, async () => {
  const steps = stepsIn(section("A job's walk"));
  expect(steps.length).toBeGreaterThan(10);
  const folder = makeTalkingCopy(steps.map(({ file }) => file));
  try {
    const child = join(import.meta.dirname, "children/walk.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [child, folder]);
    const { calls, isPurged } = JSON.parse(stdout) as { calls: string[]; isPurged: boolean };
    expect(isPurged).toBe(true);
    const taken = steps.map(({ file, name }) => `${file} ${name}`);
    expect(notTaken(taken, calls), `\n${[...new Set(calls)].join("\n")}\n`).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a step that is not taken, or in another order, is noticed", () => {
  expect(stepsIn("`a/b` (`c`), then `d/e-f` (`g`) and `h`")).toEqual([
    { file: "a/b", name: "c" },
    { file: "d/e-f", name: "g" },
  ]);
  expect(notTaken(["a", "b", "c"], ["a", "x", "b", "c"])).toEqual([]);
  expect(notTaken(["a", "b", "c"], ["c", "a", "b", "c"])).toEqual([]);
  expect(notTaken(["a", "b", "c"], ["a", "c", "b"])).toEqual(["c"]);
  expect(notTaken(["a", "b"], ["a"])).toEqual(["b"]);
  expect(talking("a/b", "export function c() { return 1; }\nconst d = { async e() {} };")).toBe(
    'export function c() {globalThis.walked?.("a/b c"); return 1; }\nconst d = { async e() {globalThis.walked?.("a/b e");} };',
  );
});

describe("the tables", () => {
  const bench = useHoldfast("server");

  test("are those that there are", async () => {
    const { rows } = await bench.db.query<{ name: string }>(
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition`,
      [bench.hf.schema],
    );
    const named = [...section("Tables").matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names]) =>
      [...names!.matchAll(/`(\w+)`/g)].map((match) => match[1]!),
    );
    expect(named.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  });
});
