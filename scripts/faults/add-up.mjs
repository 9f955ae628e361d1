// Adds up what is in test/crash/results, into docs/proof.md and README.md. Figures are only ever added up from result files,
// and each of those is written by the run that it is about, with its seed, its counters and its raw history. Only those
// count that tried the present engine and were judged by the present judge; how many others are kept is said beside them.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../set-up.mjs";
import { engineOf, isCurrent } from "./provenance.mjs";

export const RESULTS = join(root, "test/crash/results");
const PAGE = join(root, "docs/proof.md");
const README = join(root, "README.md");

function readAll(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => ({ path: join(folder, name), ...JSON.parse(readFileSync(join(folder, name), "utf8")) }));
}

/** Those that count, and how many are kept beside them that do not: of earlier engines, or judged less strictly. */
export function readResults(folder = RESULTS, engine = engineOf()) {
  const all = readAll(folder);
  const current = all.filter((result) => isCurrent(result, engine));
  return { current, earlier: all.length - current.length + readAll(join(folder, "earlier")).length };
}

/** Whose the figures are, as a sentence or two. */
export function sayWhose({ current, earlier }, engine) {
  const days = current.flatMap(({ date }) => date?.slice(0, 10) ?? []).toSorted();
  const span = days[0] === days.at(-1) ? days[0] : `${days[0]} to ${days.at(-1)}`;
  const runs =
    days.length === 0
      ? `No runs yet of the engine \`${engine}\`.`
      : `Runs of ${span}, ${days.length} of them, of the engine \`${engine}\`.`;
  return earlier === 0
    ? runs
    : `${runs} ${earlier} of earlier engines, or by an earlier judge, are kept and not counted.`;
}

const sum = (results, of) => results.reduce((total, result) => total + of(result), 0);
const faultsLike = (pattern) => (result) =>
  sum(
    Object.entries(result.faults ?? {}).filter(([name]) => pattern.test(name)),
    ([, count]) => count,
  );
const CRASHES = /^PostgreSQL: (immediate stop|kill -9)/;

/** What the page says, how it is counted, how much of it there has to be, and which part makes more of it. */
export const FIGURES = [
  { name: "jobs through faults", of: (r) => r.counts?.jobs ?? 0, least: 100_000, part: "everything" },
  { name: "`kill -9` of a worker", of: faultsLike(/^kill -9$/), least: 1_000, part: "kills" },
  { name: "runs that a `kill -9` cut off, and that were run again", of: (r) => r.recovery?.cut ?? 0, least: 0 },
  { name: "workers frozen past their lease, then thawed", of: faultsLike(/^SIGSTOP$/), least: 100, part: "kills" },
  { name: "SIGTERM under load", of: faultsLike(/^SIGTERM$/), least: 50, part: "kills" },
  {
    name: "network faults",
    of: faultsLike(/^(network|commit unknown|committed, answer lost)/),
    least: 1_000,
    part: "network",
  },
  {
    name: "… of these: the answer said that it was committed, and was lost",
    of: faultsLike(/^committed, answer lost/),
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
    name: "`kill -9` of the embedded database",
    of: faultsLike(/^embedded: kill -9/),
    least: 60,
    part: "embedded",
    // In one run: it has no seed, so that the next one takes the place of its result.
    env: { HOLDFAST_KILLS: "30" },
  },
  {
    name: "lease races (a settle meets an expiry)",
    of: (r) => r.races ?? 0,
    least: 5_000,
    part: "lease-races",
    env: { FAULT_LONG: "1" },
  },
  {
    name: "simulated schedules",
    of: (r) => r.schedules ?? 0,
    least: 10_000,
    part: "simulation",
    env: { SIM_SEEDS: "1000" },
  },
  {
    name: "interleavings of claim, expire and settle, all of them",
    of: (r) => r.interleavings ?? 0,
    least: 6_720,
    part: "interleavings",
  },
  {
    name: "runs of the model",
    of: (r) => r.modelRuns ?? 0,
    least: 2_000,
    part: "model",
    env: { MODEL_RUNS: "2000" },
  },
  {
    name: "mutants of the product killed by the suite",
    of: (r) => r.killed?.length ?? 0,
    least: 12,
    script: "test/mutants.mjs",
  },
  { name: "… still alive", of: (r) => r.alive?.length ?? 0, least: 0 },
  {
    name: "indexes and tables in which `amcheck` looked for damage afterwards",
    of: (r) => r.checked ?? 0,
    least: 0,
  },
  { name: "facts looked at by the judge", of: (r) => sum(Object.values(r.looked ?? {}), (n) => n), least: 0 },
  { name: "**violations**", of: (r) => r.violations?.length ?? 0, least: 0 },
];

/** How long what a killed worker had lay about, in the runs whose workers are killed and nothing else is broken. */
function sayRecovery(results) {
  const measured = results.flatMap(({ part, recovery }) => (part === "kills" && recovery ? [recovery] : []));
  if (measured.length === 0) return "Not measured yet.";
  const range = (what, of) => {
    const values = measured.map((each) => each[what][of]).toSorted((a, b) => a - b);
    const [least, most] = [values[0], values.at(-1)].map((ms) => (ms / 1_000).toFixed(1));
    return least === most ? least : `${least} to ${most}`;
  };
  const rows = [
    ["it can be claimed", "claimable"],
    ["it runs again", "again"],
  ].map(([name, of]) => `| ${name} | ${range(of, "p50")} | ${range(of, "p99")} | ${range(of, "most")} |`);
  const cut = new Intl.NumberFormat("en").format(sum(measured, (each) => each.cut));
  return [
    `Seconds after the \`kill -9\`, with a lease of one second; ${cut} runs that were cut off, in ${measured.length} storms:`,
    "",
    "| until | half of them | 99 of 100 | all |",
    "|---|---:|---:|---:|",
    ...rows,
  ].join("\n");
}

/** The rows that README.md has, too. */
const IN_README =
  /^\| (jobs through|`kill|workers frozen|network faults|PostgreSQL crashes|failovers|lease races|\*\*viol)/;

/** How much of what there was. */
export function sizeOf(found) {
  const sizes = [
    ["jobs", (r) => r.counts?.jobs],
    ["items", (r) => r.items],
    ["uploads", (r) => r.uploads],
    ["cases", (r) => r.cases],
    ["commits", (r) => r.commits],
    ["races", (r) => r.races],
    ["schedules", (r) => r.schedules],
    ["orders", (r) => r.interleavings],
    ["lists of commands", (r) => r.modelRuns],
  ];
  return sizes
    .map(([what, of]) => [what, sum(found, (result) => of(result) ?? 0)])
    .filter(([, many]) => many > 0)
    .map(([what, many]) => `${new Intl.NumberFormat("en").format(many)} ${what}`)
    .join(", ");
}

export function addUp() {
  const engine = engineOf();
  const found = readResults(RESULTS, engine);
  const results = found.current;
  const count = new Intl.NumberFormat("en");
  const rows = FIGURES.map(({ name, of }) => `| ${name} | ${count.format(sum(results, of))} |`);
  const wrong = readAll(join(RESULTS, "wrong")).length;
  rows.push(`| runs in \`results/wrong\`, which are not added up | ${count.format(wrong)} |`);
  const table = ["| what | how many |", "|---|---:|", ...rows].join("\n");
  const parts = results
    .map((r) => {
      const all = r.faults ? sum(Object.values(r.faults), (n) => n) : 0;
      const seconds = r.seconds === undefined ? "" : `${r.seconds} s`;
      return `| ${r.part} | ${r.seed} | ${seconds} | ${sizeOf([r])} | ${all === 0 ? "" : count.format(all)} | ${r.violations?.length ?? 0} |`;
    })
    .join("\n");
  const head = "| part | seed | time | what it had | faults | violations |\n|---|---:|---:|---:|---:|---:|";
  const runs = parts === "" ? head : `${head}\n${parts}`;
  const whose = sayWhose(found, engine);
  process.stdout.write(`${whose}\n\n${table}\n`);
  if (!existsSync(PAGE)) return results;
  const between = (page, mark, text) =>
    page.replace(new RegExp(`(<!-- ${mark} -->\n)[^]*?\n?(<!-- /${mark} -->)`), (_, a, b) => `${a}${text}\n${b}`);
  const { killed = [] } = results.find(({ part }) => part === "mutants") ?? {};
  const mutants = killed
    .map(({ name, by }) => `| ${name} | \`${by.file}\`: ${by.test.replaceAll("|", "\\|")} |`)
    .join("\n");
  let page = between(readFileSync(PAGE, "utf8"), "figures", table);
  page = between(page, "whose", whose);
  page = between(page, "recovery", sayRecovery(results));
  page = between(page, "mutants", `| what is broken | the test that notices |\n|---|---|\n${mutants}`);
  writeFileSync(PAGE, between(page, "runs", runs));
  const short = rows.filter((row) => IN_README.test(row));
  const readme = ["| what | how many |", "|---|---:|", ...short].join("\n");
  writeFileSync(README, between(between(readFileSync(README, "utf8"), "figures", readme), "whose", whose));
  return results;
}

export const unmet = () => {
  const { current: results } = readResults();
  return FIGURES.find(({ of, least }) => sum(results, of) < least);
};
