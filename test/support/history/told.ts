// What a history says, gathered for the judge: what was asked for, what was acknowledged, refused or left open, and when.
import type { Asked, Line, Verb } from "./record.ts";

/** One enqueue under a coalescing key. The places are those of its lines in the history. */
export interface Coalesced {
  n: number;
  askedAt: number;
  /**
   * From here on it has been done, or never will be: where it was answered, whatever the answer said. Infinity: nobody knows, because there was
   * no answer, or because PostgreSQL was frozen meanwhile and may have done it afterwards.
   */
  overAt: number;
  /** Of the job that has its payload, or a newer one. */
  id: string | undefined;
  isCreated: boolean;
}

/** Something that somebody asked about a job: when, in milliseconds of the history, and what was said. */
export interface Ask {
  at: number;
  is: "ok" | "failed" | "unknown" | undefined;
}

/** Milliseconds of the history. */
export interface Span {
  from: number;
  to: number;
}

export interface Told {
  /** The machine's clock at the beginning of the history's own time. */
  epoch: number;
  ops: number;
  asked: Map<number, Asked>;
  acked: Map<number, { ids: string[] }>;
  /** Definitely not accepted, in every try. */
  refused: Set<number>;
  /** What somebody asked about a job that is there. */
  people: Record<"cancel" | "retry" | "discard" | "release", Map<number, Ask[]>>;
  /** When the queue may have been paused. */
  paused: Span[];
  /** Whose enqueue, without a key, was under way while PostgreSQL was frozen: it may have been done twice, which nobody promises to prevent. */
  maybeTwice: Set<number>;
  /** What was asked for under each coalescing key. */
  coalesced: Map<string, Coalesced[]>;
  keys: Map<string, Set<string>>;
  /** What was said about the payloads of a key. */
  payloads: Map<string, { n: number; isOther: boolean; isConflict: boolean; isCreated: boolean }[]>;
  /** Where in the history a job was first asked for, and first acknowledged. */
  askedAt: Map<number, number>;
  ackedAt: Map<number, number>;
  batches: Map<string, { items: number; fails: number; isAcked: boolean }>;
  puts: Map<string, { sha256: string; isAcked: boolean }>;
  /** Key → the hashes it arrived with. */
  arrived: Map<string, Set<string>>;
  phases: Map<string, number>;
  faults: string[];
  /** What a fault did to one process, or to nobody in particular, and when PostgreSQL crashed. */
  hits: (Span & { fault: string; on: string | undefined })[];
  crashes: Span[];
  /** How long the longest call took that was answered, and what it was. */
  longest: { ms: number; verb: string };
  during: { asked: number; ok: number };
  tail: { asked: number; ok: number };
  answers: { ok: number; failed: number; unknown: number };
}

export function readHistory(lines: readonly Line[]): Told {
  const told: Told = {
    epoch: 0,
    ops: 0,
    asked: new Map(),
    acked: new Map(),
    refused: new Set(),
    people: { cancel: new Map(), retry: new Map(), discard: new Map(), release: new Map() },
    paused: [],
    maybeTwice: new Set(),
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
    hits: [],
    crashes: [],
    longest: { ms: 0, verb: "" },
    during: { asked: 0, ok: 0 },
    tail: { asked: 0, ok: 0 },
    answers: { ok: 0, failed: 0, unknown: 0 },
  };
  const open = new Map<number, Open>();
  const sent: { asked: Open; to: number }[] = [];
  let when: "during" | "tail" | undefined;
  const maybe = new Set<number>();
  for (const [position, line] of lines.entries()) {
    if ("phase" in line) {
      told.phases.set(line.phase, line.at);
      if (line.epoch !== undefined) told.epoch = line.epoch - line.at;
      if (line.phase === "faults") when = "during";
      if (line.phase === "healed") when = "tail";
    } else if ("fault" in line) {
      told.faults.push(line.fault);
      told.hits.push({ fault: line.fault, on: line.on, from: line.at - (line.ms ?? 0), to: line.at });
    } else if ("crashed" in line) {
      told.crashes.push({ from: line.at - line.crashed, to: line.at });
    } else if ("arrived" in line) {
      told.arrived.set(line.arrived, (told.arrived.get(line.arrived) ?? new Set()).add(line.sha256));
    } else if (line.is === "asked") {
      told.ops += 1;
      const asks: Ask[] = [];
      open.set(line.op, { at: line.at, jobs: line.jobs, verb: line.verb, when, asks });
      if (when) told[when].asked += 1;
      for (const { n } of line.jobs) {
        if (!isOfPeople(line.verb)) continue;
        const ask: Ask = { at: line.at, is: undefined };
        asks.push(ask);
        told.people[line.verb].set(n, [...(told.people[line.verb].get(n) ?? []), ask]);
      }
      if (line.verb === "pause" && told.paused.at(-1)?.to !== Infinity)
        told.paused.push({ from: line.at, to: Infinity });
      if (line.verb === "coalesce") {
        for (const { n, coalesce } of line.jobs) {
          const entry: Coalesced = { n, askedAt: position, overAt: Infinity, id: undefined, isCreated: false };
          told.coalesced.set(coalesce!, [...(told.coalesced.get(coalesce!) ?? []), entry]);
        }
      }
      if (line.verb === "batch") {
        for (const { key, items, fail = 0 } of line.jobs) {
          if (!told.batches.has(key!)) told.batches.set(key!, { items: items!, fails: fail, isAcked: false });
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
      sent.push({ asked, to: line.at });
      for (const ask of asked.asks) ask.is = line.is;
      if (line.at - asked.at > told.longest.ms) told.longest = { ms: line.at - asked.at, verb: asked.verb };
      if (asked.verb === "resume" && line.is === "ok" && told.paused.at(-1)?.to === Infinity)
        told.paused.at(-1)!.to = line.at;
      told.answers[line.is] += 1;
      if (line.is === "ok" && asked.when) told[asked.when].ok += 1;
      if (asked.verb === "batch" && line.is === "ok") {
        for (const { key } of asked.jobs) told.batches.get(key!)!.isAcked = true;
      }
      if (asked.verb === "put" && line.is === "ok") {
        for (const { key } of asked.jobs) told.puts.get(key!)!.isAcked = true;
      }
      if (asked.verb === "coalesce") {
        for (const [index, { n, coalesce }] of asked.jobs.entries()) {
          const entry = told.coalesced.get(coalesce!)!.find((each) => each.n === n)!;
          entry.overAt = position;
          if (line.is === "ok")
            Object.assign(entry, { id: line.ids[index], isCreated: line.created?.[index] ?? false });
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
  for (const asked of open.values()) {
    sent.push({ asked, to: Infinity });
    for (const job of asked.jobs) told.refused.delete(job.n);
  }
  const frozen = told.hits.filter(({ fault }) => fault === FROZEN);
  for (const { asked, to } of sent) {
    if (!frozen.some((freeze) => freeze.from <= to && freeze.to >= asked.at)) continue;
    for (const { n, key, coalesce } of asked.jobs) {
      if (asked.verb === "enqueue" && key === undefined) told.maybeTwice.add(n);
      if (asked.verb === "coalesce") told.coalesced.get(coalesce!)!.find((each) => each.n === n)!.overAt = Infinity;
    }
  }
  return told;
}

/** What is sent to a server that stands still may be given up, sent again, and be done twice when it goes on. */
export const FROZEN = "PostgreSQL: frozen";

interface Open {
  at: number;
  jobs: Asked[];
  verb: Verb;
  when: "during" | "tail" | undefined;
  asks: Ask[];
}

const isOfPeople = (verb: Verb): verb is keyof Told["people"] =>
  verb === "cancel" || verb === "retry" || verb === "discard" || verb === "release";
