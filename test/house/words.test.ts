// What is published speaks about Holdfast only, in the words of the glossary.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { listFiles, parseSource, readSources, root, type Source } from "./sources.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** A path of somebody's machine, from the root: not "../work/", not "example.org/home/". */
const MACHINE_PATH = /(?<![\w.])\/(work|root|home|Users)\//;

function machinePaths(path: string, text: string): string[] {
  return text
    .split("\n")
    .flatMap((line, index) =>
      MACHINE_PATH.test(line) ? [`${path}:${index + 1}  a path of a machine: ${line.trim()}`] : [],
    );
}

/** The words of the table's last column, "We do not say". */
function wordsWeDoNotSay(glossary: string): string[] {
  return glossary
    .split("\n")
    .filter((line) => line.startsWith("| **"))
    .flatMap((line) => line.split("|").at(-2)?.split(",") ?? [])
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== "");
}

/** The names a module exports, through `export *` as well. */
function exportedNames(path: string, sources: Source[]): string[] {
  const source = sources.find((candidate) => candidate.path === path);
  if (!source) return [];
  return source.tree.statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) {
      if (statement.exportClause && ts.isNamedExports(statement.exportClause)) {
        return statement.exportClause.elements.map((element) => element.name.text);
      }
      if (statement.exportClause) return [statement.exportClause.name.text];
      const specifier = statement.moduleSpecifier;
      const from = source.imports.find(
        (found) => specifier && ts.isStringLiteral(specifier) && found.specifier === specifier.text,
      );
      return from?.target ? exportedNames(from.target, sources) : [];
    }
    if (!ts.canHaveModifiers(statement)) return [];
    if (!ts.getModifiers(statement)?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword)) return [];
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.map((declaration) => declaration.name.getText(source.tree));
    }
    const named = "name" in statement ? statement.name : undefined;
    return named && ts.isIdentifier(named) ? [named.text] : [];
  });
}

/** "TaskOptions" has the word "task"; "Multitasking" does not. */
function namesWithWords(names: string[], words: string[]): string[] {
  return names.flatMap((name) => {
    const parts = name.split(/(?=[A-Z])|_/).map((part) => part.toLowerCase().replace(/s$/, ""));
    const said = words.find((word) => ` ${parts.join(" ")} `.includes(` ${word.replace(/s$/, "").replace("-", " ")} `));
    return said === undefined ? [] : [`src/index.ts exports ${name}: docs/glossary.md has another word for "${said}"`];
  });
}

test("published texts contain no path of the machine they were written on", () => {
  const pages = ["README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY"]
    .map((name) => `${name}.md`)
    .filter((path) => existsSync(join(root, path)));
  const problems = [...pages, ...["docs", "src", "migrations"].flatMap((folder) => listFiles(folder))].flatMap((path) =>
    machinePaths(path, read(path)),
  );
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

test("what src/index.ts exports is named in the words of the glossary", () => {
  const names = exportedNames("src/index.ts", readSources());
  expect(names, "src/index.ts exports nothing that this test can see").not.toEqual([]);
  const problems = namesWithWords(names, wordsWeDoNotSay(read("docs/glossary.md")));
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

test("a machine's path and a word that is not ours are reported", () => {
  for (const path of ["/work/main/x", "see (/root/.npmrc)", "file:///home/me/x"]) {
    expect(machinePaths("docs/a.md", `first\n${path}`)).toEqual([expect.stringContaining("docs/a.md:2  ")]);
  }
  expect(machinePaths("docs/a.md", "src/worker/ ../work/ https://example.org/home/ /workers/")).toEqual([]);

  const words = wordsWeDoNotSay(read("docs/glossary.md"));
  expect(words).toContain("task");
  expect(words).toContain("visibility timeout");
  const sources = [
    parseSource(
      "src/index.ts",
      'export * from "./a.ts"; export { x as Task, open } from "./b.ts"; export class Job {}',
    ),
    parseSource("src/a.ts", "export const visibilityTimeoutMs = 1; export interface TasksSeen {} const Task = 1;"),
  ];
  const names = exportedNames("src/index.ts", sources);
  expect(names).toEqual(["visibilityTimeoutMs", "TasksSeen", "Task", "open", "Job"]);
  expect(namesWithWords(names, words)).toEqual([
    expect.stringContaining("visibilityTimeoutMs"),
    expect.stringContaining("TasksSeen"),
    expect.stringContaining("exports Task:"),
  ]);
  expect(namesWithWords(["Multitasking", "defineJob"], words)).toEqual([]);
});
