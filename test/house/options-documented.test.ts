// docs/options.md names every option of open() and work() with the default it really has.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { OPEN_DEFAULTS, WORK_DEFAULTS } from "#src/options.js";

const page = readFileSync("docs/options.md", "utf8");
const section = (title: string): string => page.split(/^## /m).find((part) => part.startsWith(title)) ?? "";

test.each([
  ["`open(options)`", OPEN_DEFAULTS],
  ["`hf.work(kinds, options)`", WORK_DEFAULTS],
])("%s", (title, defaults) => {
  for (const [name, value] of Object.entries(defaults)) {
    const line = section(title)
      .split("\n")
      .find((row) => row.startsWith(`| \`${name}\``));
    expect(line, `${name} in ${title}`).toBeDefined();
    if (typeof value !== "object") expect(line).toContain(`\`${JSON.stringify(value)}\``);
  }
});
