// `npm run test:faults`: what takes longer than `npm test` may.
//
//   -- --plan                                only says what would be run, and how long it takes
//   -- --part kills,fuzz --seconds 300 --seed 7   some parts of the plan; storms for so long; repeated from a seed
//   -- --out test/crash/results              keeps results and raw histories (as does FAULT_OUT)
//   -- --figures                             until every figure of docs/proof.md is reached; can be stopped and gone on with
//   -- --nightly                             the same, for ever
//   -- --judge FILE...                       judges raw histories again; all of test/crash/results if none is named
//   -- --sum                                 only adds up what is in test/crash/results, into docs/proof.md; judges the raw histories again
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { addUp, RESULTS, unmet } from "./faults/add-up.mjs";
import { FIGURES } from "./faults/figures.mjs";
import { judgeFiles } from "./faults/judge-again.mjs";
import { findStep, PLAN } from "./faults/plan.mjs";
import { printPlan, runStep, runSteps } from "./faults/run-steps.mjs";
import { build, install, root } from "./set-up.mjs";

const CHUNK_SECONDS = 240;

const { values: options, positionals: files } = parseArgs({
  allowPositionals: process.argv.includes("--judge"),
  options: {
    part: { type: "string" },
    seconds: { type: "string" },
    seed: { type: "string" },
    out: { type: "string" },
    plan: { type: "boolean" },
    figures: { type: "boolean" },
    nightly: { type: "boolean" },
    sum: { type: "boolean" },
    judge: { type: "boolean" },
  },
});

const seedOf = () => (options.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(options.seed));
const out = options.out ?? process.env.FAULT_OUT;

/** Storms can be told how long. */
const lasting = (step, seconds) =>
  step.isStorm && seconds !== undefined
    ? { ...step, seconds: Number(seconds) + 20, env: { ...step.env, FAULT_SECONDS: String(seconds) } }
    : step;

function choose() {
  if (options.part === undefined) return PLAN;
  return options.part.split(",").map((name) => {
    const step = findStep(name);
    if (!step) {
      process.stderr.write(
        `There is no part "${name}". There are: ${PLAN.map((one) => one.name).join(", ")}, everything.\n`,
      );
      process.exit(1);
    }
    return lasting(step, options.seconds);
  });
}

async function more(figure) {
  if (figure.script) {
    const run = { cwd: root, stdio: "inherit", env: { ...process.env, FAULT_OUT: RESULTS } };
    return spawnSync(process.execPath, [figure.script, "--rest"], run).status === 0;
  }
  const step = lasting(findStep(figure.part), CHUNK_SECONDS);
  const { is } = await runStep(step, { seed: seedOf(), out: RESULTS, env: figure.env });
  return is === "good";
}

if (options.judge) {
  process.exit((await judgeFiles(files, { folder: RESULTS })) ? 0 : 1);
} else if (options.sum) {
  await addUp();
} else if (options.plan) {
  printPlan(choose());
} else {
  const steps = choose();
  install();
  build();
  let isGood = true;
  if (options.figures || options.nightly) {
    for (let figure = await unmet(); figure && isGood; figure = await unmet()) isGood = await more(figure);
    while (options.nightly && isGood)
      for (const figure of FIGURES) isGood &&= !(figure.part ?? figure.script) || (await more(figure));
    await addUp();
  } else {
    isGood = await runSteps(steps, { seedOf, out: out === undefined ? undefined : resolve(root, out) });
  }
  process.exit(isGood ? 0 : 1);
}
