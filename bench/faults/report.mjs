// Writes the table of a whole run between its markers in docs/proof.md.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const page = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "docs", "proof.md");

export function render(result) {
  const names = Object.keys(result.titles);
  const lines = [
    `| | ${names.map((name) => result.titles[name]).join(" | ")} |`,
    `|---|${names.map(() => "---|").join("")}`,
    ...Object.values(result.rows).map(
      ({ title, question, cells }) =>
        `| **${title}**: ${question} | ${names.map((name) => `${cells[name].isClean ? "✓" : "✗"} ${cells[name].text}`).join(" | ")} |`,
    ),
    `| clean rows | ${names.map((name) => Object.values(result.rows).filter(({ cells }) => cells[name].isClean).length).join(" | ")} |`,
  ];
  const { versions } = result;
  const about =
    `Seen on ${result.startedAt.slice(0, 10)} in ${Math.round(result.seconds / 60)} minutes on ${result.machine}: ` +
    `pg-boss ${versions["pg-boss"]}, graphile-worker ${versions["graphile-worker"]}, BullMQ ${versions.bullmq} ` +
    `(ioredis ${versions.ioredis}, Redis ${versions.redis}), Node ${versions.node.slice(1)}, PostgreSQL 18.`;
  const text = readFileSync(page, "utf8").replace(
    /(<!-- peers -->\n)[^]*?(<!-- \/peers -->)/,
    (_, from, to) => `${from}${about}\n\n${lines.join("\n")}\n${to}`,
  );
  writeFileSync(page, text);
}
