// docs/metrics.md, the alert rules and the dashboard speak of the metrics that exist, and of no others.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { METRICS, PREFIX } from "#src/metrics/catalogue.js";
import { root } from "./sources.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const known = Object.keys(METRICS).map((name) => `${PREFIX}${name}`);
const used = (text: string): Set<string> =>
  new Set((text.match(/\bholdfast_[a-z_]+/g) ?? []).map((name) => name.replace(/_(bucket|sum|count)$/, "")));

test("every metric is documented with its labels, and every documented metric exists", () => {
  const rows = [...read("docs/metrics.md").matchAll(/^\| `(holdfast_[a-z_]+)`\s*\|([^|]*)\|([^|]*)\|/gm)];
  const documented = new Map(
    rows.map(([, name, labels]) => [name!, [...labels!.matchAll(/`(\w+)`/g)].map((m) => m[1])]),
  );
  expect([...documented.keys()].toSorted()).toEqual(known.toSorted());
  for (const [name, { labels }] of Object.entries(METRICS)) {
    expect(documented.get(`${PREFIX}${name}`), name).toEqual([...labels]);
  }
});

test.each(["monitoring/alerts.yml", "monitoring/alerts.test.yml", "monitoring/dashboard.json", "docs/metrics.md"])(
  "%s uses no metric that does not exist",
  (path) => {
    expect([...used(read(path))].filter((name) => !known.includes(name))).toEqual([]);
  },
);

test("the dashboard shows every metric", () => {
  const shown = used(read("monitoring/dashboard.json"));
  expect(known.filter((name) => !shown.has(name))).toEqual([]);
});

test("every alert is in docs/metrics.md, and every alert there exists", () => {
  const alerts = [...read("monitoring/alerts.yml").matchAll(/alert: (\w+)/g)].map((match) => match[1]);
  const documented = new Set(read("docs/metrics.md").match(/\bHoldfast[A-Z]\w+/g));
  expect([...documented].toSorted()).toEqual(alerts.map(String).toSorted());
});

const promtool = promisify(execFile)("promtool", ["--version"]).then(
  () => true,
  () => false,
);

test("the alert rules do what their tests say (promtool)", async ({ skip }) => {
  if (!(await promtool)) skip("promtool is not installed; Debian has it in the package prometheus");
  const { stdout } = await promisify(execFile)("promtool", ["test", "rules", "alerts.test.yml"], {
    cwd: join(root, "monitoring"),
  });
  expect(stdout).toContain("SUCCESS");
});
