// The full comparison, `npm run bench`: Holdfast beside pg-boss, graphile-worker (tuned, and as it comes), BullMQ on PostgreSQL
// and on Redis, and raw SQL as the limit of the machine. It takes about 35 minutes on two cores.
//
// The whole comparison also writes its table into docs/benchmarks.md.
//
// A missed target is not a failure; a contender that breaks, or whose counts are wrong, is (exit code 1).
//
//   --only=holdfast,pg-boss   --scenario=steady,latency   --rounds=N   --seconds=N
import { compare, keepResults, readFlags } from "./compare.mjs";
import { writePage } from "./page.mjs";
import { plotResults } from "./plot.mjs";
import { printReport, summarize } from "./report.mjs";

const PRODUCTS = ["holdfast", "pg-boss", "graphile-worker", "graphile-default", "bullmq-postgres", "bullmq-redis"];
const ON_POSTGRES = PRODUCTS.filter((name) => name !== "bullmq-redis");
const BEST = ["holdfast", "pg-boss", "graphile-worker"];
const entry = (scenario, rounds, seconds, contenders) => ({ scenario, rounds, seconds, contenders });

const PLAN = [
  entry("bulk", 2, 3, [...PRODUCTS, "raw-sql"]),
  entry("enqueue-1", 2, 1.5, PRODUCTS),
  entry("enqueue-16", 2, 1.5, PRODUCTS),
  entry("enqueue-128", 2, 1.5, PRODUCTS),
  entry("drain", 2, 1, [...PRODUCTS, "raw-sql"]),
  entry("steady", 2, 20, [...PRODUCTS, "raw-sql"]),
  entry("held", 1, 60, [...BEST, "raw-sql"]),
  entry("history", 2, 20, ["holdfast", "pg-boss"]),
  entry("queues", 1, 10, ["holdfast"]),
  entry("processes-1", 1, 1, PRODUCTS),
  entry("processes-2", 1, 1, PRODUCTS),
  entry("processes-4", 1, 1, PRODUCTS),
  entry("latency", 2, 3, PRODUCTS),
  entry("remote-latency", 1, 4, PRODUCTS),
  entry("loaded-latency", 1, 5, BEST),
  entry("idle", 1, 12, ON_POSTGRES),
  entry("purge", 1, 10, ["holdfast"]),
  entry("batches", 1, 1, ["holdfast"]),
  entry("inbox", 1, 1, ["holdfast"]),
  entry("embedded", 1, 5, ["holdfast-embedded"]),
];

const compared = await compare({ ...readFlags(PLAN), command: "node bench/full.mjs" });
if (compared) {
  const { environment, runs } = compared;
  const summary = summarize(runs);
  printReport(environment, summary);
  const file = keepResults("full", { environment, summary, runs });
  const plots = plotResults(file, summary);
  // A part of the comparison, or one with other lengths, is no news for the page.
  if (process.argv.length === 2) writePage({ environment, summary, file, plots });
  process.exitCode = runs.every((run) => run.counts?.right) ? 0 : 1;
} else process.exitCode = 130;
