// The rules of the house, each a function from sources to problems ("file:line  what is wrong"). They read only what
// they are given: imports.test.ts feeds them src/, imports-can-fail.test.ts feeds each an example that breaks it.
import ts from "typescript";
import { type Import, lineOf, type Source, visit } from "./sources.ts";

/** From the bottom up. An import goes down, or stays in its room; rooms on one level do not import each other. */
const LEVELS = [
  ["shared"],
  ["job", "options", "guarded-fetch"],
  ["db", "metrics"],
  ["store", "migrate"],
  ["worker", "janitor", "batches", "inbox"],
  ["client"],
  ["apps"],
  ["http", "testing"],
  ["cli"],
  ["index"],
];

/** Two files at the top of src/ that belong to a room with another name. */
const ROOM_OF_FILE: Record<string, string> = { errors: "shared", open: "client" };

/** docs/decisions/0006: open() refuses an unnamed embedded database in production. */
const READS_NODE_ENV = new Set(["src/open.ts"]);

const BUCKETS = /^(utils?|helpers?|common|libs?|types?|interfaces?|core|misc)$/;

function roomOf(path: string): string {
  const first = path.split("/")[1] ?? "";
  if (!first.endsWith(".ts")) return first;
  const name = first.slice(0, -".ts".length);
  return ROOM_OF_FILE[name] ?? name;
}

function levelOf(room: string): number {
  return LEVELS.findIndex((rooms) => rooms.includes(room));
}

function at(source: Source, line: number, what: string): string {
  return `${source.path}:${line}  ${what}`;
}

export function roomsWithoutLevel(sources: Source[]): string[] {
  return sources
    .filter((source) => levelOf(roomOf(source.path)) < 0)
    .map((source) =>
      at(source, 1, `the room "${roomOf(source.path)}" has no level: give it one in test/house/rules.ts`),
    );
}

export function upwardImports(sources: Source[]): string[] {
  return eachImport(sources, (source, { specifier, target }) => {
    if (target === null) return null;
    const [from, to] = [roomOf(source.path), roomOf(target)];
    if (from === to || levelOf(to) < levelOf(from)) return null;
    const where = levelOf(to) === levelOf(from) ? "beside it" : "above it";
    return `"${from}" imports "${to}" (${specifier}), which is ${where}: imports go down or stay in the room`;
  });
}

export function indexImports(sources: Source[]): string[] {
  return eachImport(sources, (_, { target }) =>
    target === "src/index.ts" ? "imports src/index.ts: it is the front door, import the file that has the thing" : null,
  );
}

export function driverImports(sources: Source[]): string[] {
  return eachImport(sources, (source, { specifier }) =>
    /^(pg|pg-[^/]+|@types\/pg|@electric-sql\/[^/]+)(\/|$)/.test(specifier) && roomOf(source.path) !== "db"
      ? `imports "${specifier}": only db/ knows the database drivers, their types included`
      : null,
  );
}

/** Cycles through imports that exist at run time; with `types`, through any import. */
export function importCycles(sources: Source[], { types }: { types: boolean }): string[] {
  const edges = new Map<string, Import[]>();
  for (const source of sources) {
    edges.set(
      source.path,
      source.imports.filter(({ kind }) => kind === "value" || (types && kind === "type")),
    );
  }
  const problems: string[] = [];
  const reported = new Set<string>();
  for (const source of sources) {
    if (reported.has(source.path)) continue;
    const cycle = shortestCycle(source.path, edges);
    if (!cycle) continue;
    for (const step of cycle) reported.add(step.from);
    const steps = cycle.map((step) => `${step.from}:${step.line}`);
    problems.push(`${[...steps, source.path].join(" -> ")}  imports that come back to where they began`);
  }
  return problems;
}

interface Step {
  from: string;
  line: number;
}

function shortestCycle(start: string, edges: Map<string, Import[]>): Step[] | null {
  const seen = new Set<string>();
  let frontier: { path: string; steps: Step[] }[] = [{ path: start, steps: [] }];
  while (frontier.length > 0) {
    const next: typeof frontier = [];
    for (const { path, steps } of frontier) {
      for (const { target, line } of edges.get(path) ?? []) {
        if (target === null) continue;
        const walked = [...steps, { from: path, line }];
        if (target === start) return walked;
        if (seen.has(target)) continue;
        seen.add(target);
        next.push({ path: target, steps: walked });
      }
    }
    frontier = next;
  }
  return null;
}

export function bucketNames(sources: Source[]): string[] {
  return sources.flatMap((source) =>
    source.path
      .split("/")
      .slice(1)
      .map((part) => part.replace(/\..*$/, ""))
      .filter((name) => BUCKETS.test(name))
      .map((name) => at(source, 1, `"${name}" says nothing: name the file for the one thing in it`)),
  );
}

// SQL ---------------------------------------------------------------------------------------------------------------

/** Where a statement may begin: not in the middle of a sentence. */
const BEGIN = String.raw`(?:^|[;()]|\bas\s|\bexplain\b[^;]{0,60}?\s)\s*`;
/** A name, or an interpolated one; not a word that only prose puts there. */
const NAME = String.raw`(?!(?:the|an?|your|its?|this|that|these|each|any|every|one|which|here|there)\s)["\w(]`;

/** Statements that read or change tables: store/ and migrate/ only. */
const TABLE_STATEMENTS = [
  String.raw`${BEGIN}with\s+(recursive\s+)?["\w]+\s*(\([^)]*\)\s*)?as\s+((not\s+)?materialized\s+)?\(`,
  String.raw`${BEGIN}select\s[\s\S]*?\bfrom\s+(only\s+|lateral\s+)?${NAME}`,
  String.raw`${BEGIN}(insert|merge)\s+into\s+${NAME}`,
  String.raw`${BEGIN}update\s+(only\s+)?["\w.]+(\s+(as\s+)?\w+)?\s+set\s+(\(|["\w.]+\s*=|_)`,
  String.raw`${BEGIN}delete\s+from\s+(only\s+)?${NAME}`,
  String.raw`${BEGIN}(create|alter|drop)\s+((or\s+replace|unique|unlogged|temp|temporary|materialized|foreign|event)\s+)*` +
    String.raw`(table|index|schema|view|type|function|procedure|sequence|extension|trigger|database|role)\s+${NAME}`,
  String.raw`${BEGIN}(truncate|lock)\s+table\s+${NAME}`,
  String.raw`${BEGIN}copy\s+["\w.]+\s*(\([^)]*\)\s*)?(from|to)\s+(stdin|stdout)`,
  String.raw`\bfor\s+(no\s+key\s+)?(update|share)(\s+of\s+\w+)?\s+(skip\s+locked|nowait)`,
  String.raw`\bon\s+conflict\s+(\(|do\s)`,
  String.raw`\b(where|and|values|any|set|limit)\b[^.]{0,40}\$\d`,
].map((pattern) => new RegExp(pattern));

/** Statements about the session only: db/ may have them too. */
const SESSION_STATEMENTS = [
  String.raw`${BEGIN}select\s+(\$?\d+\s*(;|::|as\s|$)|[\w.]+\()`,
  String.raw`^\s*set\s+(local|session)\s+["\w.]+\s*(=|\sto\s)`,
  String.raw`^\s*(listen|unlisten|notify)\s+("|_\s*(,|;|$))`,
  String.raw`^\s*(begin|start\s+transaction)\s+(isolation|read|transaction|work)\b`,
].map((pattern) => new RegExp(pattern));

/** Words that are SQL only where they are handed to a connection. */
const SESSION_WORD =
  /^\s*(begin|start|commit|end|rollback|abort|savepoint|release|listen|unlisten|notify|set|reset|show|discard|vacuum|analyze|checkpoint)\b/;

export function sqlOutsideStore(sources: Source[]): string[] {
  return sources.flatMap((source) => {
    const room = roomOf(source.path);
    if (room === "store" || room === "migrate") return [];
    return textsOf(source).flatMap(({ node, text, handedToConnection }) => {
      const plain = plainSql(text);
      const line = lineOf(source.tree, node);
      const shown = JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 60));
      if (TABLE_STATEMENTS.some((pattern) => pattern.test(plain))) {
        return [at(source, line, `SQL ${shown}: SQL text lives in store/ and migrate/`)];
      }
      const isSession =
        SESSION_STATEMENTS.some((pattern) => pattern.test(plain)) || (handedToConnection && SESSION_WORD.test(plain));
      return isSession && room !== "db"
        ? [at(source, line, `SQL ${shown}: session statements live in db/, all other SQL in store/ and migrate/`)]
        : [];
    });
  });
}

/** Without SQL comments, keywords in lower case. A capitalised word ("Select one from …") begins a sentence: kept. */
function plainSql(text: string): string {
  return text
    .replace(/--[^\n]*/g, " ")
    .replace(/\/\*[\s\S]*?\*\//g, " ")
    .replace(/\b[A-Z]+\b/g, (word) => word.toLowerCase());
}

interface Text {
  node: ts.Node;
  text: string;
  /** It is the first argument of something.query(…) or something.script(…). */
  handedToConnection: boolean;
}

/** Every string, template and sum of strings in the code, with `_` where a value is interpolated. */
function textsOf(source: Source): Text[] {
  const texts: Text[] = [];
  visit(source.tree, (node) => {
    if (!isText(node) || isText(node.parent)) return;
    if (ts.isImportDeclaration(node.parent) || ts.isExportDeclaration(node.parent)) return;
    texts.push({ node, text: textOf(node), handedToConnection: isHandedToConnection(node) });
  });
  return texts;
}

function isText(node: ts.Node): boolean {
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  return (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken &&
    (isText(node.left) || isText(node.right))
  );
}

function textOf(node: ts.Node): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map((span) => `_${span.literal.text}`).join("");
  }
  return ts.isBinaryExpression(node) && isText(node) ? textOf(node.left) + textOf(node.right) : "_";
}

function isHandedToConnection(node: ts.Node): boolean {
  const call = ts.isTaggedTemplateExpression(node.parent) ? node.parent.parent : node.parent;
  return (
    ts.isCallExpression(call) &&
    ts.isPropertyAccessExpression(call.expression) &&
    ["query", "script"].includes(call.expression.name.text)
  );
}

// The process -------------------------------------------------------------------------------------------------------

/** Where the time of day is meant: shown to people, put into ids, or compared with a time that somebody stored. */
const READS_TIME_OF_DAY = new Set([
  "src/shared/uuid.ts",
  "src/client/clock-skew.ts",
  "src/client/tokens.ts",
  // How long until a time of the database: a hint for whoever waits, who polls as well.
  "src/client/client.ts",
  "src/worker/worker.ts",
  "src/testing/run-job.ts",
]);

/** A clock of the day can be set; a span that was measured by it is then wrong by as much as it was set. */
export function spansByTimeOfDay(sources: Source[]): string[] {
  return sources.flatMap((source) => {
    if (roomOf(source.path) === "cli" || READS_TIME_OF_DAY.has(source.path)) return [];
    const problems: string[] = [];
    visit(source.tree, (node) => {
      if (!ts.isPropertyAccessExpression(node) || node.getText(source.tree) !== "Date.now") return;
      const line = lineOf(source.tree, node);
      problems.push(at(source, line, "Date.now: spans and deadlines are measured by performance.now()"));
    });
    return problems;
  });
}

/** What belongs to whoever owns the process. `process.pid`, `process.hrtime` and the like are facts anyone may read. */
const OWNERS_ONLY = new Set(
  (
    "env argv stdin stdout stderr exit exitCode reallyExit abort " +
    "on once addListener prependListener prependOnceListener"
  ).split(" "),
);

export function processOutsideCli(sources: Source[]): string[] {
  const only = "only cli/ reads the environment, handles signals, prints and exits";
  return sources.flatMap((source) => {
    if (roomOf(source.path) === "cli" || READS_NODE_ENV.has(source.path)) return [];
    const problems: string[] = [];
    for (const { specifier, line } of source.imports) {
      if (/^(node:)?(process|console)$/.test(specifier))
        problems.push(at(source, line, `imports "${specifier}": ${only}`));
    }
    visit(source.tree, (node) => {
      const what = globalUse(node);
      if (what) problems.push(at(source, lineOf(source.tree, node), `${what}: ${only}`));
    });
    return problems;
  });
}

function globalUse(node: ts.Node): string | null {
  if (!ts.isIdentifier(node) || (node.text !== "process" && node.text !== "console")) return null;
  let expression: ts.Node = node;
  if (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) {
    if (!ts.isIdentifier(node.parent.expression) || node.parent.expression.text !== "globalThis") return null;
    expression = node.parent;
  } else if (isOnlyAName(node)) {
    return null;
  }
  if (node.text === "console") return "console";
  const use = expression.parent;
  if (ts.isPropertyAccessExpression(use)) return OWNERS_ONLY.has(use.name.text) ? `process.${use.name.text}` : null;
  if (ts.isElementAccessExpression(use) && ts.isStringLiteralLike(use.argumentExpression)) {
    return OWNERS_ONLY.has(use.argumentExpression.text) ? `process.${use.argumentExpression.text}` : null;
  }
  if (ts.isTypeOfExpression(use)) return null;
  return "process handed on as a value";
}

/** The name of a property, method, parameter or type: not the global. */
function isOnlyAName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isShorthandPropertyAssignment(parent)) return false;
  if (ts.isTypeQueryNode(parent) || ts.isQualifiedName(parent) || ts.isTypeReferenceNode(parent)) return true;
  if (ts.isBindingElement(parent)) return parent.initializer !== node;
  return "name" in parent && parent.name === node;
}

// -------------------------------------------------------------------------------------------------------------------

function eachImport(sources: Source[], judge: (source: Source, found: Import) => string | null): string[] {
  return sources.flatMap((source) =>
    source.imports.flatMap((found) => {
      const what = judge(source, found);
      return what === null ? [] : [at(source, found.line, what)];
    }),
  );
}
