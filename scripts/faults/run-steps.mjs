// Runs the steps of the plan one after the other, each in a process of its own: what fails, or hangs, does not keep the
// next from its turn. At the end it says of each what came of it.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../set-up.mjs";
import { sizeOf } from "./add-up.mjs";
import { engineOf } from "./provenance.mjs";
import { beginRun, read } from "./wrong-runs.mjs";

const count = new Intl.NumberFormat("en");
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.round(seconds) % 60).padStart(2, "0")}`;

/** Tests have limits of their own, which go by their lengths: this is for what does not even heed those. */
const limitOf = (seconds) => 6 * seconds + 900;

function table(head, rows) {
  const all = [head, ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at].length)));
  return all.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at])).join("  ")}`.trimEnd()).join("\n");
}

export function printPlan(steps) {
  const rows = steps.map(({ name, seconds, what }) => [name, minutes(seconds), what]);
  rows.push([
    "together",
    minutes(sum(steps.map(({ seconds }) => seconds))),
    "on two cores that have nothing else to do",
  ]);
  process.stdout.write(`${table(["part", "about", "what"], rows)}\n\n`);
}

let running;
let isStopped = false;

async function vitest(step, env, report) {
  const config = step.files.every((file) => file.endsWith(".faults.ts")) ? ["--config", "test/faults.config.ts"] : [];
  const args = ["run", ...config, ...step.files, "--retry=0", "--reporter=default", "--reporter=json"];
  const child = spawn(
    process.execPath,
    [join("node_modules", "vitest", "vitest.mjs"), ...args, `--outputFile.json=${report}`],
    { cwd: root, stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...env } },
  );
  running = child;
  let isLate = false;
  const timers = [
    setTimeout(
      () => {
        isLate = true;
        child.kill("SIGTERM");
        timers.push(setTimeout(() => child.kill("SIGKILL"), 30_000));
      },
      limitOf(step.seconds) * 1_000,
    ),
  ];
  const code = await new Promise((resolve) => child.once("exit", resolve));
  for (const timer of timers) clearTimeout(timer);
  running = undefined;
  return { code, isLate };
}

/**
 * `out`: where results and raw histories go; those of a run that went wrong into its folder `wrong`, which is not added up.
 * A run that ends without any of them leaves its name there.
 */
export async function runStep(step, { seed, out, env = {} }) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-faults-"));
  const results = join(folder, "results");
  mkdirSync(results);
  const seeds = step.isUnseeded ? {} : { FAULT_SEED: String(seed), FUZZ_SEED: String(seed) };
  process.stdout.write(`\n== ${step.name}${step.isUnseeded ? "" : `, seed ${seed}`}: ${step.what}\n`);
  const startedAt = performance.now();
  const engine = engineOf();
  const run = out === undefined ? undefined : beginRun(out, { part: step.name, seed: step.isUnseeded ? 0 : seed });
  const report = join(folder, "report.json");
  const { code, isLate } = await vitest(step, { ...step.env, ...seeds, ...env, FAULT_OUT: results }, report);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const tests = (read(report)?.testResults ?? []).flatMap((file) => file.assertionResults);
  const failed = tests.filter(({ status }) => status === "failed").map(({ fullName }) => fullName.trim());
  const passed = tests.filter(({ status }) => status === "passed").length;
  const skipped = tests.filter(({ status }) => ["skipped", "pending"].includes(status)).map(({ title }) => title);
  const found = readdirSync(results)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => read(join(results, name)) ?? []);
  const wrong = [...failed];
  if (isLate) wrong.push(`given up after ${minutes(limitOf(step.seconds))}`);
  else if (code !== 0 && failed.length === 0) wrong.push(`ended with ${code}, see above`);
  // Passed, and nothing to show for it.
  if (wrong.length === 0 && passed > 0 && found.length === 0 && !step.hasNoResult) wrong.push("it left no result");
  if (wrong.length === 0 && passed + skipped.length === 0) wrong.push("no test was run");
  // Nobody knows which of the two it tried.
  if (engineOf() !== engine) wrong.push("the engine's sources were changed while it ran");
  if (isStopped) {
    run?.forget();
    rmSync(folder, { recursive: true, force: true });
    return { name: step.name, seed, seconds, is: "stopped", size: "", faults: 0, violations: 0, wrong: [], skipped };
  }
  const isGood = wrong.length === 0;
  if (isGood) {
    run?.forget();
    if (out !== undefined && found.length > 0) {
      mkdirSync(out, { recursive: true });
      cpSync(results, out, { recursive: true });
    }
  } else run?.endWrong(results, wrong);
  rmSync(folder, { recursive: true, force: true });
  return {
    name: step.name,
    seed: step.isUnseeded ? undefined : seed,
    seconds,
    is: isGood ? (passed === 0 ? "skipped" : "good") : "WRONG",
    size: sizeOf(found) || `${count.format(passed)} tests`,
    faults: sum(found.flatMap((result) => Object.values(result.faults ?? {}))),
    violations: sum(found.map((result) => result.violations?.length ?? 0)),
    wrong,
    skipped,
  };
}

/** True: nothing was wrong. */
export async function runSteps(steps, { seedOf, out, env }) {
  printPlan(steps);
  const done = [];
  const startedAt = performance.now();
  const onSignal = (signal) => {
    isStopped = true;
    running?.kill(signal);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  for (const step of steps) {
    if (isStopped) break;
    done.push(await runStep(step, { seed: seedOf(), out, env }));
  }
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  summarize(steps, done, (performance.now() - startedAt) / 1_000);
  return !isStopped && done.every(({ is }) => is !== "WRONG");
}

function summarize(steps, done, seconds) {
  const rows = done.map((one) => [
    one.name,
    one.is,
    one.seed === undefined ? "" : String(one.seed),
    minutes(one.seconds),
    one.size,
    one.faults === 0 ? "" : count.format(one.faults),
    String(one.violations),
  ]);
  process.stdout.write(`\n${table(["part", "", "seed", "time", "what it had", "faults", "violations"], rows)}\n\n`);
  for (const { name, skipped } of done) for (const why of skipped) process.stdout.write(`Skipped: ${name}: ${why}\n`);
  for (const { name } of steps.slice(done.length)) process.stdout.write(`Not run: ${name}: it was stopped before.\n`);
  for (const { name, wrong } of done) for (const what of wrong) process.stdout.write(`WRONG: ${name}: ${what}\n`);
  const bad = done.filter(({ is }) => is === "WRONG").length;
  const good = done.filter(({ is }) => is === "good").length;
  process.stdout.write(`${good} of ${steps.length} parts are good, ${bad} wrong, in ${minutes(seconds)} minutes.\n`);
}
