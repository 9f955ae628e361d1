// Runs the rows against the contenders and writes down what was seen. Started by ../faults.mjs on the Node that all contenders run on.
//
// Contenders are broken side by side, each with a server of its own; a row that takes a processor for itself is run for one after
// the other.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { render } from "./report.mjs";
import { openScene } from "./scene.mjs";
import { redisVersion, startPostgresServer, startRedisServer } from "./servers.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const CONTENDERS = ["holdfast", "pg-boss", "graphile-worker", "bullmq-redis", "bullmq-postgres"];
const ROWS = [
  "zombie",
  "poison",
  "kill",
  "restart",
  "sigterm",
  "blocked-loop",
  "half-open",
  "commit-unknown",
  "key-after-purge",
];
const say = (text) => process.stderr.write(`${text}\n`);

const { values: flags } = parseArgs({
  options: { only: { type: "string" }, row: { type: "string" } },
});
function chosen(flag, known) {
  const names = flags[flag]?.split(",") ?? known;
  for (const name of names)
    if (!known.includes(name)) throw new Error(`--${flag}: ${name} is none of ${known.join(", ")}`);
  return names;
}

const startedAt = new Date();
const redis = redisVersion();
if (redis === undefined) say("There is no redis-server here (Debian: apt-get install redis-server): left out.");
const contenders = new Map();
const servers = new Map();
for (const name of chosen("only", CONTENDERS)) {
  if (name === "bullmq-redis" && redis === undefined) continue;
  const contender = await import(`./contenders/${name}.mjs`);
  contenders.set(name, contender);
  servers.set(name, await (contender.server === "redis" ? startRedisServer() : startPostgresServer()));
}

async function runCell(row, rowName, name) {
  const begun = performance.now();
  let scene;
  let cell;
  try {
    scene = await openScene(name, contenders.get(name), servers.get(name));
    cell = await row.run(scene);
  } catch (error) {
    cell = { text: `could not be run: ${error.message}`, isClean: false, isBroken: true };
  }
  const cellSeconds = Math.round((performance.now() - begun) / 1_000);
  const stderr = scene?.errors.slice(-20) ?? [];
  await scene?.close();
  say(`${cell.isClean ? "clean" : "  -  "}  ${rowName}, ${name} (${cellSeconds} s): ${cell.text}`);
  return [name, { ...cell, seconds: cellSeconds, ...(stderr.length > 0 ? { stderr } : {}) }];
}

const rows = {};
for (const rowName of chosen("row", ROWS)) {
  const row = await import(`./rows/${rowName}.mjs`);
  const cells = [];
  if (row.isAlone) for (const name of contenders.keys()) cells.push(await runCell(row, rowName, name));
  else cells.push(...(await Promise.all([...contenders.keys()].map((name) => runCell(row, rowName, name)))));
  rows[rowName] = { title: row.title, question: row.question, cells: Object.fromEntries(cells) };
}
for (const server of servers.values()) await server.remove();

const installed = (name) =>
  JSON.parse(readFileSync(join(here, "..", "node_modules", name, "package.json"), "utf8")).version;
const own = JSON.parse(readFileSync(join(here, "..", "..", "package.json"), "utf8"));
const result = {
  startedAt: startedAt.toISOString(),
  seconds: Math.round((Date.now() - startedAt) / 1_000),
  machine: `${cpus().length} cores, load ${loadavg()[0].toFixed(1)} at the end`,
  versions: {
    holdfast: own.version,
    "pg-boss": installed("pg-boss"),
    "graphile-worker": installed("graphile-worker"),
    bullmq: installed("bullmq"),
    ioredis: installed("ioredis"),
    pg: installed("pg"),
    node: process.version,
    redis,
  },
  titles: Object.fromEntries([...contenders].map(([name, { title }]) => [name, title])),
  leases: Object.fromEntries([...contenders].map(([name, { leaseMs }]) => [name, leaseMs])),
  rows,
};
const isWhole = flags.only === undefined && flags.row === undefined;
const folder = join(here, "results");
mkdirSync(folder, { recursive: true });
const file = join(folder, `${result.startedAt.slice(0, 19).replaceAll(":", "")}${isWhole ? "" : "-part"}.json`);
writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
say(`Written: ${file}`);
if (isWhole) render(result);

const ours = Object.entries(rows).filter(([, { cells }]) => cells["holdfast"] && !cells["holdfast"].isClean);
const broken = Object.values(rows).some(({ cells }) => Object.values(cells).some(({ isBroken }) => isBroken));
for (const [name, { cells }] of ours) say(`NOT CLEAN: ${name}: ${cells["holdfast"].text}`);
process.exit(ours.length > 0 || broken ? 1 : 0);
