// A judge that never found anything proves nothing: it is shown runs that went wrong in one way each, and must say which.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { judgeFiles } from "../../scripts/faults/judge-again.mjs";
import { type AuditFact, type Facts, type JobFact, NEWEST } from "../support/history/facts.ts";
import { COVERED_BY_STORMS, type Expectations, judge } from "../support/history/judge.ts";
import { judgeAgain } from "../support/history/judge-again.ts";
import { keepRun, readRun } from "../support/history/keep.ts";
import type { Asked, Line, Verb } from "../support/history/record.ts";
import { EPOCH, goodRun, job, type Run } from "./good-run.ts";

/** As in a storm in which the database is well all the time. */
const WELL: Expectations = { reasons: true, troubled: 0 };

const auditOf = (run: Run, id: string, what: string): AuditFact =>
  run.facts.audit.find((entry) => entry.job === id && entry.what === what)!;
const jobOf = (run: Run, n: number): JobFact => run.facts.jobs.find((fact) => fact.n === n)!;
const lineOf = (run: Run, op: number, is: "asked" | "ok"): Line =>
  run.lines.find((line) => "op" in line && line.op === op && line.is === is)!;
const idAt = ({ facts }: Run, id: string): number => facts.jobs.findIndex((fact) => fact.id === id);
const endOf = ({ facts }: Run, id: string): Facts["execs"][number] =>
  facts.execs.find((exec) => exec.job === id && exec.what === "end")!;
const forgetAsking = (lines: Line[], op: number): void => {
  lines.splice(
    lines.findIndex((line) => "op" in line && line.op === op),
    2,
  );
};
const addExec = (run: Run, n: number, what: "start" | "end" | "chunk", item: number | null): void => {
  run.facts.execs.push({ seq: 1, job: `id${n}`, token: `t${n}`, what, item });
};

const indexOf = ({ lines }: Run, op: number, is: "asked" | "ok"): number =>
  lines.indexOf(lineOf({ lines } as Run, op, is));

/** While faults go on. */
function tell(run: Run, ...lines: Line[]): void {
  const healed = run.lines.findIndex((line) => "phase" in line && line.phase === "healed");
  run.lines.splice(healed, 0, ...lines);
}
/** Somebody asks, and is answered. */
function ask(
  run: Run,
  { verb, at, is = "ok", jobs, ids = [] }: { verb: Verb; at: number; is?: string; jobs: Asked[]; ids?: string[] },
): void {
  const op = 1_000 + run.lines.length;
  tell(run, { at, op, is: "asked", verb, jobs });
  if (is === "ok") tell(run, { at, op, is, ids, created: ids.map(() => false) });
  else if (is === "failed" || is === "unknown") tell(run, { at, op, is, error: "so it was said" });
}
function note(
  run: Run,
  id: string,
  ...entries: [what: string, token: string | null, claimCount: number | null][]
): void {
  for (const [what, token, claimCount] of entries) {
    const seq = 1e6 + run.facts.audit.length;
    const xact = what.startsWith("ended:") ? run.facts.audit.at(-1)!.xact : `late ${seq}`;
    run.facts.audit.push({ seq, xact, job: id, what, token, claimCount, at: null });
  }
}
/** The first run of job 1 is given back, 40 ms after the beginning; another one ends it. */
function takeAway(run: Run, { holder, at = 40 }: { holder?: string; at?: number } = {}): void {
  const { audit, execs, holders } = run.facts;
  const claim = auditOf(run, "id1", "pending>running");
  const before = { ...claim, seq: claim.seq - 0.5, token: "t1a" };
  audit.splice(audit.indexOf(claim), 0, before, {
    ...before,
    seq: claim.seq - 0.3,
    what: "running>pending",
    at: EPOCH + at,
  });
  claim.claimCount = jobOf(run, 1).claimCount = 2;
  execs.unshift({ seq: claim.seq - 0.4, job: "id1", token: "t1a", what: "start", item: null });
  if (holder !== undefined) holders.set("t1a", holder);
}

/**
 * A handler began under a token that the database knows nothing of, and its row was written so late. The server's clock is the machine's; `crash` is
 * the history's.
 */
function forget(
  { lines, facts }: Run,
  { lateFrom, lateAt, crash }: { lateFrom: number | null; lateAt: number; crash: number | null },
): void {
  if (crash !== null) lines.splice(2, 0, { at: crash, crashed: 0 });
  facts.execs.push({ seq: 1, job: "id1", token: "gone", what: "start", item: null, lateFrom, lateAt });
}

test("a run that went well passes, and everything was looked at", () => {
  const { lines, facts } = goodRun();
  const verdict = judge(lines, facts, { ...WELL, covers: COVERED_BY_STORMS, leastFaults: { "kill -9": 1 } });
  expect(verdict.violations).toEqual([]);
  expect(Object.keys(verdict.looked).toSorted()).toEqual([...COVERED_BY_STORMS, "I14", "I19", "enough"].toSorted());
  expect(verdict.counts).toEqual({
    asked: 17,
    ok: 14,
    failed: 1,
    unknown: 2,
    jobs: 12,
    done: 11,
    faults: 1,
    forgotten: 0,
  });
});

test("a run whose claim a crash took along is excused", () => {
  const run = goodRun();
  forget(run, { lateFrom: 10_000, lateAt: 10_500, crash: 300 });
  const verdict = judge(run.lines, run.facts);
  expect(verdict.violations).toEqual([]);
  expect(verdict.counts.forgotten).toBe(1);
});

describe("a run that went wrong is found out", () => {
  const doctored: [name: string, invariant: string, change: (run: Run) => void][] = [
    ["an acknowledged job is lost", "I1", ({ facts }) => void facts.jobs.splice(0, 1)],
    ["a job never ended", "I1", (run) => (jobOf(run, 1).state = "pending")],
    ["a job that nobody asked for", "I2", ({ facts }) => void facts.jobs.push(job(99))],
    ["a job whose enqueue was refused", "I2", ({ facts }) => void facts.jobs.push(job(7))],
    ["a job that nobody asked for and that has no number", "I2", ({ facts }) => void facts.jobs.push(job(-1))],
    ["cancelled, and nobody asked for that", "I2", (run) => (jobOf(run, 1).state = "cancelled")],
    ["a handler ran for nothing", "I2", (run) => addExec(run, 50, "start", null)],
    ["one enqueue became two jobs", "I3", ({ facts }) => void facts.jobs.push(job(1, { id: "twin" }))],
    [
      "a key was answered with two jobs",
      "I3",
      ({ lines }) => {
        lines.splice(-1, 0, { at: 150, op: 9, is: "asked", verb: "enqueue", jobs: [{ n: 2, key: "k2" }] });
        lines.splice(-1, 0, { at: 150, op: 9, is: "ok", ids: ["other"], created: [true] });
      },
    ],
    ["two jobs under one key", "I3", (run) => (jobOf(run, 1).key = "k2")],
    [
      "another payload under a key that is there, and nobody was told",
      "I3",
      (run) => Object.assign(lineOf(run, 11, "ok"), { conflict: [false] }),
    ],
    ["a conflict that is none", "I3", (run) => Object.assign(lineOf(run, 3, "ok"), { conflict: [true] })],
    ["the second payload took the place of the first", "I3", (run) => (jobOf(run, 2).other = true)],
    ["the ledger forgot a key", "I3", ({ facts }) => void facts.keys.delete("k2")],
    ["an answer named another job", "I3", ({ lines }) => void (lines[3] = { at: 1, op: 1, is: "ok", ids: ["id3"] })],
    ["done, and no handler ended", "I4", ({ facts }) => (facts.execs = facts.execs.filter((e) => e.job !== "id1"))],
    [
      "done by a run that did not end",
      "I4",
      ({ facts }) => {
        for (const exec of facts.execs) if (exec.job === "id1") exec.token = "another";
      },
    ],
    ["an effect twice", "I5", ({ facts }) => void facts.effects.push({ ...facts.effects[0]! })],
    ["an effect missing", "I5", ({ facts }) => (facts.effects = facts.effects.filter((e) => e.job !== "id3"))],
    ["an effect of a job that is not done", "I5", (run) => (jobOf(run, 3).state = "cancelled")],
    [
      "a step twice",
      "I5",
      ({ facts }) => void facts.effects.push({ ...facts.effects.find((e) => e.what === "step")! }),
    ],
    [
      "a claim left no trace, and nothing had crashed",
      "I6",
      (run) => forget(run, { lateFrom: 10_000, lateAt: 10_500, crash: null }),
    ],
    [
      "a claim left no trace long after a crash",
      "I6",
      (run) => forget(run, { lateFrom: 20_000, lateAt: 20_500, crash: 300 }),
    ],
    [
      "a claim left no trace, and the server was there",
      "I6",
      (run) => forget(run, { lateFrom: null, lateAt: 10_500, crash: 300 }),
    ],
    [
      "a claim left no trace, and what its handler said was on the disk before the crash",
      "I6",
      (run) => forget(run, { lateFrom: 7_600, lateAt: 7_660, crash: 300 }),
    ],
    [
      "a run that was forgotten has had an effect",
      "I6",
      (run) => {
        forget(run, { lateFrom: 10_000, lateAt: 10_500, crash: 300 });
        run.facts.effects.push({ seq: 2, job: "id1", token: "gone", what: "step", item: 0 });
      },
    ],
    ["a result by a stale run", "I6", (run) => (jobOf(run, 1).resultToken = "stale")],
    ["a settle by a stale run", "I6", (run) => (auditOf(run, "id1", "ended:done").token = "stale")],
    ["an end of somebody else's run", "I6", (run) => (auditOf(run, "id1", "running>gone").token = "stale")],
    [
      "a claim counter that went back",
      "I6",
      ({ facts }) => {
        facts.audit.findLast((entry) => entry.job === "id6" && entry.what === "pending>running")!.claimCount = 1;
      },
    ],
    [
      "an effect written by a stale run",
      "I6",
      ({ facts }) => (facts.effects.find((e) => e.what === "step")!.token = "stale"),
    ],
    [
      "two owners at once",
      "I7",
      ({ facts }) => {
        facts.audit = facts.audit.filter((entry) => entry.what !== "running>pending");
      },
    ],
    [
      "a handler ran under a token that never owned the job",
      "I6",
      ({ facts }) => void facts.execs.push({ seq: 1, job: "id1", token: "nobody's", what: "start", item: null }),
    ],
    ["charged for a kill", "I8", ({ facts }) => void facts.charged.set("id6", 1)],
    ["an attempt used for a kill", "I8", (run) => (jobOf(run, 6).attempt = 2)],
    ["dead without deserving it", "I8", (run) => Object.assign(jobOf(run, 1), { state: "dead", reason: "crashed" })],
    [
      "a job that ends its process is not dead",
      "I8",
      ({ lines }) => void (lines[2] = { at: 1, op: 1, is: "asked", verb: "enqueue", jobs: [{ n: 1, die: true }] }),
    ],
    ["more attempts than allowed", "I8", (run) => (jobOf(run, 1).attempt = 5)],
    [
      "a finished job came back",
      "I9",
      ({ facts }) => {
        facts.audit.push({ seq: 1e6, xact: "y", job: "id1", what: "pending>running", token: "t9", claimCount: 9 });
      },
    ],
    [
      "a dead job came back",
      "I9",
      ({ facts }) => {
        const died = { seq: 1e6, xact: "y", job: "id1", what: "running>dead", token: "t9", claimCount: 9 };
        facts.audit = facts.audit.filter((entry) => entry.job !== "id1");
        facts.audit.push({ ...died, what: "pending>running" }, died, { ...died, what: "dead>pending" });
      },
    ],
    ["an acknowledged batch is lost", "I10", ({ facts }) => void facts.batches.pop()],
    ["a batch twice", "I10", ({ facts }) => void facts.batches.push({ ...facts.batches[0]! })],
    ["a batch that nobody asked for", "I10", ({ facts }) => (facts.batches[0]!.key = "b10")],
    ["a batch with an item missing", "I10", ({ facts }) => Object.assign(facts.batches[0]!, { total: 2, ended: 2 })],
    ["an item saved without its effect", "I10", ({ facts }) => (facts.batches[0]!.unmatched = 1)],
    ["a batch counted wrong", "I10", ({ facts }) => (facts.batches[0]!.ended = 2)],
    ["a batch completed twice", "I10", ({ facts }) => (facts.batches[0]!.completions = 2)],
    ["a batch followed twice", "I10", ({ facts }) => (facts.batches[0]!.follow = 2)],
    ["an item's effect twice", "I10", ({ facts }) => (facts.batches[0]!.doubles = 1)],
    [
      "an item saved twice",
      "I11",
      ({ facts }) => {
        facts.effects.push({ ...facts.effects.find((e) => e.what === "chunks")!, seq: 1e6 });
      },
    ],
    [
      "a chunk missing",
      "I11",
      ({ facts }) => {
        facts.effects = facts.effects.filter((e) => e.what !== "chunks" || e.item !== 3);
      },
    ],
    [
      "finished chunks were done again",
      "I11",
      ({ facts }) => {
        facts.execs.push({ seq: 1, job: "id5", token: "t5b", what: "start", item: null });
        for (const item of [0, 2]) facts.execs.push({ seq: 2, job: "id5", token: "t5b", what: "chunk", item });
      },
    ],
    ["an acknowledged parcel is lost", "I12", ({ facts }) => void facts.parcels.pop()],
    ["a parcel twice", "I12", ({ facts }) => void facts.parcels.push({ ...facts.parcels[0]! })],
    ["a parcel that nobody put", "I12", ({ facts }) => void facts.parcels.push({ ...facts.parcels[0]!, key: "p9" })],
    ["a parcel with a piece missing", "I12", ({ facts }) => (facts.parcels[0]!.contentSha256 = "h7")],
    ["a parcel that says that it is another", "I12", ({ facts }) => (facts.parcels[0]!.sha256 = "h7")],
    ["a parcel that was never acked", "I12", ({ facts }) => (facts.parcels[0]!.acked = false)],
    [
      "a parcel that never arrived",
      "I12",
      ({ lines }) =>
        void lines.splice(
          lines.findIndex((line) => "arrived" in line),
          1,
        ),
    ],
    ["a parcel that arrived as another", "I12", ({ lines }) => void lines.push({ at: 8, arrived: "p8", sha256: "h7" })],
    ["purged before its time", "I14", ({ facts }) => void facts.purgedEarly.push("id0")],
    ["purged, and still there", "I14", ({ facts }) => void facts.purged.set("id1", 1)],
    [
      "two of a group at once",
      "I16",
      (run) => {
        // The last is claimed within the run of the first.
        auditOf(run, "id6", "light").seq = auditOf(run, "id1", "pending>running").seq + 0.5;
      },
    ],
    [
      "the second of a group ran to its end before the first began",
      "I16",
      (run) => {
        for (const entry of run.facts.audit) if (entry.job === "id6") entry.seq -= 1e3;
      },
    ],
    [
      "a job that waited for its retry did not hold its group",
      "I16",
      (run) => {
        const { facts } = run;
        const claim = auditOf(run, "id1", "pending>running");
        const first = { ...claim, seq: claim.seq - 1e4, token: "t1a" };
        facts.audit.unshift(first, { ...first, seq: first.seq + 1, what: "running>pending" });
        claim.claimCount = 2;
        for (const entry of facts.audit) if (entry.job === "id6") entry.seq -= 1e3;
        // Nobody knows which of them came first: the history does not help.
        Object.assign(run.lines[3]!, { is: "unknown", error: "no answer" });
      },
    ],
    [
      "a handler of a group began before its turn",
      "I16",
      (run) => (run.facts.execs.find((exec) => exec.job === "id6")!.seq = 0.5),
    ],
    ["an acknowledged payload is lost with its job", "I17", (run) => void run.facts.jobs.splice(idAt(run, "id23"), 1)],
    ["an older payload took the place of a newer one", "I17", (run) => (run.facts.jobs[idAt(run, "id21")]!.n = 21)],
    ["what coalesces is not done", "I17", (run) => (run.facts.jobs[idAt(run, "id23")]!.state = "dead")],
    [
      "the newest payload was not run",
      "I17",
      ({ facts }) => {
        for (const exec of facts.execs) if (exec.job === "id21") exec.item = 21;
      },
    ],
    ["a payload that nobody asked for was run", "I2", (run) => (endOf(run, "id21").item = 99)],
    ["a payload that nobody asked for is the newest", "I2", (run) => (run.facts.jobs[idAt(run, "id21")]!.n = 99)],
    [
      "two open jobs of one coalescing key",
      "I17",
      (run) => (auditOf(run, "id23", "accepted").seq = auditOf(run, "id21", "accepted").seq + 0.5),
    ],
    [
      "two callers were told that they had made one job",
      "I17",
      (run) => Object.assign(lineOf(run, 22, "ok"), { created: [true] }),
    ],
    ["a death was followed twice", "I18", ({ facts }) => void facts.followers.set("id24", 3)],
    ["a death was not followed", "I18", ({ facts }) => void facts.followers.set("id24", 1)],
    ["a job was followed though it did not die", "I18", ({ facts }) => void facts.followers.set("id1", 1)],
    ["a job follows one that is none", "I18", ({ facts }) => void facts.followers.set("id99", 1)],
    ["a dead job ran again, and nobody asked for that", "I9", ({ lines }) => forgetAsking(lines, 25)],
    ["a dead job was put away, and nobody asked for that", "I9", ({ lines }) => forgetAsking(lines, 26)],
    [
      "what was buried ran again",
      "I9",
      (run) => {
        forgetAsking(run.lines, 25);
        auditOf(run, "id24", "running>dead").what = "pending>dead";
      },
    ],
    // What is in no list of the judge's is looked at all the same.
    [
      "what was accepted and not acknowledged is lost",
      "I1",
      (run) => {
        ask(run, { verb: "enqueue", at: 60, is: "unknown", jobs: [{ n: 60 }] });
        note(run, "id60", ["accepted", null, 0], ["pending>running", "t60", 1], ["running>gone", "t60", 1]);
      },
    ],
    [
      "an effect of nothing",
      "I5",
      ({ facts }) => void facts.effects.push({ seq: 3, job: "ghost", token: "x", what: "complete", item: 0 }),
    ],
    ["one enqueue became two jobs, of which one is purged", "I3", ({ facts }) => void facts.purged.set("twin", 1)],
    ["a job that nobody asked for was purged in time", "I2", ({ facts }) => void facts.purged.set("ghost", 99)],
    ["what follows was cancelled", "I2", (run) => (run.facts.jobs[idAt(run, "after-b")]!.state = "cancelled")],
    [
      "what follows is dead",
      "I8",
      (run) =>
        Object.assign(run.facts.jobs[idAt(run, "after-24-1")]!, { state: "dead", reason: "crashed", crashCount: 3 }),
    ],
    [
      "what follows is done, and did not run",
      "I4",
      ({ facts }) => (facts.execs = facts.execs.filter((exec) => exec.job !== "after-b")),
    ],
    [
      "a death and what follows it are two commits",
      "I18",
      (run) => (auditOf(run, "after-24-1", "accepted").xact = "y"),
    ],
    [
      "a payload went to the job of another key",
      "I17",
      (run) => {
        ask(run, { verb: "coalesce", at: 50, jobs: [{ n: 30, coalesce: "d" }], ids: ["id30"] });
        ask(run, { verb: "coalesce", at: 51, jobs: [{ n: 31, coalesce: "c" }], ids: ["id30"] });
        run.facts.jobs.push(job(30, { kind: NEWEST, coalesce: "d" }));
        for (const what of ["start", "end"] as const) addExec(run, 30, what, 30);
        note(run, "id30", ["accepted", null, 0], ["pending>running", "t30", 1], ["running>gone", "t30", 1]);
        note(run, "id30", ["ended:done", "t30", 1]);
      },
    ],
    [
      "an older payload, whose caller had given up long before, took the place of a newer one",
      "I17",
      (run) => {
        run.lines[indexOf(run, 21, "ok")] = { at: 21, op: 21, is: "unknown", error: "no answer" };
        run.facts.jobs[idAt(run, "id21")]!.n = 21;
        for (const exec of run.facts.execs) if (exec.job === "id21") exec.item = 21;
      },
    ],
    ["what coalesces was charged for kills", "I8", ({ facts }) => void facts.charged.set("id21", 3)],
    ["what coalesces used an attempt", "I8", (run) => (run.facts.jobs[idAt(run, "id21")]!.attempt = 2)],
    [
      "what coalesces has the result of a stale run",
      "I6",
      (run) => (run.facts.jobs[idAt(run, "id21")]!.resultToken = "stale"),
    ],
    [
      "a dead job ran again twice, and was asked to once",
      "I9",
      ({ facts }) => {
        const gone = facts.audit.findIndex(({ job: id, what }) => id === "id24" && what === "dead>gone");
        const { seq, ...entry } = facts.audit[gone]!;
        const again = ["dead>pending", "pending>running", "running>dead"].map((what, at) => ({
          ...entry,
          what,
          token: "t24-3",
          claimCount: 3,
          seq: seq - 0.5 + at / 10,
        }));
        facts.audit.splice(gone, 0, ...again);
      },
    ],
    [
      "a dead job was to run again, and did not",
      "I1",
      (run) => {
        const rise = run.facts.audit.findIndex(({ job: id, what }) => id === "id24" && what === "dead>pending");
        run.facts.audit.splice(rise, 3);
      },
    ],
    [
      "a dead job was to be put away, and was not",
      "I1",
      ({ facts }) => (facts.audit = facts.audit.filter(({ what }) => what !== "dead>gone" && what !== "ended:dead")),
    ],
    [
      "a dead job ran again before anybody asked for that",
      "I9",
      (run) => {
        for (const is of ["asked", "ok"] as const) lineOf(run, 25, is).at = 900;
      },
    ],
    ["a dead job was put away before anybody asked for that", "I9", (run) => (lineOf(run, 26, "asked").at = 900)],
    [
      "a dead job ran again, and that had been refused",
      "I9",
      (run) => void (run.lines[indexOf(run, 25, "ok")] = { at: 25, op: 25, is: "failed", error: "not dead" }),
    ],
    [
      "dead of three kills and one statement that got no answer",
      "I8",
      (run) => {
        Object.assign(jobOf(run, 1), { state: "dead", attempt: 4, token: null, resultToken: null });
        run.facts.charged.set("id1", 4);
        run.facts.troubled.set("id1", 1);
      },
    ],
    [
      "a job that ends its process was buried at its first crash",
      "I8",
      (run) => {
        Object.assign(lineOf(run, 24, "asked"), { jobs: [{ n: 24, die: true, onDead: true }] });
        Object.assign(jobOf(run, 24), { reason: "crashed", crashCount: 1 });
      },
    ],
    [
      "a job that never ends was buried at its first timeout",
      "I8",
      (run) => {
        Object.assign(lineOf(run, 24, "asked"), { jobs: [{ n: 24, die: true, onDead: true }] });
        Object.assign(jobOf(run, 24), { reason: "timeout" });
      },
    ],
    ["what is hopeless was charged for kills as well", "I8", ({ facts }) => void facts.charged.set("id24", 6)],
    [
      "what was cancelled had been charged for kills",
      "I8",
      (run) => {
        ask(run, { verb: "cancel", at: 60, jobs: [{ n: 1 }], ids: ["id1"] });
        Object.assign(jobOf(run, 1), { state: "cancelled", attempt: 4 });
        run.facts.charged.set("id1", 3);
      },
    ],
    [
      "cancelled, and that had been refused",
      "I2",
      (run) => {
        ask(run, { verb: "cancel", at: 60, is: "failed", jobs: [{ n: 1 }] });
        jobOf(run, 1).state = "cancelled";
      },
    ],
    [
      "a parcel that was not acknowledged is there twice",
      "I12",
      (run) => {
        run.lines[indexOf(run, 8, "ok")] = { at: 6, op: 8, is: "unknown", error: "no answer" };
        run.facts.parcels.push({ ...run.facts.parcels[0]! });
      },
    ],
    ["every item of a batch is dead", "I10", ({ facts }) => Object.assign(facts.batches[0]!, { saved: 0, charged: 3 })],
    ["the items of a batch were charged for kills", "I8", ({ facts }) => (facts.batches[0]!.charged = 2)],
    ["an item that failed was not charged", "I8", ({ facts }) => (facts.batches[0]!.charged = 0)],
    [
      "an item is dead of too little trouble",
      "I10",
      ({ facts }) => Object.assign(facts.batches[0]!, { saved: 2, charged: 3, troubled: 2 }),
    ],
    ["statements did not get through, and nothing was wrong", "I8", ({ facts }) => void facts.troubled.set("id1", 1)],
    ["a run was taken away from a worker that was well", "I19", (run) => takeAway(run, { holder: "w1.1" })],
    ["a run was taken away before its worker was killed", "I19", (run) => takeAway(run, { holder: "w0.1", at: -400 })],
    [
      "a run was taken away long after its worker had been thawed",
      "I19",
      (run) => {
        tell(run, { at: 30, fault: "SIGSTOP", on: "w1.1", ms: 20 });
        takeAway(run, { holder: "w1.1", at: 9_000 });
      },
    ],
    [
      "a run was taken away once more than somebody had asked for",
      "I19",
      (run) => {
        ask(run, { verb: "release", at: 39, is: "failed", jobs: [{ n: 1 }] });
        takeAway(run);
      },
    ],
    [
      "a handler had begun when the queue was paused, and its run was taken away",
      "I19",
      (run) => {
        ask(run, { verb: "pause", at: 30, jobs: [] });
        takeAway(run);
      },
    ],
    [
      "a light claim was taken away from a worker that was well",
      "I19",
      (run) => {
        const claim = auditOf(run, "id1", "pending>running");
        const light = { ...claim, token: "t1a", what: "light", seq: claim.seq - 0.5 };
        run.facts.audit.push(light, { ...light, what: "light-end", seq: claim.seq - 0.4, at: EPOCH + 40 });
        run.facts.audit.sort((a, b) => a.seq - b.seq);
      },
    ],
    ["a call was answered after a minute", "I15", (run) => (lineOf(run, 26, "ok").at = 60_026)],
    ["it never came to rest", "I15", ({ lines }) => void lines.pop()],
    ["it came to rest too late", "I15", ({ lines }) => (lines.at(-1)!.at = 1e7)],
    ["something still waits", "I15", (run) => (run.facts.jobs.at(-1)!.state = "pending")],
    ["something still runs", "I15", ({ facts }) => void facts.jobs.push(job(1, { state: "running", n: -1 }))],
    [
      "what was asked after the last fault failed",
      "I15",
      ({ lines }) => {
        lines[lines.length - 2] = { at: 150, op: 6, is: "failed", error: "x" };
      },
    ],
    ["nothing was asked after the last fault", "I15", ({ lines }) => void lines.splice(-5, 4)],
    ["there were no faults", "enough", ({ lines }) => void lines.splice(4, 1)],
  ];
  test.each(doctored)("%s", (_, invariant, change) => {
    const run = goodRun();
    change(run);
    const { violations } = judge(run.lines, run.facts, WELL);
    expect(violations.filter((violation) => violation.startsWith(`${invariant}:`))).not.toEqual([]);
  });
});

describe("what had to happen is no violation", () => {
  const excused: [name: string, change: (run: Run) => void][] = [
    ["a run was taken away because its worker was killed", (run) => takeAway(run, { holder: "w0.1" })],
    [
      "… because it was frozen",
      (run) => {
        tell(run, { at: 60, fault: "SIGSTOP", on: "w1.1", ms: 50 });
        takeAway(run, { holder: "w1.1" });
      },
    ],
    [
      "… because somebody asked for that",
      (run) => {
        ask(run, { verb: "release", at: 39, is: "unknown", jobs: [{ n: 1 }] });
        takeAway(run);
      },
    ],
    [
      "… because its handler had put it off",
      (run) => {
        takeAway(run);
        run.facts.execs.push({ seq: 1.7, job: "id1", token: "t1a", what: "snooze", item: null });
      },
    ],
    [
      "… because it was claimed while the queue was paused, and not begun",
      (run) => {
        ask(run, { verb: "pause", at: 30, jobs: [] });
        takeAway(run);
        run.facts.execs = run.facts.execs.filter(({ token }) => token !== "t1a");
      },
    ],
    [
      "a claim was lost by a failover, which is written down when it is over",
      (run) => {
        run.lines.splice(2, 0, { at: 1_000, crashed: 900 }, { at: 4_300, fault: "failover" });
        forget(run, { lateFrom: EPOCH + 950, lateAt: EPOCH + 4_500, crash: null });
      },
    ],
    [
      "an older payload was delivered by a server that had been frozen",
      (run) => {
        tell(run, { at: 25, fault: "PostgreSQL: frozen", ms: 10 });
        run.facts.jobs[idAt(run, "id21")]!.n = 21;
        for (const exec of run.facts.execs) if (exec.job === "id21") exec.item = 21;
      },
    ],
    [
      "a job without a key was done twice, by a server that had been frozen",
      (run) => {
        tell(run, { at: 2, fault: "PostgreSQL: frozen", ms: 2 });
        run.facts.jobs.push(job(1, { token: "t1b", resultToken: "t1b" }));
        run.facts.execs.push({ seq: 1e6, job: "id1", token: "t1b", what: "start", item: null });
        note(run, "id1", ["accepted", null, 0], ["pending>running", "t1b", 1], ["running>gone", "t1b", 1]);
        note(run, "id1", ["ended:done", "t1b", 1]);
        // What came after it in its group did so for good reasons.
        for (const at of [indexOf(run, 1, "asked"), indexOf(run, 6, "asked")]) {
          Object.assign(run.lines[at]!, { jobs: (run.lines[at] as { jobs: Asked[] }).jobs.map(({ n }) => ({ n })) });
        }
      },
    ],
    [
      "an item is dead of what its own statements met",
      (run) => {
        Object.assign(run.facts.batches[0]!, { saved: 2, charged: 4, troubled: 3 });
      },
    ],
  ];
  test.each(excused)("%s", (_, change) => {
    const run = goodRun();
    change(run);
    expect(judge(run.lines, run.facts, { reasons: true }).violations).toEqual([]);
  });
});

test("which of two of a group came first is only judged if the one was acknowledged before the other was asked for", () => {
  const { lines, facts } = goodRun();
  for (const entry of facts.audit) if (entry.job === "id6") entry.seq -= 1e3;
  for (const exec of facts.execs) if (exec.job === "id6") exec.seq -= 1e3;
  const isOfGroups = (violation: string): boolean => violation.startsWith("I16:");
  expect(judge(lines, facts).violations.filter(isOfGroups)).toHaveLength(1);
  lines[3] = { at: 1, op: 1, is: "unknown", error: "no answer" };
  expect(judge(lines, facts).violations.filter(isOfGroups)).toEqual([]);
});

test("a storm of the wrong kind does not pass, nor one that had nothing to judge by", () => {
  const { lines, facts } = goodRun();
  const { violations } = judge(lines, { ...facts, parcels: [] }, { leastFaults: { "kill -9": 2, failover: 1 } });
  expect(violations).toContain('enough: "kill -9" happened 1 times, 2 were to be expected');
  expect(violations).toContain('enough: "failover" happened 0 times, 1 were to be expected');
  const quiet = lines.filter((line) => !("op" in line && line.op === 10));
  const isOther = ({ job: id }: { job: string }): boolean => id !== "after-b";
  const none = {
    ...facts,
    batches: [],
    jobs: facts.jobs.filter(({ id }) => id !== "after-b"),
    audit: facts.audit.filter(isOther),
    execs: facts.execs.filter(isOther),
  };
  expect(judge(quiet, none, { covers: COVERED_BY_STORMS }).violations).toEqual([
    "enough: there was nothing to judge I10 by",
  ]);
});

test("a storm with too few jobs that outlast their lease does not pass", () => {
  const { lines, facts } = goodRun();
  const asked = lines.find((line) => "op" in line && line.op === 4 && line.is === "asked");
  if (asked && "jobs" in asked) asked.jobs[2]!.long = true;
  expect(judge(lines, facts, { leastLong: 1 }).violations).toEqual([]);
  expect(judge(lines, facts, { leastLong: 2 }).violations).toEqual([
    "enough: 1 jobs that outlast their lease were done, not 2",
  ]);
});

test("a run in which everything errored does not pass, though nothing in it is wrong", () => {
  const lines: Line[] = [
    { at: 0, phase: "faults" },
    { at: 1, fault: "reset" },
  ];
  for (let op = 1; op <= 100; op += 1) {
    lines.push({ at: op, op, is: "asked", verb: "enqueue", jobs: [{ n: op }] });
    lines.push({ at: op, op, is: op % 2 === 0 ? "failed" : "unknown", error: "no" });
  }
  lines.push({ at: 200, phase: "healed" });
  lines.push({ at: 201, op: 101, is: "asked", verb: "enqueue", jobs: [{ n: 101 }] });
  lines.push({ at: 201, op: 101, is: "ok", ids: ["id101"], created: [true] });
  lines.push({ at: 202, phase: "drained" });
  const { facts } = goodRun();
  const none: Facts = {
    ...facts,
    jobs: [],
    audit: [],
    execs: [],
    effects: [],
    keys: new Map(),
    followers: new Map(),
    batches: [],
    parcels: [],
  };
  expect(judge(lines, none).violations).toContain("enough: no job was done");
  expect(judge(lines, none).violations).toContain("enough: only 0 of 100 operations were ok while faults went on");
});

describe("a run that was kept", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-judge-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const expected: Expectations = { ...WELL, covers: COVERED_BY_STORMS, leastFaults: { "kill -9": 1 }, okShare: 0.4 };
  const keep = async (name: string, { lines, facts }: Run, beside: string[] = []): Promise<string> => {
    const path = join(folder, `${name}.ndjson.gz`);
    await keepRun(path, { lines, facts, expected, beside });
    return path;
  };

  test("is judged again with the same verdict, and has no id of the database in it", async () => {
    const run = goodRun();
    const path = await keep("good", run);
    expect(judgeAgain(path)).toEqual(judge(run.lines, run.facts, expected));
    const kept = readRun(path);
    expect(kept.expected).toEqual(expected);
    const ofOneTransaction = (facts: Facts): boolean[] =>
      facts.audit.map((entry, at) => entry.xact === facts.audit[at - 1]?.xact);
    expect(ofOneTransaction(kept.facts)).toEqual(ofOneTransaction(run.facts));
    expect(kept.facts.audit.map(({ seq }) => seq)).toEqual(run.facts.audit.map(({ seq }) => seq));
    expect(JSON.stringify([kept.lines, [...kept.facts.keys], kept.facts.jobs])).not.toMatch(/"id\d/);
  });

  test("is found out if it was wrong, whoever had found it", async () => {
    const lost = goodRun();
    lost.facts.jobs.splice(0, 1);
    const path = await keep("lost", lost);
    const { violations } = judgeAgain(path);
    expect(violations).toHaveLength(judge(lost.lines, lost.facts, expected).violations.length);
    expect(violations[0]).toMatch(/^I1: job 1 was acknowledged/);
    expect(judgeAgain(await keep("beside", goodRun(), ["it grew"])).violations).toEqual(["it grew"]);
  });

  test("is found out if it was changed after it was kept", async () => {
    const path = await keep("changed", goodRun());
    const text = gunzipSync(await readFile(path)).toString();
    const effects = text.split("\n").find((line) => line.includes('"facts":"effects"'))!;
    const without = { ...(JSON.parse(effects) as object), rows: 0 };
    await writeFile(path, gzipSync(text.replace(effects, JSON.stringify(without))));
    expect(judgeAgain(path).violations).toContainEqual(expect.stringMatching(/^I5: job 3/));
    await writeFile(path, gzipSync(text.slice(0, text.lastIndexOf("{"))));
    expect(() => judgeAgain(path)).toThrow("it has no facts, or not all of them");
  });

  test("is judged by the command, which fails if one of them is wrong or if there is none", async () => {
    const said: string[] = [];
    const input = { folder, write: (text: string) => said.push(text) };
    expect(await judgeFiles([], input)).toBe(false);
    const good = await keep("good", goodRun());
    expect(await judgeFiles([], input)).toBe(true);
    expect(said.at(-1)).toMatch(/good\.ndjson\.gz: 0 violations\. Looked at: I1 \d+, /);
    const lost = goodRun();
    lost.facts.jobs.splice(0, 1);
    await keep("lost", lost);
    expect(await judgeFiles([], input)).toBe(false);
    expect(said.join("")).toContain("  WRONG: I1: job 1 was acknowledged");
    expect(await judgeFiles([good], input)).toBe(true);
  });
});
