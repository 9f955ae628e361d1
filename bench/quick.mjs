// The quick comparison, `npm run bench:quick`: Holdfast, pg-boss and graphile-worker in one run on one PostgreSQL, in under
// three minutes, with the targets that can be judged in that time.
//
// A missed target is not a failure; a contender that breaks, or whose counts are wrong, is (exit code 1).
//
//   --only=holdfast,pg-boss   --scenario=steady,latency   --rounds=N   --seconds=N
import { compare, keepResults, readFlags } from "./compare.mjs";
import { printReport, summarize } from "./report.mjs";

const CONTENDERS = ["holdfast", "pg-boss", "graphile-worker"];
// The physical limit, no product: --only=holdfast,raw-sql
const entry = (scenario, rounds, seconds) => ({
  scenario,
  rounds,
  seconds,
  contenders: CONTENDERS,
  onRequest: ["raw-sql"],
});
const PLAN = [entry("steady", 3, 5), entry("held", 1, 9), entry("enqueue-128", 2, 1), entry("latency", 2, 1.8)];
const TARGETS = ["steady", "heldShare", "enqueue128", "latencyP50"];

const flags = readFlags(PLAN);
const compared = await compare({ ...flags, budgetMs: 165_000, command: "node bench/quick.mjs" });
if (compared) {
  const { environment, runs } = compared;
  const summary = summarize(runs, TARGETS);
  printReport(environment, summary);
  keepResults("quick", { environment, summary, runs });
  process.exitCode = runs.every((run) => run.counts?.right) ? 0 : 1;
} else process.exitCode = 130;
