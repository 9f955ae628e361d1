// The API reference: a page of Markdown for each door of the package, made of its declarations and the comments on them, as
// an editor shows them. Read from what is published (dist), so that it is true for who installs it.
import ts from "typescript";
import { packageDoors } from "./doors.mjs";
import { slugOf } from "./pages.mjs";

const OPTIONS = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  allowImportingTsExtensions: true,
  noEmit: true,
  noLib: true,
  types: [],
};

/** In this order on a page. */
const KINDS = [
  ["Functions", ts.SymbolFlags.Function],
  ["Classes", ts.SymbolFlags.Class],
  ["Values", ts.SymbolFlags.Variable],
  ["Types", ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias],
];

/** A value whose type was inferred is pages long, and nobody reads it. */
const MOST_LINES = 20;

/** `names`: what a page has a heading for. */
export function referencePages() {
  const doors = packageDoors();
  const program = ts.createProgram(
    doors.map(({ types }) => types),
    OPTIONS,
  );
  return doors.map(({ door, types }) => ({
    path: `reference/${door.replaceAll("/", "-")}.md`,
    ...pageOf(door, program.getSourceFile(types), program.getTypeChecker()),
  }));
}

function pageOf(door, source, checker) {
  const module = checker.getSymbolAtLocation(source);
  const symbols = checker
    .getExportsOfModule(module)
    .map((exported) => ({
      name: exported.name,
      symbol: exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported,
    }))
    .sort((one, other) => one.name.localeCompare(other.name, "en"));
  const names = symbols.map(({ name }) => name);
  const groups = KINDS.map(([title, flags]) => ({ title, found: take(symbols, flags) })).filter(
    ({ found }) => found.length > 0,
  );
  const parts = [
    `# ${door}`,
    `What \`${door}\` exports: every symbol with its declaration and the comments on it, as the package has them.`,
    ...groups.map(
      ({ title, found }) => `**${title}**: ${found.map(({ name }) => `[${name}](#${slugOf(name)})`).join(", ")}`,
    ),
    ...groups.flatMap(({ title, found }) => [`## ${title}`, ...found.map((each) => entryOf(each, checker))]),
    "",
  ];
  return { names, text: parts.join("\n\n") };
}

/** Takes those of a kind out of the list: a class is also a type. */
function take(symbols, flags) {
  const found = symbols.filter(({ symbol }) => symbol.flags & flags);
  for (const each of found) symbols.splice(symbols.indexOf(each), 1);
  return found;
}

function entryOf({ name, symbol }, checker) {
  const comment = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  const examples = symbol
    .getJsDocTags(checker)
    .filter((tag) => tag.name === "example")
    .map((tag) => ts.displayPartsToString(tag.text));
  const code = (symbol.declarations ?? []).map((declaration) => declarationOf(name, declaration)).join("\n");
  return [`### ${name}`, comment, `\`\`\`ts\n${code}\n\`\`\``, ...examples].filter((part) => part !== "").join("\n\n");
}

function declarationOf(name, declaration) {
  const isVariable = ts.isVariableDeclaration(declaration);
  const statement = isVariable ? declaration.parent.parent : declaration;
  const text = statement
    .getText()
    .replace(/^export (declare )?/, "")
    .replaceAll(/^( +)/gm, (indent) => " ".repeat(indent.length / 2));
  return isVariable && text.split("\n").length > MOST_LINES ? `const ${name}: …` : text;
}
