// From the runs of one comparison to medians, ratios and the table people read. Pure but for the printing.
const TARGETS = [
  { text: "steady produce+consume at least 2 x the best peer", row: "steady", ratio: true, atLeast: 2 },
  {
    text: "held snapshot: last third at least 0.85 of its own clean figure",
    row: "heldShare",
    ratio: false,
    atLeast: 0.85,
  },
  { text: "single enqueue at least 10 x the best peer", row: "enqueue", ratio: true, atLeast: 10 },
  { text: "enqueue to start, p50 at most half of the best peer", row: "latencyP50", ratio: true, atMost: 0.5 },
];

const ROWS = [
  { key: "steady", title: "steady produce+consume, jobs/s" },
  { key: "heldFirst", title: "  held snapshot, first third, jobs/s" },
  { key: "heldLast", title: "  held snapshot, last third, jobs/s" },
  { key: "heldShare", title: "  last third / clean", digits: 2, noRatio: true },
  { key: "enqueue", title: "single enqueue, 128 callers, jobs/s" },
  { key: "latencyP50", title: "enqueue to start, idle, p50, ms", digits: 2, lower: true },
  { key: "latencyP99", title: "enqueue to start, idle, p99, ms", digits: 2, lower: true },
  { key: "cpu", title: "CPU per job (steady), us", digits: 1, lower: true },
  { key: "postgresCpu", title: "  of which PostgreSQL", digits: 1, noRatio: true },
  { key: "nodeCpu", title: "  of which Node", digits: 1, noRatio: true },
];

function median(values) {
  const sorted = values.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function percentile(values, p) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

function figuresOf(runs) {
  const of = (scenario) => runs.filter((run) => run.scenario === scenario && run.result);
  const results = (scenario, pick) => median(of(scenario).map((run) => pick(run.result)));
  const steady = results("steady", (result) => result.jobsPerSecond);
  const heldLast = results("held", (result) => result.lastThird);
  const samples = of("latency").flatMap((run) => run.result.samples);
  return {
    steady,
    heldFirst: results("held", (result) => result.firstThird),
    heldLast,
    heldShare: heldLast / steady,
    enqueue: results("enqueue", (result) => result.enqueuesPerSecond),
    latencyP50: percentile(samples, 0.5),
    latencyP99: percentile(samples, 0.99),
    cpu: median(of("steady").map((run) => run.postgresCpuMicrosPerJob + run.result.nodeCpuMicrosPerJob)),
    postgresCpu: median(of("steady").map((run) => run.postgresCpuMicrosPerJob)),
    nodeCpu: results("steady", (result) => result.nodeCpuMicrosPerJob),
    counts: {
      enqueued: sum(runs, "enqueued"),
      missing: sum(runs, "missing"),
      duplicates: sum(runs, "duplicates"),
      unfinished: sum(runs, "unfinished"),
      wrongRuns: runs.filter((run) => run.counts && !run.counts.right).length,
      failedRuns: runs.filter((run) => run.error).length,
    },
  };
}

const sum = (runs, key) => runs.reduce((total, run) => total + (run.counts?.[key] ?? 0), 0);

export function summarize(runs, contenders) {
  const figures = Object.fromEntries(
    contenders.map((contender) => [contender, figuresOf(runs.filter((run) => run.contender === contender))]),
  );
  const peers = contenders.filter((name) => name !== "holdfast" && name !== "raw-sql");
  const ratios = {};
  for (const { key, lower, noRatio } of ROWS) {
    const theirs = peers.map((peer) => figures[peer][key]).filter((value) => value !== undefined);
    const ours = figures.holdfast?.[key];
    if (noRatio || ours === undefined || theirs.length === 0) continue;
    ratios[key] = ours / (lower ? Math.min(...theirs) : Math.max(...theirs));
  }
  const targets = TARGETS.flatMap(({ text, row, ratio, atLeast, atMost }) => {
    const value = ratio ? ratios[row] : figures.holdfast?.[row];
    if (value === undefined) return [];
    return [{ text, value, met: atLeast === undefined ? value <= atMost : value >= atLeast }];
  });
  return { figures, ratios, targets };
}

export function printReport(environment, { figures, ratios, targets }, contenders) {
  const print = (line = "") => process.stdout.write(`${line}\n`);
  const cell = (value, digits = 0) =>
    value === undefined
      ? "-"
      : value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
  const line = (title, cells, last) =>
    print(title.padEnd(38) + cells.map((text) => text.padStart(17)).join("") + last.padStart(24));
  const { packages } = environment;
  print();
  print(`${environment.date}   ${environment.cpu}, ${environment.memory}, ${environment.system}`);
  print(
    `Node ${environment.node}, PostgreSQL ${environment.postgres} (fsync ${environment.fsync}, ` +
      `synchronous_commit ${environment.synchronousCommit}), holdfast ${packages.holdfast}, ` +
      `pg-boss ${packages["pg-boss"]}, graphile-worker ${packages["graphile-worker"]}, pg ${packages.pg}`,
  );
  print(
    `Medians over rounds; load average before ${environment.loadBefore.toFixed(1)}` +
      `${environment.loadBefore > 0.5 ? " (others use this machine: noisy)" : ""}`,
  );
  print();
  line("", contenders, "holdfast / best peer");
  for (const { key, title, digits } of ROWS) {
    const values = contenders.map((name) => figures[name][key]);
    if (values.every((value) => value === undefined)) continue;
    const cells = values.map((value) => cell(value, digits));
    line(title, cells, ratios[key] === undefined ? "" : `${ratios[key].toFixed(2)} x`);
  }
  const keeps = { holdfast: "kept", "pg-boss": "kept", "graphile-worker": "deleted", "raw-sql": "kept" };
  line(
    "finished jobs are",
    contenders.map((name) => keeps[name]),
    "",
  );
  line(
    "each job handled exactly once",
    contenders.map((name) => {
      const { missing, duplicates, unfinished, wrongRuns, failedRuns } = figures[name].counts;
      if (failedRuns > 0) return `${failedRuns} run(s) failed`;
      if (wrongRuns === 0) return "yes";
      return `NO -${missing} +${duplicates} ~${unfinished}`;
    }),
    "",
  );
  print();
  if (targets.length === 0) return print("No target can be judged without Holdfast and a peer in the same run.");
  for (const { text, value, met } of targets) print(`${met ? "met   " : "MISSED"}  ${text}: ${value.toFixed(2)}`);
}
