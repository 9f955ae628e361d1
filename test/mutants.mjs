// Breaks the product on purpose, one thing at a time, in a copy, and runs the tests that should notice: a suite that
// lets one of these live proves nothing. `node test/mutants.mjs [name …]`; `--list` names them, `--check` looks whether
// each finds what it breaks; FAULT_OUT: where the table goes; `--rest`: only those that the table does not know of the present
// engine, so that a run can be stopped and gone on with.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { engineOf, provenance } from "../scripts/faults/provenance.mjs";
import { startPostgres } from "./support/postgres-server.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * What is broken, in which built file, how, and which tests are asked: those that are the same in every `npm test` first,
 * those that draw their cases last. `from` is short: what stands around it may change.
 * `and`: what has to be changed with it; `also`: the same in another file.
 */
const MUTANTS = [
  {
    name: "a completion does not ask for the token",
    file: "store/jobs/settle.js",
    from: "j.token = s.token and j.state = 'running' and j.rerun is null",
    to: "j.state = 'running' and j.rerun is null",
    tests: ["test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "any other ending does not ask for the token",
    file: "store/jobs/settle.js",
    from: "j.token = s.token and j.state = 'running' and j.batch_id is null",
    to: "j.state = 'running' and j.batch_id is null",
    tests: ["test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "the claim counter starts again with a retry",
    file: "store/jobs/settle.js",
    from: "payload = coalesce(d.rerun, j.payload),",
    to: "payload = coalesce(d.rerun, j.payload), claim_count = 0,",
    tests: ["test/race/settle-expire.test.ts", "test/worker/outcomes.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a beat renews by worker, not by token",
    file: "store/jobs/beat.js",
    from: "l.token = w.token and l.lease_ms = w.lease_ms for update",
    to: "l.lease_ms = w.lease_ms for update",
    tests: ["test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "attempts are counted when they fail, not when they begin",
    file: "store/jobs/claim.js",
    from: "attempt = j.attempt + 1,",
    to: "attempt = j.attempt,",
    also: {
      file: "store/jobs/settle.js",
      from: "when d.verdict = 'retry' then j.attempt\n",
      to: "when d.verdict = 'retry' then j.attempt + 1\n",
    },
    tests: ["test/race/settle-expire.test.ts", "test/worker/outcomes.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "an enqueue is acknowledged before its commit",
    file: "client/enqueue.js",
    from: "await insertJobs(store, missing, lockTimeoutMs)",
    to: "(insertJobs(store, missing, lockTimeoutMs).catch(() => {}), missing.map(({ id }) => ({ id, created: true, conflict: false, coalesced: false })))",
    tests: ["test/client/keys.test.ts", "test/client/resend.test.ts"],
  },
  {
    name: "an expiry does not look at the state again",
    file: "store/janitor/expire-leases.js",
    from: "j.state = 'running'\n  order by",
    to: "true\n  order by",
    tests: ["test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "an expiry does not look whether the lease is still overdue",
    file: "store/janitor/expire-leases.js",
    from: "l.expires_at < :schema.clock() and not l.light",
    to: "not l.light",
    tests: ["test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "keys are written in the order of arrival",
    file: "store/jobs/insert.js",
    from: "from r where key is not null order by kind, key, n",
    to: "from (select distinct on (kind, key) * from r where key is not null order by kind, key, n) r order by n",
    and: { from: "select distinct on (kind, key) kind", to: "select kind" },
    tests: ["test/race/enqueue.test.ts"],
  },
  {
    name: "finished jobs are purged by when they were made",
    file: "store/janitor/history-leaves.js",
    from: "purge_at < $3 and purge_at >= $2",
    to: "created_at < $3 and purge_at >= $2",
    tests: ["test/store/retention.test.ts", "test/client/keys.test.ts"],
  },
  {
    name: "a cancel ends what runs",
    file: "store/jobs/cancel.js",
    from: "from mine m where m.state = 'pending'\n",
    to: "from mine m\n",
    tests: ["test/race/cancel.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a chunk's checkpoint is written outside its transaction",
    file: "worker/chunks.js",
    from: 'await writeNote(txStore, run.job.id, "chunks", name, JSON.stringify(note));\n                    await progress',
    to: 'await writeNote(store, run.job.id, "chunks", name, JSON.stringify(note));\n                    await progress',
    tests: ["test/long/chunks.test.ts", "test/long/lost.test.ts", "test/model/simulation/simulation.test.ts"],
  },
  {
    name: "a fenced transaction is not fenced",
    file: "store/jobs/fence.js",
    from: " and j.token = r.token and j.state = 'running' for update of j",
    to: " for update of j",
    tests: ["test/long/fence-race.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a key is freed while its job lives",
    file: "store/janitor/purge.js",
    from: "from due))\n    and not exists (",
    to: "from due))\n    or false and not exists (",
    tests: ["test/client/keys.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a key that is over is taken from a job that lives",
    file: "store/jobs/insert.js",
    from: " and not exists (select 1 from :schema.jobs j where j.id = l.job_id)",
    to: "",
    tests: ["test/client/keys.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a claim takes what a light lease names",
    file: "store/jobs/claim.js",
    from: "j.state = 'pending' and j.id not in ${LIGHT_IDS}\n",
    to: "j.state = 'pending'\n",
    tests: ["test/race/light.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a crash beside others counts",
    file: "store/janitor/expire-leases.js",
    from: "l.alone and ($2",
    to: "(true or $2",
    tests: ["test/race/settle-expire.test.ts", "test/worker/suspects.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "an expiry keeps the attempt",
    file: "store/janitor/expire-leases.js",
    from: "greatest(j.attempt - 1, 0)",
    to: "j.attempt",
    tests: ["test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a release keeps the attempt",
    file: "store/jobs/settle.js",
    from: "greatest(j.attempt - 1, 0)",
    to: "j.attempt",
    tests: ["test/worker/stop.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a lease is good from when its renewal was heard of, not from when it was sent",
    file: "worker/lease-keeper.js",
    from: "Math.max(lease.goodUntil, sentAt + lease.leaseMs)",
    to: "Math.max(lease.goodUntil, clockMs() + lease.leaseMs)",
    tests: ["test/long/lease-keeper.test.ts", "test/long/heartbeat.test.ts"],
  },
  {
    name: "an enqueue that is sent again does not look into the history",
    file: "store/jobs/insert.js",
    from: "select id from :schema.job_history where",
    to: "select id from :schema.job_history where false and",
    tests: ["test/client/resend.test.ts"],
  },
  {
    name: "a hand-over that is sent again does not look at all",
    file: "client/enqueue.js",
    from: 'handed === "unknown"',
    to: "false",
    tests: ["test/worker/hand-over.test.ts"],
  },
  {
    name: "a statement with a key does not know its own id",
    file: "store/jobs/insert.js",
    from: "(k.job_id = r.id and (k.is_new or b.job_id <> r.id))",
    to: "k.job_id = r.id",
    tests: ["test/client/resend.test.ts"],
  },
  {
    name: "a claim whose answer was lost is forgotten",
    file: "worker/claim-loop.js",
    from: "await claimedByToken(store, ",
    to: "await (async () => [])(store, ",
    tests: ["test/crash/network.test.ts"],
  },
  {
    name: "a claim is kept only once it is answered",
    file: "worker/thread-beater.js",
    from: "board.expect(lease, clockMs())",
    to: "false",
    tests: ["test/long/blocked.test.ts"],
  },
  {
    name: "a database that takes no writes is taken at its word",
    file: "db/retryable.js",
    from: "code === READ_ONLY_TRANSACTION || code === DISK_FULL",
    to: "false",
    tests: ["test/crash/read-only.test.ts"],
  },
  {
    name: "a whole light claim is settled though it names others than those that ran",
    file: "store/jobs/settle.js",
    from: " and cardinality(l.job_ids) = $4",
    to: "",
    and: { from: "<> $4 then", to: "<> $4 and false then" },
    tests: ["test/race/light.test.ts"],
  },
  {
    name: "a whole light claim is settled without its token",
    file: "store/jobs/settle.js",
    from: "where l.token = $1 and l.lease_ms = $2 and l.light",
    to: "where l.lease_ms = $2 and l.light",
    tests: ["test/race/light.test.ts"],
  },
  {
    name: "a whole light claim takes the leases of others with it",
    file: "store/jobs/settle.js",
    from: "delete from :schema.leases l where l.token = $1 and l.lease_ms = $2;",
    to: "delete from :schema.leases l where l.lease_ms = $2;",
    tests: ["test/race/light.test.ts"],
  },
  {
    name: "a completion of a claim does not ask for the token",
    file: "store/jobs/settle.js",
    from: "j.token = $2::bigint and j.state = 'running'",
    to: "j.state = 'running'",
    tests: ["test/race/settle-expire.test.ts", "test/race/light.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a light claim is settled after its end",
    file: "store/jobs/settle.js",
    from: "when: `exists (",
    to: "when: `true or exists (",
    tests: ["test/race/light.test.ts", "test/race/settle-expire.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a light claim takes what another one names",
    file: "store/jobs/claim-light.js",
    from: "where l.light and l.kind = $4",
    to: "where false and l.kind = $4",
    tests: ["test/race/light.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "an item's ending does not ask for the token",
    file: "store/batches/settle.js",
    from: "j.token = s.token and j.state = 'running'",
    to: "j.state = 'running'",
    tests: ["test/race/batches.test.ts", "test/batches/life.test.ts", "test/batches/hand-back.test.ts"],
  },
  {
    name: "a parcel that one consumer holds is given to another",
    file: "store/inbox/take.js",
    from: "and (p.held_until is null or p.held_until <= :schema.clock())",
    to: "",
    tests: ["test/inbox/poll.test.ts"],
  },
  {
    name: "kinds are told apart by their hash alone",
    file: "store/jobs/lane.js",
    from: " and j.kind = ${kind}",
    to: "",
    tests: ["test/store/claim-index.test.ts"],
  },
  {
    name: "a suspect's five minutes count from when it was due",
    file: "store/jobs/claim.js",
    from: "greatest(j.run_at, j.started_at)",
    to: "j.run_at",
    tests: ["test/worker/suspects.test.ts"],
  },
  {
    name: "a deadline goes by a clock that can be set",
    file: "worker/persist.js",
    from: "performance.now()",
    to: "Date.now()",
    tests: ["test/crash/clocks.test.ts"],
  },
  {
    name: "the pause between notifications goes by a clock that can be set",
    file: "worker/wake-ups.js",
    from: "performance.now()",
    to: "Date.now()",
    tests: ["test/worker/wake-ups.test.ts"],
  },
  {
    name: "what is enqueued to a running job that coalesces is forgotten",
    file: "store/jobs/insert.js",
    from: "rerun = case when l.state = 'running' then excluded.payload end,",
    to: "rerun = l.rerun,",
    tests: ["test/race/coalesce.test.ts", "test/client/coalesce-key.test.ts"],
  },
  {
    name: "a run that was taken away, and enqueued to meanwhile, goes on with the old payload",
    file: "store/jobs/release.js",
    from: "payload = coalesce(j.rerun, j.payload),",
    to: "payload = j.payload,",
    tests: ["test/client/jobs-release.test.ts", "test/race/coalesce.test.ts"],
  },
  {
    name: "a snooze uses an attempt",
    file: "store/jobs/settle.js",
    from: "when d.verdict = 'retry' then j.attempt\n",
    to: "when d.verdict in ('retry', 'snooze') then j.attempt\n",
    tests: ["test/worker/outcomes.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a death is not followed",
    file: "store/jobs/settle.js",
    from: "where d.verdict = 'dead' and d.on_dead is not null",
    to: "where false and d.on_dead is not null",
    tests: ["test/client/on-dead.test.ts"],
  },
  {
    name: "members of a group do not wait for its head",
    file: "store/jobs/insert.js",
    from: "g.head = f.id then 0 else 1 end",
    to: "g.head = f.id then 0 else 0 end",
    tests: ["test/worker/groups.test.ts", "test/race/group.test.ts"],
  },
  {
    name: "leases expire right after PostgreSQL came up",
    file: "store/janitor/expire-leases.js",
    from: "and pg_postmaster_start_time() + l.lease_ms * interval '1 millisecond' < :schema.clock()",
    to: "",
    tests: ["test/crash/after-restart.test.ts"],
  },
  {
    name: "leases expire though the database was away for longer than they last",
    file: "store/janitor/expire-leases.js",
    from: "l.lease_ms < $3::bigint",
    to: "true",
    tests: ["test/crash/after-restart.test.ts"],
  },
  {
    name: "what was taken away from a worker can still be written by it",
    file: "store/jobs/release.js",
    from: "  state = 'pending',\n  token = null,",
    to: "  state = 'running',",
    tests: ["test/client/jobs-release.test.ts", "test/race/settle-expire.test.ts"],
  },
  {
    name: "runs that end together end their lease though one of them is left",
    file: "store/jobs/settle.js",
    from: "and (select count(*) from gone) = (select count(*) from s)",
    to: "and true",
    tests: ["test/race/lease-stays.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "the last runs of a claim end its lease though one of them is left",
    file: "store/jobs/settle.js",
    from: " and (select count(*) from gone) = $6",
    to: " and $6 = $6",
    tests: ["test/race/lease-stays.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "a beat ends every lease of a claim",
    file: "store/jobs/beat.js",
    from: "l.token = d.token and l.lease_ms = d.lease_ms for update",
    to: "l.token = d.token for update",
    tests: ["test/race/lease-stays.test.ts"],
  },
  {
    name: "a dead job that is run again keeps its crashes",
    file: "store/jobs/retry.js",
    from: "attempt = 0, crash_count = 0,",
    to: "attempt = 0,",
    tests: ["test/race/lease-stays.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "an expiry does not ask for the token",
    file: "store/janitor/expire-leases.js",
    from: "j.token = d.token and j.state = 'running'\n  order by",
    to: "j.state = 'running'\n  order by",
    tests: ["test/race/lease-stays.test.ts", "test/model/model.test.ts"],
  },
  {
    name: "an expiry does not spare the workers of its own process",
    file: "janitor/chores/expire-leases.js",
    from: "spare: isEmbedded ? input.liveWorkers() : []",
    to: "spare: []",
    tests: ["test/worker/spared.test.ts"],
  },
  {
    name: "notes of a finished run stay for the next run of a job that coalesces",
    file: "store/jobs/settle.js",
    from: "where n.job_id = f.id and f.rerun is not null",
    to: "where false",
    tests: ["test/client/coalesce-key.test.ts"],
  },
  {
    name: "an item pays for whoever stands still with its batch",
    file: "worker/fenced.js",
    from: "if (!isLockTimeout(error))",
    to: "if (true)",
    tests: ["test/batches/locked-batch.test.ts"],
  },
  {
    name: "a call is given up though its answer is there",
    file: "db/deadline.js",
    from: "look = setImmediate(onTime)",
    to: "onTime()",
    tests: ["test/db/busy-process.test.ts"],
  },
  {
    name: "a lease that the handler's own write finds lost is not told of",
    file: "worker/worker.js",
    from: "return tellLost(run);",
    to: "return run.aborted ? undefined : tellLost(run);",
    tests: ["test/long/lost.test.ts"],
  },
  {
    name: "a create that batches.apply refuses stays",
    file: "store/batches/clients.js",
    from: "store.query(UNDO)",
    to: "store.query(KEEP)",
    tests: ["test/batches/refused-commands.test.ts"],
  },
];

if (process.argv.includes("--list")) {
  for (const { name } of MUTANTS) process.stdout.write(`${name}\n`);
  process.exit(0);
}

/** The file's text with that broken. It may stand there several times; every one of them is broken. */
function breakIt({ from, to, and }, good) {
  const changes = and ? [{ from, to }, and] : [{ from, to }];
  return changes.reduce((text, change) => text.replaceAll(change.from, () => change.to), good);
}

// Before the first of them is tried, not after an hour.
const lost = MUTANTS.filter(({ file, from, and, also }) => {
  const stands = (where, what) => readFileSync(join(root, "dist", where), "utf8").includes(what);
  return !stands(file, from) || (and && !stands(file, and.from)) || (also && !stands(also.file, also.from));
});
for (const { name, file } of lost) process.stderr.write(`"${name}": ${file} does not have the text to be broken.\n`);
// A file that is not there ends as badly as one that fails.
const unasked = MUTANTS.filter(({ tests }) => tests.some((test) => !existsSync(join(root, test))));
for (const { name } of unasked) process.stderr.write(`"${name}": not all of its tests are there.\n`);
if (lost.length + unasked.length > 0) process.exit(1);
if (process.argv.includes("--check")) process.exit(0);

const engine = engineOf();
const table = process.env.FAULT_OUT ? join(process.env.FAULT_OUT, "mutants.json") : undefined;
const NOTHING = { killed: [], alive: [], unsure: [] };

/** What the table says of this engine. What it says of another one goes to the earlier results. */
function known() {
  if (table === undefined || !existsSync(table)) return NOTHING;
  const found = JSON.parse(readFileSync(table, "utf8"));
  if (found.engine === engine) return { ...NOTHING, ...found };
  const earlier = join(dirname(table), "earlier");
  mkdirSync(earlier, { recursive: true });
  renameSync(table, join(earlier, `mutants-${found.engine ?? "unknown"}.json`));
  return NOTHING;
}

const isRest = process.argv.includes("--rest");
if (isRest && table === undefined) {
  process.stderr.write("--rest needs FAULT_OUT: the folder with the table of what was tried before.\n");
  process.exit(1);
}
const tried = isRest ? known() : NOTHING;
// An unsure one was tried, and nothing came of it: once more.
const isTried = (name) => tried.killed.some((one) => one.name === name) || tried.alive.includes(name);
const wanted = process.argv.slice(2).filter((part) => part !== "--rest");
const chosen = MUTANTS.filter(
  ({ name }) => (wanted.length === 0 || wanted.some((part) => name.includes(part))) && !isTried(name),
);
if (chosen.length === 0) {
  process.stderr.write(isRest ? "None is left.\n" : "There is none of that name: see --list.\n");
  process.exit(isRest ? 0 : 1);
}
const copy = mkdtempSync(join(tmpdir(), "holdfast-mutants-"));
for (const path of [
  "dist",
  "test",
  "scripts",
  "migrations",
  "package.json",
  "vitest.config.ts",
  "tsconfig.json",
  "src",
]) {
  cpSync(join(root, path), join(copy, path), { recursive: true, filter: (from) => !from.includes("/results/") });
}
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
const server = await startPostgres({ settings: { fsync: "off" } });

/** The name of the first test that failed, null if none did. */
async function run(tests) {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const args = [
    join("node_modules", "vitest", "vitest.mjs"),
    "run",
    "--bail=1",
    "--reporter=json",
    `--outputFile=${report}`,
  ];
  // Not spawnSync: somebody has to read what the server logs, or it waits for that in the end.
  const child = spawn(process.execPath, [...args, ...tests], {
    cwd: copy,
    env: {
      ...process.env,
      TEST_DATABASE_URL: server.url(),
      MODEL_RUNS: "150",
      SIM_SEEDS: "60",
      MODEL_SEED: "1",
      SIM_SEED: "1",
      // What a broken product comes to is no result.
      FAULT_OUT: "",
    },
    stdio: "ignore",
    timeout: 600_000,
  });
  await once(child, "exit");
  if (!existsSync(report)) return { file: tests[0], test: "did not end within ten minutes", why: "" };
  const { testResults } = JSON.parse(readFileSync(report, "utf8"));
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed) {
      const found = { file: name.slice(copy.length + 1), test: failed.fullName.trim() };
      // Only for whoever looks at it: not part of the table.
      return Object.defineProperty(found, "why", { value: failed.failureMessages[0] });
    }
  }
  return null;
}

/** Of those that are not asked for now, what is written down already stands. An unsure one has no other result beside that. */
function write() {
  if (table === undefined) return;
  mkdirSync(dirname(table), { recursive: true });
  const before = known();
  const isNew = (name) => alive.includes(name) || unsure.includes(name) || killed.some((one) => one.name === name);
  const isKept = (name) => MUTANTS.some((one) => one.name === name) && !isNew(name);
  const order = new Map(MUTANTS.map(({ name }, at) => [name, at]));
  const all = [...before.killed.filter(({ name }) => isKept(name)), ...killed];
  const result = {
    part: "mutants",
    seed: 1,
    ...provenance(),
    mutants: MUTANTS.length,
    killed: all.toSorted((a, b) => order.get(a.name) - order.get(b.name)),
    alive: [...before.alive.filter(isKept), ...alive],
    unsure: [...before.unsure.filter(isKept), ...unsure],
  };
  writeFileSync(table, `${JSON.stringify(result, null, 1)}\n`);
}

const killed = [];
const alive = [];
const unsure = [];
/** Files that passed with nothing broken. */
const passed = new Set();
const isRepeatable = (file) => file.startsWith("test/model/");
for (const mutant of chosen) {
  const { name, file, tests } = mutant;
  const broken = [mutant, ...(mutant.also ? [mutant.also] : [])].map((change) => {
    const path = join(copy, "dist", change.file);
    const good = readFileSync(path, "utf8");
    return { path, good, bad: breakIt(change, good) };
  });
  let found = null;
  let anyway = null;
  for (let tries = 0; tries < 2; tries += 1) {
    for (const { path, bad } of broken) writeFileSync(path, bad);
    found = null;
    for (const test of tests) {
      found = await run([test]);
      if (found) break;
    }
    for (const { path, good } of broken) writeFileSync(path, good);
    // A test that fails without it as well, now and then or always, would kill anything.
    // (The model's tests repeat exactly: once is enough.)
    const isKnown = found && isRepeatable(found.file) && passed.has(found.file);
    anyway = found && !isKnown ? await run([found.file]) : null;
    if (found && !anyway) passed.add(found.file);
    if (!anyway) break;
  }
  if (anyway) unsure.push(name);
  else if (found) killed.push({ name, file, by: { file: found.file, test: found.test } });
  else alive.push(name);
  const how = anyway ? "UNSURE" : found ? "killed" : "ALIVE ";
  const by = found ? `  by ${found.file}: ${found.test}\n        ${found.why.split("\n", 1)[0]}` : "";
  process.stderr.write(`${how}  ${name}${by}\n`);
  if (anyway) process.stderr.write(`        ${anyway.test} fails with nothing broken:\n${anyway.why}\n`);
  write();
}
await server.remove();
rmSync(copy, { recursive: true, force: true });
process.exit(alive.length + unsure.length === 0 ? 0 : 1);
