// `npm run test:faults`: what takes longer than `npm test` may.
//
//   -- --part kills --seconds 300 --seed 7   one part of test/crash/storm/parts.ts, repeated from its seed
//   -- --figures                             until every figure of docs/proof.md is reached; can be stopped and gone on with
//   -- --nightly                             the same, for ever
//   -- --sum                                 only adds up what is in test/crash/results, into docs/proof.md
//
// Figures are only ever added up from result files, and each of those is written by the run that it is about, with its
// seed, its counters and its raw history.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build, install, root } from "./set-up.mjs";

const RESULTS = join(root, "test/crash/results");
const PAGE = join(root, "docs/proof.md");
const README = join(root, "README.md");
const CHUNK_SECONDS = 240;

const { values: options } = parseArgs({
  options: {
    part: { type: "string" },
    seconds: { type: "string" },
    seed: { type: "string" },
    out: { type: "string" },
    figures: { type: "boolean" },
    nightly: { type: "boolean" },
    sum: { type: "boolean" },
  },
});

function vitest(args, env = {}) {
  const result = spawnSync(process.execPath, [join("node_modules", "vitest", "vitest.mjs"), "run", ...args], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  return result.status === 0;
}

const faults = (path, env) => vitest(["--config", "test/faults.config.ts", path], env);
const storm = (part, env) => faults("test/crash/storm/storm.faults.ts", { FAULT_PARTS: part, ...env });

function readResults() {
  if (!existsSync(RESULTS)) return [];
  return readdirSync(RESULTS)
    .filter((name) => name.endsWith(".json"))
    .map((name) => ({ name, ...JSON.parse(readFileSync(join(RESULTS, name), "utf8")) }));
}

const sum = (results, of) => results.reduce((total, result) => total + of(result), 0);
const faultsLike = (pattern) => (result) =>
  sum(
    Object.entries(result.faults ?? {}).filter(([name]) => pattern.test(name)),
    ([, count]) => count,
  );
const CRASHES = /^PostgreSQL: (immediate stop|kill -9)/;

/** What the page says, how it is counted, how much of it there has to be, and which part makes more of it. */
const FIGURES = [
  { name: "jobs through faults", of: (r) => r.counts?.jobs ?? 0, least: 100_000, part: "everything" },
  { name: "`kill -9` of a worker", of: faultsLike(/^kill -9$/), least: 1_000, part: "kills" },
  { name: "workers frozen past their lease, then thawed", of: faultsLike(/^SIGSTOP$/), least: 100, part: "kills" },
  { name: "SIGTERM under load", of: faultsLike(/^SIGTERM$/), least: 50, part: "kills" },
  { name: "network faults", of: faultsLike(/^(network|commit unknown)/), least: 1_000, part: "network" },
  {
    name: "… of these: committed, and the answer lost",
    of: faultsLike(/^commit unknown/),
    least: 300,
    part: "network",
  },
  { name: "PostgreSQL crashes (immediate stop, `kill -9`)", of: faultsLike(CRASHES), least: 50, part: "postgres" },
  {
    name: "PostgreSQL: other faults (frozen, read-only, connections terminated or exhausted)",
    of: (r) => faultsLike(/^PostgreSQL/)(r) - faultsLike(CRASHES)(r),
    least: 10,
    part: "postgres",
  },
  { name: "failovers to a synchronous replica", of: faultsLike(/^failover$/), least: 0 },
  {
    name: "lease races (a settle meets an expiry)",
    of: (r) => r.races ?? 0,
    least: 5_000,
    file: "test/race/lease.faults.ts",
  },
  {
    name: "simulated schedules",
    of: (r) => r.schedules ?? 0,
    least: 10_000,
    file: "test/model/simulation/simulation.faults.ts",
  },
  {
    name: "interleavings of claim, expire and settle, all of them",
    of: (r) => r.interleavings ?? 0,
    least: 6_720,
    file: "test/model/interleavings.faults.ts",
  },
  { name: "runs of the model", of: (r) => r.modelRuns ?? 0, least: 2_000, file: "test/model/model.faults.ts" },
  {
    name: "mutants of the product killed by the suite",
    of: (r) => r.killed?.length ?? 0,
    least: 12,
    script: "test/mutants.mjs",
  },
  { name: "… still alive", of: (r) => r.alive?.length ?? 0, least: 0 },
  { name: "facts looked at by the judge", of: (r) => sum(Object.values(r.looked ?? {}), (n) => n), least: 0 },
  { name: "**violations**", of: (r) => r.violations?.length ?? 0, least: 0 },
];

/** The rows that README.md has, too. */
const IN_README =
  /^\| (jobs through|`kill|workers frozen|network faults|PostgreSQL crashes|failovers|lease races|\*\*viol)/;

function addUp() {
  const results = readResults();
  const count = new Intl.NumberFormat("en");
  const rows = FIGURES.map(({ name, of }) => `| ${name} | ${count.format(sum(results, of))} |`);
  const table = ["| what | how many |", "|---|---:|", ...rows].join("\n");
  const parts = results
    .map((r) => {
      const size = r.counts ? `${count.format(r.counts.jobs)} jobs` : "";
      const all = r.faults ? sum(Object.values(r.faults), (n) => n) : 0;
      const seconds = r.seconds === undefined ? "" : `${r.seconds} s`;
      return `| ${r.part} | ${r.seed} | ${seconds} | ${size} | ${all === 0 ? "" : count.format(all)} | ${r.violations?.length ?? 0} |`;
    })
    .join("\n");
  const runs = `| part | seed | time | jobs | faults | violations |\n|---|---:|---:|---:|---:|---:|\n${parts}`;
  process.stdout.write(`${table}\n`);
  if (!existsSync(PAGE)) return results;
  const between = (page, mark, text) =>
    page.replace(new RegExp(`(<!-- ${mark} -->\n)[^]*?\n?(<!-- /${mark} -->)`), (_, a, b) => `${a}${text}\n${b}`);
  const { killed = [] } = results.find(({ part }) => part === "mutants") ?? {};
  const mutants = killed
    .map(({ name, by }) => `| ${name} | \`${by.file}\`: ${by.test.replaceAll("|", "\\|")} |`)
    .join("\n");
  let page = between(readFileSync(PAGE, "utf8"), "figures", table);
  page = between(page, "mutants", `| what is broken | the test that notices |\n|---|---|\n${mutants}`);
  writeFileSync(PAGE, between(page, "runs", runs));
  const short = rows.filter((row) => IN_README.test(row));
  const readme = ["| what | how many |", "|---|---:|", ...short].join("\n");
  writeFileSync(README, between(readFileSync(README, "utf8"), "figures", readme));
  return results;
}

const unmet = () => {
  const results = readResults();
  return FIGURES.find(({ of, least }) => sum(results, of) < least);
};

function more(figure) {
  const env = { FAULT_OUT: RESULTS, FAULT_LONG: "1" };
  if (figure.file) return faults(figure.file, env);
  if (figure.script) {
    const run = { cwd: root, stdio: "inherit", env: { ...process.env, ...env } };
    return spawnSync(process.execPath, [figure.script], run).status === 0;
  }
  return storm(figure.part, { ...env, FAULT_SECONDS: String(CHUNK_SECONDS) });
}

if (options.sum) {
  addUp();
} else {
  install();
  build();
  let isGood = true;
  if (options.part) {
    const env = { FAULT_SEED: options.seed ?? "", ...(options.out ? { FAULT_OUT: join(root, options.out) } : {}) };
    if (options.seconds) env.FAULT_SECONDS = options.seconds;
    isGood = storm(options.part, env);
  } else if (options.figures || options.nightly) {
    for (let figure = unmet(); figure && isGood; figure = unmet()) isGood = more(figure);
    while (options.nightly && isGood)
      for (const figure of FIGURES) isGood &&= !(figure.part ?? figure.file ?? figure.script) || more(figure);
    addUp();
  } else {
    const long = {
      FAULT_UPLOADS: "500",
      FAULT_ITEMS: "100000",
      FAULT_KILLS: "20",
      FUZZ_CASES: "2000",
      HOLDFAST_FREEZES: "20",
      HOLDFAST_KILLS: "30",
      HOLDFAST_LONG: "1",
      PLANS_FINISHED: "1000000",
    };
    const fuzz = ["worker", "batches", "inbox"].map((room) => `${room}/fuzz`);
    const files = [
      "inbox/faults",
      "crash/batches",
      "crash/storm",
      "crash/killed",
      ...fuzz,
      "db/embedded-crash",
      "long/database-away",
      "store/plans",
    ];
    isGood = vitest(
      files.map((file) => `test/${file}.test.ts`),
      long,
    );
    isGood = vitest(["--config", "test/faults.config.ts"]) && isGood;
  }
  process.exit(isGood ? 0 : 1);
}
