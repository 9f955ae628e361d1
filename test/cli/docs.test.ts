// docs/cli.md lists the exit codes, the variables, the fields of the configuration file and the commands that exist, and no others.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CONFIG_KNOWN } from "#src/cli/config.js";
import { EXIT } from "#src/cli/exit-codes.js";
import { run } from "./holdfast.ts";

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = read("docs/cli.md");

test("exit codes", () => {
  const documented = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(documented).toEqual(Object.values(EXIT));
});

test("variables", () => {
  const documented = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name]) => name);
  const real = [...read("src/cli/env.ts").matchAll(/read\("([A-Z_]+)"/g)].map(([, name]) => name);
  expect(new Set(documented)).toEqual(new Set(real));
});

test("fields of the configuration file", () => {
  const [, table = ""] = /^\| field \|.*\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const documented = table.split("\n").flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)]);
  expect(documented.map(([, name]) => name)).toEqual(CONFIG_KNOWN);
});

test("commands", async () => {
  const documented = [...page.matchAll(/^\| `holdfast (\w+)/gm)].map(([, name]) => name);
  const { stdout } = await run([]);
  const commands = stdout.slice(stdout.indexOf("Commands:"), stdout.indexOf("Examples:"));
  const real = [...commands.matchAll(/^ {2}(\w+) /gm)].map(([, name]) => name).filter((name) => name !== "help");
  expect(documented).toEqual(real);
});
