// Puts one whole comparison into docs/benchmarks.md, between its marks: environment, table, targets, plots. What the figures
// mean is written around them by hand.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describeEnvironment, tableOf } from "./report.mjs";

const PAGE = join(dirname(fileURLToPath(import.meta.url)), "..", "docs", "benchmarks.md");

export function writePage({ environment, summary, file, plots }) {
  const row = (cells) => `| ${cells.join(" | ")} |`;
  const table = [
    row(["", ...summary.contenders, "holdfast / best peer"]),
    `|---|${"---:|".repeat(summary.contenders.length + 1)}`,
    ...tableOf(summary).map(({ title, cells, ratio }) => row([title.replace(/^ +/, "… "), ...cells, ratio])),
  ];
  const targets = [
    "| target | reached |",
    "|---|---:|",
    ...summary.targets.map(({ text, value, met }) =>
      row([text, met ? value.toFixed(2) : `**not reached**: ${value.toFixed(2)}`]),
    ),
  ];
  const link = (path) => relative(dirname(PAGE), path);
  const text = [
    `${describeEnvironment(environment).join(". ").replaceAll(/ {2,}/g, " ")}. It took ${Math.round(environment.seconds / 60)} minutes; all`,
    `runs, with their settings: [${basename(file)}](${link(file)}).`,
    "",
    ...table,
    "",
    ...targets,
    "",
    ...plots.map(({ title, path }) => `![${title}](${link(path)})\n`),
  ].join("\n");
  const page = readFileSync(PAGE, "utf8");
  writeFileSync(
    PAGE,
    page.replace(/(<!-- results -->\n)[^]*(<!-- \/results -->)/, (_, open, end) => `${open}${text}\n${end}`),
  );
  process.stdout.write("Written into docs/benchmarks.md.\n");
}
