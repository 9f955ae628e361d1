// Commands that pages show exist: `holdfast …` with its words and flags, in blocks and in the middle of sentences, and
// `npm run …` as a script.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { beforeAll, expect, test } from "vitest";
import { readPages, root } from "./pages.ts";

const program = new Command("holdfast");
beforeAll(async () => {
  const folder = join(root, "dist/cli/commands");
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".js"))) {
    const module = (await import(join(folder, file))) as Record<string, unknown>;
    const add = Object.entries(module).find(([name]) => /^add[A-Z]\w*$/.test(name))?.[1];
    const isWhole = file !== "options.js" && !/^(batches|inbox)-/.test(file);
    if (isWhole && typeof add === "function") (add as (to: Command) => void)(program);
  }
});

/** The commands that apps bring. */
const OF_APPS = readdirSync(join(root, "apps")).flatMap((app) =>
  [
    ...readdirSync(join(root, "apps", app, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(root, "apps", app, "src", name), "utf8"))
      .join("\n")
      .matchAll(/name: "([a-z]+) [a-z-]+"/g),
  ].map((match) => match[1]!),
);

/** What is wrong with one command line, without `holdfast`; undefined: nothing. */
function wrongIn(line: string): string | undefined {
  const words = line
    .trim()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (OF_APPS.includes(words[0] ?? "") || words[0] === "guests") return undefined;
  let command = program;
  while (words.length > 0) {
    const next = command.commands.find((candidate) => candidate.name() === words[0]);
    if (!next) break;
    command = next;
    words.shift();
  }
  if (command === program && words.length > 0 && !/^[-<…[A-Z]/.test(words[0]!)) return `no command "${words[0]}"`;
  const known = (flag: string): boolean => {
    for (let at: Command | null = command; at; at = at.parent) {
      if (at.options.some(({ long, short }) => long === flag || short === flag)) return true;
    }
    // `holdfast jobs` is `holdfast jobs list`.
    return command.commands.some(({ options }) => options.some(({ long }) => long === flag)) || flag === "--help";
  };
  for (const flag of line.match(/(?<=\s)--?[a-z][a-z-]*/g) ?? []) {
    if (!known(flag)) return `${command.name()} has no ${flag}`;
  }
  const subcommands = command.commands.map((each) => each.name());
  if (subcommands.length > 0 && words.length > 0 && /^[a-z][a-z-]*[,`]?$/.test(words[0]!)) {
    return `${command.name()} has no "${words[0]}"`;
  }
  return undefined;
}

test("every `holdfast` command on every page exists, with its flags", () => {
  const problems: string[] = [];
  let seen = 0;
  for (const page of readPages()) {
    const lines = [
      ...page.blocks
        .filter(({ language }) => language === "sh")
        .flatMap(({ code }) => code.replaceAll("\\\n", " ").split(/\n|&&|\|(?!\|)|\$\(/)),
      ...[...page.text.matchAll(/`((?:npx )?holdfast [^`\n]+)`/g)].map((match) => match[1]!),
    ];
    for (const line of lines) {
      const [, given] = /(?:^|\s)(?:npx )?holdfast ([a-z].*?)(?:\)?\s*(?:#.*)?)$/.exec(line.trim()) ?? [];
      if (given === undefined) continue;
      seen += 1;
      const wrong = wrongIn(given.replace(/'[^']*'|"[^"]*"/g, "TEXT"));
      if (wrong !== undefined) problems.push(`${page.path}  holdfast ${given}: ${wrong}`);
    }
  }
  expect(seen).toBeGreaterThan(80);
  expect(problems, `\n${problems.join("\n")}\n`).toEqual([]);
});

test("every `npm run` script on every page exists", () => {
  const scriptsOf = (folder: string): string[] =>
    Object.keys((JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as { scripts: object }).scripts);
  const own = [...scriptsOf("."), ...scriptsOf("starter")];
  const problems = readPages().flatMap((page) =>
    [...page.text.matchAll(/\bnpm run ([\w:-]+)(?: -w (apps\/[\w-]+))?/g)]
      .filter(([, script, app]) => !(app === undefined ? own : scriptsOf(app)).includes(script!))
      .map(([whole]) => `${page.path}  ${whole}`),
  );
  expect(problems).toEqual([]);
});

test("a command that does not exist is noticed", () => {
  expect(wrongIn("jobs list --state dead")).toBeUndefined();
  expect(wrongIn("jobs list --stat dead")).toBe("list has no --stat");
  expect(wrongIn("job list")).toBe('no command "job"');
  expect(wrongIn("jobs lst")).toBe('jobs has no "lst"');
});
