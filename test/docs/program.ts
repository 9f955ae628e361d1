// The ts blocks of a page as one program: each block is in a scope inside the one before it, so that it may use what
// stands above it on the page, and may use a name again. A block whose first line is a comment with a file's name
// (`// guests.ts`) is that file.
import ts from "typescript";
import type { Block, Page } from "./pages.ts";

export interface Program {
  /** The blocks as one module, or nothing where there is none. */
  readonly main: string | undefined;
  /** Which line of the page each line of `main` is; 0 for lines that are made. */
  readonly lines: number[];
  readonly files: { name: string; code: string; line: number }[];
}

const FILE_NAME = /^\/\/ ([\w./-]+\.ts)\b/;

export function toProgram(page: Page, purpose: "check" | "run"): Program {
  const isWanted = (block: Block): boolean =>
    block.language === "ts" &&
    block.notChecked === undefined &&
    (purpose === "check" || block.notRun === undefined) &&
    ((page.piecesOf ?? page.runBy) === undefined || block.hidden);
  const files: Program["files"] = [];
  const imports: string[] = [];
  const body: [text: string, line: number][] = [];
  let depth = 0;
  for (const block of page.blocks.filter(isWanted)) {
    const [, name] = FILE_NAME.exec(block.code) ?? [];
    if (name !== undefined) {
      files.push({ name, code: block.code, line: block.line });
      continue;
    }
    const { imported, rest } = splitImports(block.code);
    imports.push(...imported);
    if (depth > 0) body.push(["{", 0]);
    depth += 1;
    rest.split("\n").forEach((line, index) => body.push([expectOutput(line), block.line + index]));
  }
  if (depth === 0) return { main: undefined, lines: [], files };
  const head = mergeImports(imports);
  const rows: [string, number][] = [
    ...head.map((line): [string, number] => [line, 0]),
    ...body,
    ["}".repeat(depth - 1), 0],
    ["export {};", 0],
  ];
  return { main: rows.map(([line]) => line).join("\n"), lines: rows.map(([, line]) => line), files };
}

/** The imports of a block; what is left keeps its lines. */
function splitImports(code: string): { imported: string[]; rest: string } {
  const tree = ts.createSourceFile("block.ts", code, ts.ScriptTarget.Latest, true);
  const imported: string[] = [];
  let rest = code;
  for (const statement of tree.statements.filter(ts.isImportDeclaration)) {
    const text = statement.getText(tree);
    imported.push(text);
    rest = rest.replace(text, text.replace(/[^\n]/g, ""));
  }
  return { imported, rest };
}

/** Two blocks may import the same name. */
function mergeImports(statements: string[]): string[] {
  const named = new Map<string, Set<string>>();
  const others = new Set<string>();
  for (const statement of statements) {
    const [, type, names, from] = /^import (type )?\{([^}]*)\} from ("[^"]+");?$/s.exec(statement) ?? [];
    if (names === undefined || from === undefined) {
      others.add(statement);
      continue;
    }
    const known = named.get(from) ?? new Set();
    named.set(from, known);
    for (const name of names.split(",").map((each) => each.trim())) {
      if (name !== "") known.add(`${type ?? ""}${name}`);
    }
  }
  return [...others, ...[...named].map(([from, names]) => `import { ${[...names].join(", ")} } from ${from};`)];
}

/** `console.log(x); // → 5` says what is printed, and is held to it. */
function expectOutput(line: string): string {
  const [, indent, given, expected] = /^(\s*)console\.log\((.*)\); \/\/ → (.*)$/.exec(line) ?? [];
  if (given === undefined) return line;
  return `${indent}(globalThis as any).expectOutput(${JSON.stringify(expected)}, ${given});`;
}

/** Goes before a program that is run. */
export const PRELUDE = `
import { format } from "node:util";
const alike = (text) => text.replaceAll("'", '"').replace(/\\s+/g, " ");
globalThis.expectOutput = (expected, ...given) => {
  const printed = format(...given);
  if (alike(printed) !== alike(expected)) throw new Error("The page says " + expected + ", and it was " + printed);
};
`;

/** As JavaScript, with a map to the page's lines. */
export function transpile(name: string, code: string): string {
  const { outputText } = ts.transpileModule(code, {
    fileName: name,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      inlineSourceMap: true,
      rewriteRelativeImportExtensions: true,
    },
  });
  return outputText;
}
