// What a history says, gathered for the judge: what was asked for, what was acknowledged, refused or left open, and when.
import type { Asked, Line } from "./record.ts";

/** One enqueue under a coalescing key. The places are those of its lines in the history. */
export interface Coalesced {
  n: number;
  askedAt: number;
  /** Infinity: nobody said. */
  ackedAt: number;
  /** Of the job that has its payload, or a newer one. */
  id: string | undefined;
  isCreated: boolean;
}

export interface Told {
  ops: number;
  asked: Map<number, Asked>;
  acked: Map<number, { ids: string[] }>;
  /** Definitely not accepted, in every try. */
  refused: Set<number>;
  /** Of which jobs somebody asked the end. */
  cancels: Set<number>;
  /** Which dead jobs somebody asked to run again, and to be put away. */
  retries: Set<number>;
  discards: Set<number>;
  /** What was asked for under each coalescing key. */
  coalesced: Map<string, Coalesced[]>;
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

export function readHistory(lines: readonly Line[]): Told {
  const told: Told = {
    ops: 0,
    asked: new Map(),
    acked: new Map(),
    refused: new Set(),
    cancels: new Set(),
    retries: new Set(),
    discards: new Set(),
    coalesced: new Map(),
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
      for (const { n } of line.jobs) {
        if (line.verb === "cancel") told.cancels.add(n);
        if (line.verb === "retry") told.retries.add(n);
        if (line.verb === "discard") told.discards.add(n);
      }
      if (line.verb === "coalesce") {
        for (const { n, coalesce } of line.jobs) {
          const entry: Coalesced = { n, askedAt: position, ackedAt: Infinity, id: undefined, isCreated: false };
          told.coalesced.set(coalesce!, [...(told.coalesced.get(coalesce!) ?? []), entry]);
        }
      }
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
      if (asked.verb === "coalesce" && line.is === "ok") {
        for (const [index, { n, coalesce }] of asked.jobs.entries()) {
          const entry = told.coalesced.get(coalesce!)!.find((each) => each.n === n)!;
          Object.assign(entry, { ackedAt: position, id: line.ids[index], isCreated: line.created?.[index] ?? false });
        }
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
