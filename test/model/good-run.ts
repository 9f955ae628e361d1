// A run that went well, as history and facts, for the judge's tests: each of them breaks it in one way.
import {
  AFTER_BATCH,
  AFTER_DEATH,
  type AuditFact,
  type Facts,
  type JobFact,
  NEWEST,
} from "../support/history/facts.ts";
import type { Asked, Line, Verb } from "../support/history/record.ts";

export interface Run {
  lines: Line[];
  facts: Facts;
}

/** The machine's clock at the beginning of the history. */
export const EPOCH = 9_700;

export const job = (n: number, more: Partial<JobFact> = {}): JobFact => ({
  id: `id${n}`,
  n,
  kind: "storm.work",
  state: "done",
  attempt: 1,
  maxAttempts: 4,
  claimCount: 1,
  crashCount: 0,
  token: `t${n}`,
  key: null,
  coalesce: null,
  other: false,
  resultToken: `t${n}`,
  reason: null,
  follows: null,
  ...more,
});

const follower = (id: string, kind: string, follows: string): JobFact => ({
  ...job(-1, { kind, follows, token: `t-${id}`, resultToken: null }),
  id,
});

/** `newest`: the payload that its row knows in the end. */
const coalesced = (n: number, newest: number): JobFact => ({ ...job(n), n: newest, kind: NEWEST, coalesce: "c" });

/**
 * Six jobs: plain, with a key, with an effect, with a step, with chunks, and one that was killed once. A batch, and what follows
 * it. The key is asked for again with another payload. The first and the last are of one group. Three enqueues under one coalescing key, of
 * which the first two are one job. One job that dies, is run again, dies again and is put away, each death with what follows it. One that is
 * purged.
 */
export function goodRun(): Run {
  let seq = 0;
  const audit: AuditFact[] = [];
  /** `at`: in the history's own time. */
  const note = (
    id: string,
    what: string,
    token: string | null,
    claimCount: number | null = null,
    at: number | null = null,
  ): void => {
    audit.push({
      seq: (seq += 1),
      // In the commit of what is noted before it.
      xact: what.startsWith("ended") || (what === "accepted" && id.startsWith("after-24")) ? `x${seq - 1}` : `x${seq}`,
      job: id,
      what,
      token,
      claimCount,
      at: at === null ? null : EPOCH + at,
    });
  };
  const execs: Facts["execs"] = [];
  const effects: Facts["effects"] = [];
  const exec = (id: string, token: string, what: "start" | "end" | "chunk", item: number | null = null): void => {
    execs.push({ seq: (seq += 1), job: id, token, what, item });
  };
  const run = (
    n: number | string,
    token: string,
    claim: number,
    between: () => void,
    item: number | null = null,
  ): void => {
    const id = typeof n === "string" ? n : `id${n}`;
    note(id, "pending>running", token, claim);
    exec(id, token, "start", item);
    between();
    exec(id, token, "end", item);
    note(id, "running>gone", token, claim);
    note(id, "ended:done", token, claim);
  };
  const effect = (n: number, token: string, what: "complete" | "step" | "chunks", item = 0): void => {
    effects.push({ seq: (seq += 1), job: `id${n}`, token, what, item });
  };
  for (const n of [1, 2, 3, 4, 5, 6]) note(`id${n}`, "accepted", null, 0);
  run(1, "t1", 1, () => {});
  run(2, "t2", 1, () => {});
  run(3, "t3", 1, () => effect(3, "t3", "complete"));
  run(4, "t4", 1, () => effect(4, "t4", "step"));
  run(5, "t5", 1, () => {
    for (const start of [0, 2]) {
      exec("id5", "t5", "chunk", start);
      effect(5, "t5", "chunks", start);
      effect(5, "t5", "chunks", start + 1);
    }
  });
  note("id6", "light", "t6a");
  exec("id6", "t6a", "start");
  note("id6", "pending>running", "t6a", 1);
  note("id6", "running>pending", "t6a", 1, 3);
  run(6, "t6", 2, () => {});
  for (const [n, newest] of [
    [21, 22],
    [23, 23],
  ] as const) {
    note(`id${n}`, "accepted", null, 0);
    run(n, `t${n}`, 1, () => {}, newest);
  }
  note("id24", "accepted", null, 0);
  for (const claim of [1, 2]) {
    note("id24", "pending>running", `t24-${claim}`, claim);
    exec("id24", `t24-${claim}`, "start");
    note("id24", "running>dead", `t24-${claim}`, claim);
    note(`after-24-${claim}`, "accepted", null, 0);
    note("id24", claim === 1 ? "dead>pending" : "dead>gone", null, claim, 24 + claim);
  }
  note("id24", "ended:dead", null, 2);
  note("after-b", "accepted", null, 0);
  note("id0", "accepted", null, 0);
  for (const id of ["after-24-1", "after-24-2", "after-b"]) run(id, `t-${id}`, 1, () => {});
  run(0, "t0", 1, () => {});
  const ask = (op: number, jobs: Asked[], verb: Verb = "enqueue"): Line => ({ at: op, op, is: "asked", verb, jobs });
  const ok = (op: number, ids: string[], created = ids.map(() => true), conflict = ids.map(() => false)): Line => ({
    at: op,
    op,
    is: "ok",
    ids,
    created,
    conflict,
  });
  return {
    lines: [
      { at: 0, phase: "begin", epoch: EPOCH },
      { at: 1, phase: "faults" },
      ask(1, [{ n: 1, group: "g" }]),
      ok(1, ["id1"]),
      { at: 2, fault: "kill -9", on: "w0.1" },
      ask(2, [{ n: 2, key: "k2" }]),
      { at: 2, op: 2, is: "unknown", error: "no answer" },
      ask(3, [{ n: 2, key: "k2" }]),
      ok(3, ["id2"], [false]),
      ask(4, [
        { n: 3, effect: "complete" },
        { n: 4, effect: "step" },
        { n: 5, effect: "chunks", items: 4 },
      ]),
      ok(4, ["id3", "id4", "id5"]),
      ask(5, [{ n: 7 }]),
      { at: 5, op: 5, is: "failed", error: "refused" },
      { at: 6, op: 7, is: "asked", verb: "put", jobs: [{ n: 8, key: "p8", sha256: "h8" }] },
      { at: 6, op: 7, is: "unknown", error: "no answer" },
      { at: 6, op: 8, is: "asked", verb: "put", jobs: [{ n: 8, key: "p8", sha256: "h8" }] },
      { at: 6, op: 8, is: "ok", ids: ["id8"], created: [false] },
      { at: 7, arrived: "p8", sha256: "h8" },
      { at: 8, op: 10, is: "asked", verb: "batch", jobs: [{ n: 9, key: "b9", items: 3, fail: 1 }] },
      { at: 8, op: 10, is: "ok", ids: ["b"] },
      ask(21, [{ n: 21, coalesce: "c" }], "coalesce"),
      ok(21, ["id21"]),
      ask(22, [{ n: 22, coalesce: "c" }], "coalesce"),
      ok(22, ["id21"], [false]),
      ask(23, [{ n: 23, coalesce: "c" }], "coalesce"),
      ok(23, ["id23"]),
      ask(24, [{ n: 24, fatal: true, onDead: true }]),
      ok(24, ["id24"]),
      ask(25, [{ n: 24 }], "retry"),
      ok(25, ["id24"]),
      ask(26, [{ n: 24 }], "discard"),
      ok(26, ["id24"]),
      ask(27, [{ n: 10, brief: true }]),
      ok(27, ["id0"]),
      { at: 100, phase: "healed" },
      ask(11, [{ n: 2, key: "k2", other: true }]),
      ok(11, ["id2"], [false], [true]),
      ask(6, [{ n: 6, group: "g" }]),
      ok(6, ["id6"]),
      { at: 200, phase: "drained" },
    ],
    facts: {
      jobs: [
        job(1),
        job(2, { key: "k2" }),
        job(3),
        job(4),
        job(5),
        job(6, { claimCount: 2 }),
        follower("after-b", AFTER_BATCH, "b"),
        coalesced(21, 22),
        coalesced(23, 23),
        job(24, {
          state: "dead",
          token: null,
          resultToken: null,
          claimCount: 2,
        }),
        follower("after-24-1", AFTER_DEATH, "id24"),
        follower("after-24-2", AFTER_DEATH, "id24"),
      ],
      audit,
      execs,
      effects,
      charged: new Map([["id24", 2]]),
      troubled: new Map(),
      charges: [
        { job: "id24", claimCount: 1 },
        { job: "id24", claimCount: 2 },
      ],
      holders: new Map([["t6a", "w0.1"]]),
      keys: new Map([["k2", "id2"]]),
      purged: new Map([["id0", 10]]),
      purgedEarly: [],
      followers: new Map([["id24", 2]]),
      batches: [
        {
          id: "b",
          key: "b9",
          state: "done",
          total: 3,
          ended: 3,
          completions: 1,
          outcomes: 3,
          saved: 3,
          charged: 1,
          troubled: 0,
          doubles: 0,
          unmatched: 0,
          follow: 1,
        },
      ],
      parcels: [{ key: "p8", sha256: "h8", contentSha256: "h8", acked: true }],
    },
  };
}
