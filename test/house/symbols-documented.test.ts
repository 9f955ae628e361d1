// Every symbol that a door of the package exports says what it is: a comment on its declaration, which editors show and the
// reference is made of. So do the members of those that users call or fill in, unless the name alone says it all.
import ts from "typescript";
import { expect, test } from "vitest";
import { packageDoors } from "../../scripts/docs/doors.mjs";
import { root } from "../../scripts/docs/pages.mjs";

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  allowImportingTsExtensions: true,
  noEmit: true,
  noLib: true,
  types: [],
};

/** "src/file.ts:line  door exports name …" for each exported symbol without a comment. */
function undocumented(files: string[], host = ts.createCompilerHost(OPTIONS)): string[] {
  const program = ts.createProgram(files, OPTIONS, host);
  const checker = program.getTypeChecker();
  const problems = new Set<string>();
  for (const file of files) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!);
    for (const exported of module ? checker.getExportsOfModule(module) : []) {
      const symbol = (exported.flags & ts.SymbolFlags.Alias) === 0 ? exported : checker.getAliasedSymbol(exported);
      const [declaration] = symbol.declarations ?? [];
      const source = declaration?.getSourceFile();
      // What another package declares is documented there.
      if (!declaration || !source || source.fileName.includes("node_modules")) continue;
      if (ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim() !== "") continue;
      const { line } = source.getLineAndCharacterOfPosition(declaration.getStart());
      problems.add(`${source.fileName.replace(`${root}/`, "")}:${line + 1}  ${exported.name} has no comment`);
    }
  }
  return [...problems];
}

test("every symbol of every door has a comment", { timeout: 60_000 }, () => {
  const files = packageDoors().map(({ source }) => source);
  expect(files.length).toBeGreaterThan(3);
  const problems = undocumented(files);
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

test("a symbol without a comment is noticed, also through a re-export", () => {
  const texts = new Map([
    ["/door.ts", 'export { a, b as c } from "./room.ts";\n/** Said. */\nexport interface D { e: 1 }'],
    ["/room.ts", "/** Said. */ export const a = 1;\nexport function b(): void {}"],
  ]);
  const host = ts.createCompilerHost(OPTIONS);
  host.fileExists = (name) => texts.has(name);
  host.readFile = (name) => texts.get(name);
  host.getSourceFile = (name, version) => {
    const text = texts.get(name);
    return text === undefined ? undefined : ts.createSourceFile(name, text, version);
  };
  expect(undocumented(["/door.ts"], host)).toEqual(["/room.ts:2  c has no comment"]);
});
