// The ts blocks of all pages, in one run of the compiler, with the options of a strict project.
import ts from "typescript";
import { dirname, join } from "node:path";
import type { Page } from "./pages.ts";
import { toProgram } from "./program.ts";
import type { Project } from "./project.ts";

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.es2024.string.d.ts", "lib.esnext.disposable.d.ts"],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ["node"],
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
  allowImportingTsExtensions: true,
};

/** The libraries, which are read once. */
const others = new Map<string, ts.SourceFile | undefined>();

/** "page:line  what is wrong". */
export function checkTypes(pages: Page[], project: Project): string[] {
  const texts = new Map<string, { page: Page; code: string; lineOf(line: number): number }>();
  pages.forEach((page, index) => {
    const { main, lines, files } = toProgram(page, "check");
    const folder = join(project.folder, `page-${index}`);
    if (main !== undefined) {
      const code = main.replaceAll("(globalThis as any).expectOutput", "console.log");
      texts.set(join(folder, "page.ts"), { page, code, lineOf: (line) => lines[line] ?? 0 });
    }
    for (const { name, code, line: first } of files) {
      // What a page imports from apps/ is linked into the project's own folder.
      const placed = code.replaceAll('"./apps/', '"../apps/');
      texts.set(join(folder, name), { page, code: placed, lineOf: (line) => first + line });
    }
  });
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile, getSourceFile } = host;
  const folders = new Set([...texts.keys()].map((name) => dirname(name)));
  host.directoryExists = (name) => folders.has(name) || ts.sys.directoryExists(name);
  host.fileExists = (name) => texts.has(name) || fileExists(name);
  host.readFile = (name) => texts.get(name)?.code ?? readFile(name);
  host.getSourceFile = (name, version, ...rest) => {
    const text = texts.get(name);
    if (text) return ts.createSourceFile(name, text.code, version);
    if (!others.has(name)) others.set(name, getSourceFile(name, version, ...rest));
    return others.get(name);
  };
  host.getCurrentDirectory = () => project.folder;
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  return [...texts].flatMap(([name, { page, lineOf }]) => {
    const source = program.getSourceFile(name)!;
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((found) => {
      const { line } = source.getLineAndCharacterOfPosition(found.start ?? 0);
      return `${page.path}:${lineOf(line)}  ${ts.flattenDiagnosticMessageText(found.messageText, " ")}`;
    });
  });
}
