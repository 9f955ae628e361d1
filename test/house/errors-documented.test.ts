// docs/errors.md and src/errors.ts list the same codes. Held in both directions, so that neither can run ahead.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listFiles, root } from "./sources.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** Code → class. */
function codesInSource(code: string): Map<string, string> {
  const classes = code.matchAll(/class (\w+) extends HoldfastError \{[^}]*?readonly code = "(HOLDFAST_\w+)"/g);
  return new Map([...classes].map(([, name = "", found = ""]) => [found, name]));
}

/** Code → text of its section. */
function sectionsInDocs(text: string): Map<string, string> {
  const sections = text.split(/^## /m).slice(1);
  return new Map(
    sections.flatMap((section) => {
      const code = /^`(HOLDFAST_\w+)`/.exec(section)?.[1];
      return code === undefined ? [] : [[code, section]];
    }),
  );
}

/** What is wrong with the pair, one line each. */
function differences(source: string, docs: string): string[] {
  const codes = codesInSource(source);
  const sections = sectionsInDocs(docs);
  const problems: string[] = [];
  for (const [, code = ""] of source.matchAll(/readonly code = "([^"]*)"/g)) {
    if (!codes.has(code)) problems.push(`src/errors.ts: "${code}" is not HOLDFAST_… in a class of its own`);
  }
  for (const [code, name] of codes) {
    const section = sections.get(code);
    if (section === undefined) {
      problems.push(`docs/errors.md: no section "## \`${code}\`" (src/errors.ts, class ${name})`);
      continue;
    }
    for (const part of [`\`${name}\``, "**Meaning.**", "**Typical cause.**", "**What to do.**"]) {
      if (!section.includes(part)) problems.push(`docs/errors.md: the section of ${code} has no ${part}`);
    }
  }
  for (const [code] of new Map([...docs.matchAll(/\bHOLDFAST_\w+/g)].map((match) => [match[0], true]))) {
    if (!codes.has(code)) problems.push(`docs/errors.md: ${code} is not in src/errors.ts`);
  }
  return problems;
}

test("every error code is documented, and every documented code is real", () => {
  const problems = differences(read("src/errors.ts"), read("docs/errors.md"));
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
  expect(codesInSource(read("src/errors.ts")).size).toBeGreaterThan(0);
});

test("no two errors share a code", () => {
  const codes = [...read("src/errors.ts").matchAll(/readonly code = "([^"]*)"/g)].map(([, code]) => code);
  expect(codes).toEqual([...new Set(codes)]);
});

test("codes are declared in src/errors.ts only", () => {
  const elsewhere = listFiles("src").filter(
    (path) => path !== "src/errors.ts" && /\bcode(: string)? = "HOLDFAST_/.test(read(path)),
  );
  expect(elsewhere).toEqual([]);
});

test("a missing section, a missing part and an invented code are each reported", () => {
  const source = 'export class Gone extends HoldfastError {\n  readonly code = "HOLDFAST_GONE";\n}\n';
  const docs = "## `HOLDFAST_GONE`\nClass `Gone`. **Meaning.** a **Typical cause.** b **What to do.** c\n";
  expect(differences(source, docs)).toEqual([]);
  expect(differences(source, "")).toEqual([expect.stringContaining("no section")]);
  expect(differences(source, docs.replace("**What to do.**", ""))).toEqual([expect.stringContaining("What to do")]);
  expect(differences(source, `${docs}See HOLDFAST_OTHER.`)).toEqual([expect.stringContaining("HOLDFAST_OTHER")]);
  expect(differences(source.replace("HOLDFAST_GONE", "GONE"), "")).toEqual([expect.stringContaining('"GONE"')]);
});
