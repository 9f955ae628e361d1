// Adds up what is in test/crash/results, into docs/proof.md and README.md. Figures are only ever added up from result files,
// and each of those is written by the run that it is about, with its seed, its counters and its raw history. Only those
// count that tried the present engine and that the present judge finds good; how many others are kept is said beside them.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../set-up.mjs";
import { FIGURES, isReached, totalOf } from "./figures.mjs";
import { engineOf } from "./provenance.mjs";
import { countWrong, readJudged } from "./results.mjs";

export const RESULTS = join(root, "test/crash/results");
const PAGE = join(root, "docs/proof.md");
const README = join(root, "README.md");

/**
 * Whose the figures are, as a sentence or two.
 * @param {{ current: { date?: string }[], earlier: number, refused?: { name: string }[] }} found
 * @param {string} engine
 */
export function sayWhose({ current, earlier, refused = [] }, engine) {
  const days = current.flatMap(({ date }) => date?.slice(0, 10) ?? []).toSorted();
  const span = days[0] === days.at(-1) ? days[0] : `${days[0]} to ${days.at(-1)}`;
  const runs =
    days.length === 0
      ? `No runs yet of the engine \`${engine}\`.`
      : `Runs of ${span}, ${days.length} of them, of the engine \`${engine}\`.`;
  const kept = earlier === 0 ? "" : ` ${earlier} of earlier engines, or by an earlier judge, are kept and not counted.`;
  const names = refused.map(({ name }) => `\`${name}\``).join(", ");
  const not = refused.length === 0 ? "" : ` Not counted, because their raw history is not there or not good: ${names}.`;
  return `${runs}${kept}${not}`;
}

const sum = (results, of) => results.reduce((total, result) => total + of(result), 0);

/** How long what a killed worker had lay about, in the runs whose workers are killed and nothing else is broken. */
export function sayRecovery(results) {
  const measured = results.flatMap(({ part, recovery }) => (part === "kills" && recovery?.cut > 0 ? [recovery] : []));
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
  /^\| (jobs through|`kill|workers frozen|network faults|PostgreSQL crashes|failovers|lease races|… of so many|\*\*viol|runs in|storms whose)/;

/** What the page says, below its head. What is not added up is among it, or nothing could ever be wrong with the rest. */
export function rowsOf({ current, refused }, wrong) {
  const count = new Intl.NumberFormat("en");
  const rows = FIGURES.map((figure) => [figure.name, totalOf(figure, current)]);
  rows.push(["runs in `results/wrong` (they ended wrong, or did not end), which are not added up", wrong]);
  if (refused.length > 0)
    rows.push(["storms whose raw history is missing or not good, which are not added up", refused.length]);
  return rows.map(([name, many]) => `| ${name} | ${count.format(many)} |`);
}

export const inReadme = (rows) => rows.filter((row) => IN_README.test(row));

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

export async function addUp() {
  const engine = engineOf();
  const found = await readJudged(RESULTS, engine);
  const results = found.current;
  const count = new Intl.NumberFormat("en");
  const rows = rowsOf(found, countWrong(RESULTS));
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
  for (const { name, why } of found.refused) process.stdout.write(`NOT COUNTED: ${name}: ${why}\n`);
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
  const readme = ["| what | how many |", "|---|---:|", ...inReadme(rows)].join("\n");
  writeFileSync(README, between(between(readFileSync(README, "utf8"), "figures", readme), "whose", whose));
  return results;
}

/** The first figure that is not reached yet. */
export async function unmet() {
  const { current } = await readJudged(RESULTS);
  return FIGURES.find((figure) => !isReached(figure, current));
}
