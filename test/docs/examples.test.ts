// What the pages show is true: every ts block is checked by the compiler, every block that can run is run as it stands, in a
// folder like a user's project, on a real PostgreSQL (or on whatever it opens itself). pages.ts says how a block is marked
// that cannot.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { QUICK_ENGINE } from "../support/quick-engine.ts";
import { checkTypes } from "./check-types.ts";
import { type Page, parsePage, readPages, root } from "./pages.ts";
import { PRELUDE, toProgram, transpile } from "./program.ts";
import { makeProject, type Project } from "./project.ts";
import { makeScene, type Scene } from "./scene.ts";

const pages = readPages();
let project: Project;
beforeAll(() => {
  project = makeProject();
});
afterAll(() => project.remove());

/** Without indentation and empty lines, which are all that a piece of a test may change. */
const plain = (code: string): string =>
  `\n${code
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n")}\n`;

function testsIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs)$/.test(entry.name))
    .map((entry) => plain(readFileSync(join(entry.parentPath, entry.name), "utf8")));
}

/** Blocks of which nobody would notice that they are wrong. */
function unheld(page: Page): string[] {
  const tests = page.piecesOf === undefined ? [] : testsIn(page.piecesOf);
  return page.blocks.flatMap((block) => {
    const at = (what: string): string[] => [`${page.path}:${block.line}  ${what}`];
    if (block.hidden || block.notRun !== undefined || block.notChecked !== undefined) return [];
    if (page.runBy !== undefined) return existsSync(join(root, page.runBy)) ? [] : at(`there is no ${page.runBy}`);
    if (page.piecesOf !== undefined && ["ts", "js", "sql"].includes(block.language)) {
      // SQL stands in tests among other texts.
      if (block.language === "sql" || tests.some((code) => code.includes(plain(block.code)))) return [];
      return at(`is not a piece of a test in ${page.piecesOf}`);
    }
    if (["ts", "sh", "mermaid", "yaml"].includes(block.language)) return [];
    if (block.language === "json") {
      try {
        JSON.parse(block.code);
        return [];
      } catch (error) {
        return at(`is not JSON: ${String(error)}`);
      }
    }
    return at(`"${block.language}" is not run: say why in a comment before it (<!-- not run: … -->)`);
  });
}

test("every block is run, or says why not", () => {
  const problems = pages.flatMap(unheld);
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
  const blocks = pages.flatMap((page) => page.blocks).filter(({ language }) => ["ts", "js", "sh"].includes(language));
  expect(blocks.length).toBeGreaterThan(80);
});

test("the compiler has nothing against any block", { timeout: 120_000 }, () => {
  const problems = checkTypes(pages, project);
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

/** The page's own lines, where a stack trace has the program's. */
function withPageLines(page: Page, lines: number[], error: unknown): Error {
  const text = error instanceof Error ? error.message : String(error);
  return new Error(
    text.replace(/page\.ts:(\d+)/g, (_, line: string) => `${page.path}:${lines[Number(line) - 1] ?? "?"}`),
  );
}

/** jiti loads it, as it is. */
const CONFIG = "holdfast.config.ts";

const toRun = pages
  .map((page) => ({ page, program: toProgram(page, "run"), hasSh: page.blocks.some(isShRun) }))
  .filter(({ program, hasSh }) => program.main !== undefined || program.files.length > 0 || hasSh);

describe.each(toRun.map((each) => [each.page.path, each] as const))("%s", (_, { page, program, hasSh }) => {
  let scene: Scene;
  let own: Project;
  beforeAll(async () => {
    own = makeProject();
    scene = await makeScene({ own, withServer: hasSh });
  });
  afterAll(async () => {
    await scene.close();
    own.remove();
  });

  if (program.files.length > 0)
    test("its files can be loaded", { timeout: 90_000 }, async () => {
      for (const { name, code } of program.files) {
        own.write(name, code);
        if (name !== CONFIG) own.write(name.replace(/\.ts$/, ".js"), transpile(name, code));
      }
      for (const { name } of program.files) {
        if (name === CONFIG) await own.run("holdfast", ["config", "print"], scene.env);
        else await own.run(process.execPath, [...QUICK_ENGINE, name.replace(/\.ts$/, ".js")], scene.env);
      }
    });

  if (program.main !== undefined)
    test("its ts blocks run", { timeout: 90_000 }, async () => {
      own.write("prelude.mjs", PRELUDE);
      own.write("page.mjs", transpile("page.ts", program.main!));
      try {
        await own.run(
          process.execPath,
          [...QUICK_ENGINE, "--enable-source-maps", "--import", "./prelude.mjs", "page.mjs"],
          scene.env,
        );
      } catch (error) {
        throw withPageLines(page, program.lines, error);
      }
    });

  if (hasSh)
    test("its sh blocks run", { timeout: 90_000 }, async () => {
      const script = page.blocks
        .filter(isShRun)
        .map(({ code, line }) => `: ${page.path}:${line}\n${code}`)
        .join("\n");
      own.write("page.sh", `set -euxo pipefail\n${script.replaceAll("127.0.0.1:7070", scene.address)}`);
      await own.run("bash", ["page.sh"], scene.shEnv);
    });
});

function isShRun(block: Page["blocks"][number]): boolean {
  return block.language === "sh" && block.notRun === undefined && block.notChecked === undefined;
}

describe("a page that is wrong is noticed", () => {
  const page = (text: string): Page => parsePage("docs/wrong.md", text);

  test("a block in a language that nobody runs, and one that is no piece of a test", () => {
    expect(unheld(page("a\n\n```js\nx()\n```\n"))).toEqual([expect.stringContaining('docs/wrong.md:4  "js"')]);
    expect(unheld(page("<!-- not run: no reason -->\n\n```js\nx()\n```\n"))).toEqual([]);
    expect(unheld(page("<!-- not run: above another -->\n\ntext\n\n```js\nx()\n```\n"))).toHaveLength(1);
    expect(unheld(page("<!-- pieces of test/docs -->\n\n```ts\nawait nobody();\n```\n"))).toHaveLength(1);
    expect(unheld(page("```json\n{a}\n```\n"))).toHaveLength(1);
  });

  test("a block that does not compile", { timeout: 60_000 }, () => {
    const wrong = page(
      '# a\n\n```ts\nimport { open } from "holdfast";\nconst hf = await open({ databas: "x" });\n```\n',
    );
    expect(checkTypes([wrong], project)).toEqual([expect.stringMatching(/^docs\/wrong.md:5 .*databas/)]);
  });

  test("a block that prints something else, or throws", async () => {
    const wrong = page("```ts\nconst a = 1;\n```\n\n```ts\nconsole.log(a + 1); // → 3\n```\n");
    const { main, lines } = toProgram(wrong, "run");
    project.write("prelude.mjs", PRELUDE);
    project.write("page.mjs", transpile("page.ts", main!));
    const failure = await project
      .run(process.execPath, ["--enable-source-maps", "--import", "./prelude.mjs", "page.mjs"], {})
      .then(
        () => undefined,
        (error: unknown) => withPageLines(wrong, lines, error),
      );
    expect(failure?.message).toContain("The page says 3, and it was 2");
    expect(failure?.message).toContain("docs/wrong.md:6");
  });
});
