// The source files as the house tests see them: path, syntax tree, imports. Parsed with the compiler's own parser, so
// that comments and strings are never mistaken for code. Nothing here reads the disk except `readSources`.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** `value` exists at run time, `type` is erased, `thread` is a module named by `new URL("./x.js", import.meta.url)`. */
export type ImportKind = "value" | "type" | "thread";

export interface Import {
  /** As written: "../db/db.ts", "pg". */
  specifier: string;
  /** The file of ours it means ("src/db/db.ts"), or null for a package. */
  target: string | null;
  kind: ImportKind;
  line: number;
}

export interface Source {
  /** From the repository's root, with forward slashes: "src/job/outcome.ts". */
  path: string;
  tree: ts.SourceFile;
  imports: Import[];
}

export function parseSource(path: string, code: string): Source {
  const tree = ts.createSourceFile(path, code, ts.ScriptTarget.Latest, true);
  const imports: Import[] = [];
  visit(tree, (node) => {
    const found = importOf(node);
    if (found) imports.push({ ...found, target: resolve(path, found.specifier), line: lineOf(tree, node) });
  });
  return { path, tree, imports };
}

/** All of src/, or of another folder of the repository. */
export function readSources(folder = "src"): Source[] {
  return listFiles(folder)
    .filter((path) => path.endsWith(".ts"))
    .map((path) => parseSource(path, readFileSync(join(root, path), "utf8")));
}

/** Every file below a folder of the repository, sorted. */
export function listFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .toSorted();
}

export function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node);
  ts.forEachChild(node, (child) => visit(child, look));
}

export function lineOf(tree: ts.SourceFile, node: ts.Node): number {
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
}

function importOf(node: ts.Node): { specifier: string; kind: ImportKind } | null {
  // `import { type A }` stays at run time (verbatimModuleSyntax); only `import type` and `export type` are erased.
  if (ts.isImportDeclaration(node)) {
    const erased = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
    return named(node.moduleSpecifier, erased ? "type" : "value");
  }
  if (ts.isExportDeclaration(node)) return named(node.moduleSpecifier, node.isTypeOnly ? "type" : "value");
  if (ts.isImportTypeNode(node)) {
    return ts.isLiteralTypeNode(node.argument) ? named(node.argument.literal, "type") : null;
  }
  if (ts.isCallExpression(node)) {
    const loads =
      node.expression.kind === ts.SyntaxKind.ImportKeyword ||
      (ts.isIdentifier(node.expression) && node.expression.text === "require");
    return loads ? named(node.arguments[0], "value") : null;
  }
  if (ts.isNewExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === "URL") {
    const [path, base] = node.arguments ?? [];
    if (path && base?.getText() === "import.meta.url" && ts.isStringLiteralLike(path) && /\.[jt]s$/.test(path.text)) {
      return named(path, "thread");
    }
  }
  return null;
}

function named(specifier: ts.Node | undefined, kind: ImportKind): { specifier: string; kind: ImportKind } | null {
  return specifier && ts.isStringLiteralLike(specifier) ? { specifier: specifier.text, kind } : null;
}

/** The file of ours that a specifier means. The package's own name and its `#src/` are other ways to say the same. */
function resolve(from: string, specifier: string): string | null {
  if (specifier === "holdfast") return "src/index.ts";
  let path: string | null = null;
  if (specifier.startsWith(".")) path = posix.join(posix.dirname(from), specifier);
  else if (specifier.startsWith("#src/")) path = posix.join("src", specifier.slice("#src/".length));
  else if (specifier.startsWith("holdfast/")) path = posix.join("src", specifier.slice("holdfast/".length), "index.ts");
  return path?.startsWith("src/") ? path.replace(/\.js$/, ".ts") : null;
}
