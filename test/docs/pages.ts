// The pages that users read, and the code blocks in them. A block is run unless a comment right before it says why not:
//
//   <!-- not run: it needs … -->         checked by the compiler, not run
//   <!-- not checked: it is a piece -->  neither
//   <!-- also run ts: … -->              not a block: code that readers do not see and the blocks after it need (also sh)
//   <!-- pieces of test/long -->         anywhere on a page: its ts and js blocks are lines of tests in that folder
//   <!-- run by test/moving -->          anywhere on a page: tests there take its blocks from the page and run them
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

export type Language = "ts" | "js" | "sh";

export interface Block {
  /** Of its first line of code. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** Readers do not see it. */
  readonly hidden: boolean;
  /** The reason, where it is not run. */
  readonly notRun: string | undefined;
  readonly notChecked: string | undefined;
}

export interface Page {
  readonly path: string;
  readonly text: string;
  readonly blocks: Block[];
  /** The folder of the tests that its blocks are pieces of. */
  readonly piecesOf: string | undefined;
  /** The tests that run its blocks. */
  readonly runBy: string | undefined;
}

export function pagePaths(): string[] {
  const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".md") && !name.startsWith("decisions"),
  );
  const apps = readdirSync(join(root, "apps"));
  return ["README.md", ...pages.map((name) => `docs/${name}`), ...apps.map((name) => `apps/${name}/README.md`)];
}

export const readPages = (): Page[] =>
  pagePaths().map((path) => parsePage(path, readFileSync(join(root, path), "utf8")));

export function parsePage(path: string, text: string): Page {
  const blocks: Block[] = [];
  let marker: { notRun?: string; notChecked?: string } = {};
  const parts = /^<!-- also run (ts|sh):\n(.*?)^-->$|^<!--(.*?)-->$|^```(\w*)\n(.*?)^```$|^\S.*?$/gms;
  for (const found of text.matchAll(parts)) {
    const [, hiddenLanguage, hiddenCode, comment, language, code] = found as (string | undefined)[];
    const line = text.slice(0, found.index).split("\n").length + 1;
    if (hiddenLanguage !== undefined) {
      blocks.push({ line, language: hiddenLanguage, code: hiddenCode!, hidden: true, ...NOTHING });
    } else if (comment !== undefined) {
      const [, notRun] = /^ not run: (.+) $/s.exec(comment) ?? [];
      const [, notChecked] = /^ not checked: (.+) $/s.exec(comment) ?? [];
      marker = { ...(notRun && { notRun }), ...(notChecked && { notChecked }) };
      continue;
    } else if (code !== undefined) {
      blocks.push({ line, language: language!, code, hidden: false, ...NOTHING, ...marker });
    }
    marker = {};
  }
  const [piecesOf, runBy] = ["pieces of", "run by"].map(
    (mark) => new RegExp(`^<!-- ${mark} (\\S+) -->$`, "m").exec(text)?.[1],
  );
  return { path, text, blocks, piecesOf, runBy };
}

const NOTHING = { notRun: undefined, notChecked: undefined };
