// Judges a run: the history of the driver against the facts of the database. Pure, so that it can be shown doctored
// histories and must see through each of them (test/model/judge.test.ts).
//
// Each invariant says how much it looked at and what broke it. A run in which nothing worked proves nothing: it fails too.
// I13 (schedules) is not here: there are none.
import type { AuditFact, Facts, JobFact } from "./facts.ts";
import { forgottenRuns, runOf } from "./forgotten.ts";
import type { Asked, Line } from "./record.ts";

export interface Verdict {
  /** Invariant → how many things it looked at. */
  looked: Record<string, number>;
  /** Sentences, each with the invariant it is about. */
  violations: string[];
  counts: {
    asked: number;
    ok: number;
    failed: number;
    unknown: number;
    jobs: number;
    done: number;
    faults: number;
    /** Runs of claims that a crash of PostgreSQL has taken along. */
    forgotten: number;
  };
}

export interface Expectations {
  /** Of what was asked while faults went on, at least this share was answered with ok. */
  okShare?: number;
  /** How long after the last fault everything may take to be over. */
  drainMs?: number;
  /** False: there may have been none. */
  faults?: boolean;
  /** Faults whose names begin so: there were at least so many. A storm of the wrong kind proves nothing about this one. */
  leastFaults?: Record<string, number>;
  /** Invariants that had something to look at. */
  covers?: readonly string[];
}

/** What every storm has something of, however short it is. */
export const COVERED_BY_STORMS = [
  "I1",
  "I2",
  "I3",
  "I4",
  "I5",
  "I6",
  "I7",
  "I8",
  "I9",
  "I10",
  "I11",
  "I12",
  "I15",
  "I16",
];

const MOST_SHOWN = 20;
const TERMINAL = new Set(["done", "dead", "cancelled"]);

export function judge(lines: readonly Line[], facts: Facts, expected: Expectations = {}): Verdict {
  const { okShare = 0.5, drainMs = 120_000, faults: needsFaults = true, leastFaults = {}, covers = [] } = expected;
  const looked: Record<string, number> = {};
  const violations: string[] = [];
  const check = (invariant: string, holds: boolean, say: () => string): void => {
    looked[invariant] = (looked[invariant] ?? 0) + 1;
    if (!holds && violations.length < MOST_SHOWN) violations.push(`${invariant}: ${say()}`);
  };

  const told = readHistory(lines);
  const byN = groupBy(facts.jobs, (job) => job.n);
  const byId = new Map(facts.jobs.map((job) => [job.id, job]));
  const audits = groupBy(facts.audit, (entry) => entry.job);
  const forgotten = forgottenRuns(lines, facts);
  const starts = groupBy(
    facts.execs.filter((exec) => !forgotten.has(runOf(exec))),
    (exec) => exec.job,
  );
  const effects = groupBy(facts.effects, (effect) => effect.job);

  // I1: what was acknowledged is there, and has ended.
  for (const [n, { ids }] of told.acked) {
    const found = byN.get(n) ?? [];
    const isThere = found.length > 0 || ids.some((id) => facts.purged.has(id));
    check("I1", isThere, () => `job ${n} was acknowledged (${ids[0]}) and is lost`);
    for (const job of found) check("I1", TERMINAL.has(job.state), () => `job ${n} is still ${job.state}`);
  }

  // I2: nothing exists, and nothing ran, that was not asked for. Without a number are only those that follow a batch.
  const unnumbered = facts.jobs.filter((job) => job.n < 0).length;
  const following = facts.batches.reduce((sum, batch) => sum + batch.follow, 0);
  check("I2", unnumbered === following, () => `${unnumbered} jobs have no number, ${following} follow a batch`);
  for (const job of facts.jobs) {
    if (job.n < 0) continue;
    const isMeant = job.state !== "cancelled" || told.cancels.has(job.n);
    check("I2", isMeant, () => `job ${job.n} is cancelled, and nobody asked for that`);
    check("I2", told.asked.has(job.n), () => `job ${job.id} (n ${job.n}) was never asked for`);
    check("I2", !told.refused.has(job.n), () => `job ${job.n} exists though its enqueue was refused`);
  }
  const owners = new Set(facts.audit.map(runOf));
  for (const exec of facts.execs) {
    check(
      "I2",
      byId.has(exec.job) || facts.purged.has(exec.job),
      () => `a handler ran for ${exec.job}, which is no job`,
    );
    const isOwner = owners.has(runOf(exec)) || forgotten.has(runOf(exec));
    check("I6", isOwner, () => `a handler ran for ${exec.job} under ${exec.token}, which never owned it`);
  }

  // I3: one job per enqueue and per key; every answer about a key names the same job.
  for (const [n, jobs] of byN) {
    if (n >= 0) check("I3", jobs.length === 1, () => `enqueue ${n} became ${jobs.length} jobs`);
  }
  for (const [key, ids] of told.keys) {
    check("I3", ids.size === 1, () => `key ${key} was answered with ${[...ids].join(" and ")}`);
    check("I3", ids.has(facts.keys.get(key)!), () => `the ledger has ${facts.keys.get(key)} for key ${key}`);
  }
  judgeConflicts(told, byN, check);
  for (const [key, jobs] of groupBy(
    facts.jobs.filter((job) => job.key !== null),
    (job) => job.key!,
  )) {
    check("I3", jobs.length === 1, () => `key ${key} has ${jobs.length} jobs`);
  }
  for (const [n, { ids }] of told.acked) {
    const job = byN.get(n)?.[0];
    if (job) check("I3", ids.includes(job.id), () => `enqueue ${n} was answered with ${ids[0]}, the job is ${job.id}`);
  }

  for (const job of facts.jobs) {
    const asked = told.asked.get(job.n);
    if (!asked) continue;
    judgeJob(job, asked, {
      check,
      execs: starts.get(job.id) ?? [],
      effects: effects.get(job.id) ?? [],
      charged: facts.charged.get(job.id) ?? 0,
      troubled: facts.troubled.get(job.id) ?? 0,
    });
  }

  for (const [id, entries] of audits) judgeOwners(id, entries, effects.get(id) ?? [], check);

  // I10: batches are counted, end once, and say so once.
  const batches = groupBy(facts.batches, (batch) => batch.key);
  for (const [key, { items, isAcked }] of told.batches) {
    const found = batches.get(key) ?? [];
    if (isAcked) check("I10", found.length > 0, () => `batch ${key} was acknowledged and is lost`);
    check("I10", found.length <= 1, () => `batch ${key} is there ${found.length} times`);
    for (const { total } of found) check("I10", total === items, () => `batch ${key} has ${total} of ${items} items`);
  }
  for (const batch of facts.batches) {
    check("I10", told.batches.has(batch.key!), () => `batch ${batch.id} was never asked for`);
    check("I10", batch.state === "done", () => `batch ${batch.id} is ${batch.state}`);
    check("I10", batch.ended === batch.total, () => `batch ${batch.id}: ${batch.ended} of ${batch.total} counted`);
    check("I10", batch.outcomes === batch.total, () => `batch ${batch.id}: ${batch.outcomes} of ${batch.total} ended`);
    check("I10", batch.completions === 1, () => `batch ${batch.id} was completed ${batch.completions} times`);
    check("I10", batch.follow === 1, () => `batch ${batch.id} was followed by ${batch.follow} jobs`);
    check("I10", batch.doubles === 0, () => `batch ${batch.id}: ${batch.doubles} effects twice`);
    check(
      "I10",
      batch.unmatched === 0,
      () => `batch ${batch.id}: ${batch.unmatched} items or effects without the other`,
    );
  }

  // I12: a parcel that was acknowledged is there once and whole, and arrived; nothing else did.
  const parcels = groupBy(facts.parcels, (parcel) => parcel.key);
  for (const [key, { sha256, isAcked }] of told.puts) {
    const found = parcels.get(key) ?? [];
    if (isAcked)
      check("I12", found.length === 1, () => `parcel ${key} was acknowledged and is there ${found.length} times`);
    if (isAcked) check("I12", told.arrived.has(key), () => `parcel ${key} was acknowledged and never arrived`);
    for (const parcel of found) {
      check("I12", parcel.sha256 === sha256, () => `parcel ${key} says that it is something else`);
      check("I12", parcel.contentSha256 === sha256, () => `parcel ${key} is not what was put`);
      check("I12", parcel.acked, () => `parcel ${key} was never acked`);
    }
  }
  for (const key of parcels.keys()) check("I12", told.puts.has(key), () => `parcel ${key} was never put`);
  for (const [key, hashes] of told.arrived) {
    const wanted = told.puts.get(key)?.sha256;
    for (const hash of hashes) check("I12", hash === wanted, () => `parcel ${key} arrived as something else`);
  }

  for (const id of facts.purged) {
    check("I14", !facts.purgedEarly.includes(id), () => `job ${id} was purged before its time`);
    check("I14", !byId.has(id), () => `job ${id} was purged, and is there`);
  }

  judgeGroups(told, { byN, audits, starts, check });

  // I15: it came to rest after the last fault, and what was asked then was done.
  const healedAt = told.phases.get("healed");
  const drainedAt = told.phases.get("drained");
  check("I15", healedAt !== undefined && drainedAt !== undefined, () => "the run never came to rest");
  if (healedAt !== undefined && drainedAt !== undefined) {
    const took = drainedAt - healedAt;
    check("I15", took <= drainMs, () => `it took ${took} ms to come to rest, ${drainMs} were allowed`);
    check("I15", told.tail.asked > 0, () => "nothing was asked after the last fault");
    check(
      "I15",
      told.tail.ok === told.tail.asked,
      () => `after the last fault ${told.tail.asked} asked, ${told.tail.ok} ok`,
    );
  }
  for (const job of facts.jobs) check("I15", job.state !== "running", () => `job ${job.n} is still running`);

  // A run in which everything errored must not pass.
  const { during } = told;
  const done = facts.jobs.filter((job) => job.state === "done").length;
  check("enough", during.asked > 0, () => "nothing was asked while faults went on");
  check(
    "enough",
    during.ok >= okShare * during.asked,
    () => `only ${during.ok} of ${during.asked} operations were ok while faults went on`,
  );
  check("enough", done > 0, () => "no job was done");
  check(
    "enough",
    done >= okShare * told.acked.size,
    () => `${done} jobs were done, ${told.acked.size} were acknowledged`,
  );
  if (needsFaults) check("enough", told.faults.length > 0, () => "there were no faults");
  for (const [name, least] of Object.entries(leastFaults)) {
    const count = told.faults.filter((fault) => fault.startsWith(name)).length;
    check("enough", count >= least, () => `"${name}" happened ${count} times, ${least} were to be expected`);
  }
  for (const invariant of covers) {
    check("enough", (looked[invariant] ?? 0) > 0, () => `there was nothing to judge ${invariant} by`);
  }

  const { ok, failed, unknown } = told.answers;
  return {
    looked,
    violations,
    counts: {
      asked: told.ops,
      ok,
      failed,
      unknown,
      jobs: facts.jobs.length,
      done,
      faults: told.faults.length,
      forgotten: forgotten.size,
    },
  };
}

interface Told {
  ops: number;
  asked: Map<number, Asked>;
  acked: Map<number, { ids: string[] }>;
  /** Definitely not accepted, in every try. */
  refused: Set<number>;
  /** Of which jobs somebody asked the end. */
  cancels: Set<number>;
  keys: Map<string, Set<string>>;
  /** What was said about the payloads of a key. */
  payloads: Map<string, { n: number; isOther: boolean; isConflict: boolean; isCreated: boolean }[]>;
  /** Where in the history a job was first asked for, and first acknowledged. */
  askedAt: Map<number, number>;
  ackedAt: Map<number, number>;
  batches: Map<string, { items: number; isAcked: boolean }>;
  puts: Map<string, { sha256: string; isAcked: boolean }>;
  /** Key → the hashes it arrived with. */
  arrived: Map<string, Set<string>>;
  phases: Map<string, number>;
  faults: string[];
  during: { asked: number; ok: number };
  tail: { asked: number; ok: number };
  answers: { ok: number; failed: number; unknown: number };
}

function readHistory(lines: readonly Line[]): Told {
  const told: Told = {
    ops: 0,
    asked: new Map(),
    acked: new Map(),
    refused: new Set(),
    cancels: new Set(),
    keys: new Map(),
    payloads: new Map(),
    askedAt: new Map(),
    ackedAt: new Map(),
    batches: new Map(),
    puts: new Map(),
    arrived: new Map(),
    phases: new Map(),
    faults: [],
    during: { asked: 0, ok: 0 },
    tail: { asked: 0, ok: 0 },
    answers: { ok: 0, failed: 0, unknown: 0 },
  };
  const open = new Map<number, { jobs: Asked[]; verb: string; when: "during" | "tail" | undefined }>();
  let when: "during" | "tail" | undefined;
  const maybe = new Set<number>();
  for (const [position, line] of lines.entries()) {
    if ("phase" in line) {
      told.phases.set(line.phase, line.at);
      if (line.phase === "faults") when = "during";
      if (line.phase === "healed") when = "tail";
    } else if ("fault" in line) {
      told.faults.push(line.fault);
    } else if ("arrived" in line) {
      told.arrived.set(line.arrived, (told.arrived.get(line.arrived) ?? new Set()).add(line.sha256));
    } else if (line.is === "asked") {
      told.ops += 1;
      open.set(line.op, { jobs: line.jobs, verb: line.verb, when });
      if (when) told[when].asked += 1;
      if (line.verb === "cancel") for (const { n } of line.jobs) told.cancels.add(n);
      if (line.verb === "batch") {
        for (const { key, items } of line.jobs) {
          if (!told.batches.has(key!)) told.batches.set(key!, { items: items!, isAcked: false });
        }
      }
      if (line.verb === "put") {
        for (const { key, sha256 } of line.jobs) {
          if (!told.puts.has(key!)) told.puts.set(key!, { sha256: sha256!, isAcked: false });
        }
      }
      if (line.verb === "enqueue") {
        // The same key again is about the job that was first: its payload stays.
        for (const job of line.jobs) {
          if (told.asked.has(job.n)) continue;
          told.asked.set(job.n, job);
          told.askedAt.set(job.n, position);
        }
      }
    } else {
      const asked = open.get(line.op);
      if (!asked) throw new Error(`The history answers operation ${line.op}, which was not asked.`);
      open.delete(line.op);
      told.answers[line.is] += 1;
      if (line.is === "ok" && asked.when) told[asked.when].ok += 1;
      if (asked.verb === "batch" && line.is === "ok") {
        for (const { key } of asked.jobs) told.batches.get(key!)!.isAcked = true;
      }
      if (asked.verb === "put" && line.is === "ok") {
        for (const { key } of asked.jobs) told.puts.get(key!)!.isAcked = true;
      }
      if (asked.verb !== "enqueue") continue;
      for (const [index, job] of asked.jobs.entries()) {
        if (line.is === "unknown") maybe.add(job.n);
        if (line.is === "failed" && !maybe.has(job.n) && !told.acked.has(job.n)) told.refused.add(job.n);
        if (line.is !== "ok") continue;
        told.refused.delete(job.n);
        const id = line.ids[index]!;
        if (job.key !== undefined) {
          const ids = told.keys.get(job.key) ?? new Set();
          told.keys.set(job.key, ids.add(id));
          const isConflict = line.conflict?.[index];
          if (isConflict !== undefined) {
            const said = told.payloads.get(job.key) ?? [];
            const isCreated = line.created?.[index] ?? false;
            said.push({ n: job.n, isOther: job.other === true, isConflict, isCreated });
            told.payloads.set(job.key, said);
          }
        }
        if (!told.ackedAt.has(job.n)) told.ackedAt.set(job.n, position);
        // A second enqueue under a key is an acknowledgement of the first.
        const isFirst = line.created?.[index] ?? true;
        const known = told.acked.get(job.n);
        if (known) known.ids.push(id);
        else if (isFirst || job.key === undefined || maybe.has(job.n)) told.acked.set(job.n, { ids: [id] });
      }
    }
  }
  // Nobody answered before the end: it may or may not have happened.
  for (const { jobs } of open.values()) for (const job of jobs) told.refused.delete(job.n);
  return told;
}

type Check = (invariant: string, holds: boolean, say: () => string) => void;

interface AboutJob {
  check: Check;
  execs: Facts["execs"];
  effects: Facts["effects"];
  charged: number;
  troubled: number;
}

function judgeJob(job: JobFact, asked: Asked, { check, execs, effects, charged, troubled }: AboutJob): void {
  const name = `job ${job.n} (${job.id})`;
  // I4: what is done was run to its end, by the run that was accepted.
  if (job.state === "done") {
    check(
      "I4",
      execs.some((exec) => exec.what === "end" && exec.token === job.token),
      () => `${name} is done by ${job.token}, whose handler never ended`,
    );
    check(
      "I6",
      job.resultToken === null || job.resultToken === job.token,
      () => `${name} has the result of ${job.resultToken} and was settled by ${job.token}`,
    );
  }
  // I5: an effect that shares the commit of the completion is there once if the job is done, and otherwise not at all.
  if (asked.effect === "complete") {
    const wanted = job.state === "done" ? 1 : 0;
    check("I5", effects.length === wanted, () => `${name} is ${job.state} and has ${effects.length} effects`);
    for (const effect of effects) {
      check("I5", effect.token === job.token, () => `${name} has the effect of ${effect.token}, not of ${job.token}`);
    }
  }
  if (asked.effect === "step") {
    check("I5", effects.length <= 1, () => `${name} took its step ${effects.length} times`);
    if (job.state === "done") check("I5", effects.length === 1, () => `${name} is done without its step`);
  }
  // I8: attempts are those its payload asks for; a fault costs none. A handler that fails because a statement of its own
  // got no answer has failed: that is charged, and counted apart.
  const fails = asked.fatal ? 1 : Math.min(asked.fail ?? 0, job.maxAttempts);
  const own = charged - troubled;
  check("I8", job.attempt <= job.maxAttempts, () => `${name} used ${job.attempt} of ${job.maxAttempts} attempts`);
  check("I8", job.crashCount <= 3, () => `${name} has ${job.crashCount} crashes`);
  if (job.state === "done") {
    check("I8", own <= fails && charged >= fails, () => `${name} was charged ${charged} attempts instead of ${fails}`);
    check("I8", job.attempt === charged + 1, () => `${name} was done in attempt ${job.attempt}, not ${charged + 1}`);
  }
  // What ends its process, or says that it is hopeless, is dead unless somebody cancelled it.
  if (asked.die || asked.fatal) {
    const isOver = job.state === "dead" || job.state === "cancelled";
    check("I8", isOver, () => `${name} should be dead, and is ${job.state}`);
  }
  if (job.state === "dead") {
    const isSpent = charged >= job.maxAttempts && (troubled > 0 || (asked.fail ?? 0) >= job.maxAttempts);
    const deserved = asked.fatal === true || asked.die === true || isSpent;
    check("I8", deserved, () => `${name} is dead (${job.reason}) and did not deserve it`);
  }
  // I11: chunks are saved in order and once each; at most one is done again for each run that broke off.
  if (asked.effect === "chunks") {
    const items = effects.map((effect) => effect.item);
    const sorted = items.every((item, at) => at === 0 || item > items[at - 1]!);
    check("I11", sorted, () => `${name} saved its items in the order ${items.join(" ")}`);
    if (job.state === "done") {
      check("I11", items.length === asked.items, () => `${name} saved ${items.length} of ${asked.items} items`);
      // The log of handlers may say a thing twice (its own answer was lost), never another thing.
      const chunks = execs.filter((exec) => exec.what === "chunk");
      const begun = new Set(chunks.map((exec) => `${exec.token} ${exec.item}`)).size;
      const saved = new Set(chunks.map((exec) => exec.item)).size;
      const runs = new Set(execs.flatMap((exec) => (exec.what === "start" ? [exec.token] : []))).size;
      check("I11", begun - saved <= runs - 1, () => `${name} did ${begun - saved} chunks again in ${runs} runs`);
    }
  }
}

/** I6, I7, I9: who owned the job when, as the audit has it. */
function judgeOwners(id: string, entries: readonly AuditFact[], effects: Facts["effects"], check: Check): void {
  let owner: string | null = null;
  let isLight = false;
  let last: { owner: string; xact: string } | undefined;
  let claims = 0;
  let isOver = false;
  let later: string | undefined;
  let next = 0;
  const release = (xact: string): void => {
    if (owner !== null) last = { owner, xact };
    owner = null;
    isLight = false;
  };
  const effectsUntil = (seq: number): void => {
    for (; next < effects.length && effects[next]!.seq < seq; next += 1) {
      const { token, what } = effects[next]!;
      const holder = owner;
      check("I6", holder === token, () => `job ${id}: ${what} was written by ${token} while ${holder} owned the job`);
    }
  };
  for (const { seq, xact, what, token, claimCount } of entries) {
    effectsUntil(seq);
    const [from, to] = what.split(">");
    if (isOver) {
      // The rows of a claim that was settled go in the same transaction, or with a later beat.
      if (what !== "light-end") later ??= what;
      continue;
    }
    if (what === "light" || to === "running") {
      const isMark = isLight && owner === token;
      const before = owner;
      check("I7", owner === null || isMark, () => `job ${id} was given to ${token} while ${before} had it`);
      if (to === "running") {
        check("I6", claimCount! > claims, () => `job ${id}: claim ${claimCount} after claim ${claims}`);
        claims = claimCount!;
      }
      owner = token;
      isLight = what === "light";
    } else if (what === "light-end") {
      if (isLight && owner === token) release(xact);
    } else if (from === "running") {
      const before = owner;
      check("I6", owner === token, () => `job ${id}: ${what} ended the run of ${token}, the owner was ${before}`);
      release(xact);
      if (to === "dead") isOver = true;
    } else if (what.startsWith("ended:")) {
      const accepted: string | null = owner ?? (last?.xact === xact ? last.owner : null);
      if (what === "ended:done") {
        check(
          "I6",
          accepted !== null && accepted === token,
          () => `job ${id} was settled by ${token}, the owner was ${accepted}`,
        );
      }
      isOver = true;
    }
  }
  effectsUntil(Infinity);
  if (isOver) check("I9", later === undefined, () => `job ${id} had ended, and then: ${later}`);
}

/**
 * I3, of payloads: the first under a key stays, and whoever comes with another one is told so. Which was first need not be
 * known: every answer says whether the payload that is there is the one it came with, and all must mean the same one.
 */
function judgeConflicts({ payloads }: Told, byN: ReadonlyMap<number, JobFact[]>, check: Check): void {
  for (const [key, said] of payloads) {
    const [{ n, isOther, isConflict }] = said as [(typeof said)[0]];
    const stored = isOther !== isConflict;
    for (const each of said) {
      const isSame = (each.isOther !== each.isConflict) === stored;
      check("I3", isSame, () => `key ${key}: its answers mean two payloads, somebody was not told of a conflict`);
      check("I3", !(each.isCreated && each.isConflict), () => `key ${key} was created, and in conflict`);
    }
    for (const job of byN.get(n) ?? []) {
      check("I3", job.other === stored, () => `job ${n} has another payload than the answers about key ${key} say`);
    }
  }
}

interface AboutGroups {
  byN: ReadonlyMap<number, JobFact[]>;
  audits: ReadonlyMap<string, AuditFact[]>;
  starts: ReadonlyMap<string, Facts["execs"]>;
  check: Check;
}

/**
 * I16: from its first claim until it is over, retries included, a job is the only one of its group that is given to anybody; and
 * none begins before one that came before it is over. Only what was acknowledged before the other was asked for came
 * before it for certain. Handlers of runs that lost their lease may end late: who owned a job counts, and when it began.
 */
function judgeGroups(told: Told, { byN, audits, starts, check }: AboutGroups): void {
  const named = [...told.asked.values()].flatMap(({ n, group }) => {
    const id = byN.get(n)?.[0]?.id ?? told.acked.get(n)?.ids[0];
    return group === undefined || id === undefined ? [] : [{ n, group, id }];
  });
  for (const [group, members] of groupBy(named, (member) => member.group)) {
    const begun = new Map<string, number>();
    const over = new Map<string, number>();
    let head: string | undefined;
    const entries = members.flatMap(({ id }) => audits.get(id) ?? []).toSorted((a, b) => a.seq - b.seq);
    for (const { seq, job, what } of entries) {
      if (what === "light" || what.endsWith(">running")) {
        const before = head;
        const isAlone = before === undefined || before === job;
        check("I16", isAlone, () => `job ${job} of group ${group} was given away before ${before} was over`);
        head = job;
        if (!begun.has(job)) begun.set(job, seq);
      } else if (what.endsWith(">dead") || what.startsWith("ended:")) {
        over.set(job, seq);
        if (head === job) head = undefined;
      }
    }
    for (const { id } of members) {
      const start = starts.get(id)?.find((exec) => exec.what === "start")?.seq ?? Infinity;
      if (start < (begun.get(id) ?? Infinity)) begun.set(id, start);
    }
    for (const later of members) {
      const beganAt = begun.get(later.id);
      if (beganAt === undefined) continue;
      for (const first of members) {
        if ((told.ackedAt.get(first.n) ?? Infinity) >= told.askedAt.get(later.n)!) continue;
        const isOver = (over.get(first.id) ?? Infinity) < beganAt;
        check("I16", isOver, () => `job ${later.n} of group ${group} began before job ${first.n} was over`);
      }
    }
  }
}

function groupBy<T, K>(list: readonly T[], by: (entry: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const entry of list) {
    const key = by(entry);
    const group = groups.get(key);
    if (group) group.push(entry);
    else groups.set(key, [entry]);
  }
  return groups;
}
