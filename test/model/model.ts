// What the engine should do, in plain TypeScript, without a database: jobs, leases, keys, groups and a clock. Each method is
// what one statement of the store should come to, whoever sends it and however late.

export interface ModelJob {
  id: string;
  rank: number;
  payload: number;
  rerun: number | null;
  key: string | null;
  coalesce: string | null;
  group: string | null;
  runAt: number;
  /** As its row says: a job under a light lease is still pending. */
  state: "pending" | "running" | "dead" | "done" | "cancelled";
  /** 0 open, 1 behind the head of its group, 2 suspect, 3 dead, 4 being ended. */
  hold: number;
  attempt: number;
  maxAttempts: number;
  crashes: number;
  claims: number;
  token: string | null;
  /** When its last run was claimed. */
  startedAt: number;
  cancelAsked: boolean;
}

export interface ModelLease {
  token: string;
  leaseMs: number;
  expiresAt: number;
  alone: boolean;
  light: boolean;
  claimedAt: number;
  jobs: string[];
}

export interface ModelRun {
  id: string;
  token: string;
  leaseMs: number;
}

export type Ending = "done" | "retry" | "dead" | "snooze" | "release" | "cancelled";
const CRASH_LIMIT = 3;

export class Model {
  now: number;
  readonly jobs = new Map<string, ModelJob>();
  readonly leases = new Map<string, ModelLease>();
  readonly keys = new Map<string, { id: string; payload: number; expiresAt: number }>();
  /** Open members, in the order in which they were accepted. */
  readonly groups = new Map<string, string[]>();
  /** Every run there ever was, those that are over included. */
  readonly runs: ModelRun[] = [];
  /** Tokens of light claims, those that were marked or are over included. */
  readonly tookLightly = new Set<string>();
  readonly charged = new Map<string, number>();

  constructor(now: number) {
    this.now = now;
  }

  /** What it should be answered with. */
  enqueue(job: {
    id: string;
    rank: number;
    payload: number;
    key: string | null;
    coalesce: string | null;
    group: string | null;
    delay: number;
    keepKeyMs: number;
  }): { id: string; created: boolean; conflict: boolean } {
    const { id, rank, payload, key, coalesce, group, delay, keepKeyMs } = job;
    if (key !== null) {
      const known = this.keys.get(key);
      const isFree = !known || (known.expiresAt < this.now && !this.#isLive(known.id));
      if (!isFree)
        return { id: known.id, created: known.id === id, conflict: known.id !== id && known.payload !== payload };
      this.keys.set(key, { id, payload, expiresAt: this.now + keepKeyMs });
    }
    const runAt = this.now + delay;
    const open = coalesce === null ? undefined : this.#openWith(coalesce);
    if (open) {
      if (open.state === "running") open.rerun = payload;
      else {
        open.payload = payload;
        open.attempt = 0;
        open.runAt = Math.min(open.runAt, runAt);
        if (open.hold === 4) {
          open.hold = 0;
          open.crashes = 0;
          open.cancelAsked = false;
        }
      }
      return { id: open.id, created: false, conflict: false };
    }
    const made: ModelJob = {
      id,
      rank,
      payload,
      rerun: null,
      key,
      coalesce,
      group,
      runAt,
      state: "pending",
      hold: 0,
      attempt: 0,
      maxAttempts: 3,
      crashes: 0,
      claims: 0,
      token: null,
      startedAt: -Infinity,
      cancelAsked: false,
    };
    this.jobs.set(id, made);
    this.#join(made);
    return { id, created: true, conflict: false };
  }

  /** Ids that a claim of this rank should take, at most so many. */
  claimable(rank: number, limit: number): string[] {
    const light = this.#lightIds();
    return [...this.jobs.values()]
      .filter(
        (job) =>
          job.state === "pending" && job.hold === 0 && job.rank === rank && job.runAt <= this.now && !light.has(job.id),
      )
      .toSorted((a, b) => a.runAt - b.runAt || (a.id < b.id ? -1 : 1))
      .slice(0, limit)
      .map((job) => job.id);
  }

  /** The suspects of which a claim may take one. */
  suspects(alone: boolean): string[] {
    const due = [...this.jobs.values()].filter(
      (job) =>
        job.state === "pending" &&
        job.hold === 2 &&
        job.runAt <= this.now &&
        (alone || Math.max(job.runAt, job.startedAt) < this.now - 300_000),
    );
    const fewest = Math.min(...due.map((job) => job.crashes));
    const next = due.filter((job) => job.crashes === fewest);
    const first = Math.min(...next.map((job) => job.runAt));
    return next.filter((job) => job.runAt === first).map((job) => job.id);
  }

  take(ids: readonly string[], token: string, leaseMs: number, how: { alone?: boolean; light?: boolean } = {}): void {
    if (ids.length === 0) return;
    const { alone = false, light = false } = how;
    if (light) this.tookLightly.add(token);
    this.leases.set(token, {
      token,
      leaseMs,
      expiresAt: this.now + leaseMs,
      alone,
      light,
      claimedAt: this.now,
      jobs: [...ids],
    });
    for (const id of ids) {
      this.runs.push({ id, token, leaseMs });
      if (!light) this.#start(id, token);
    }
  }

  /** A light claim becomes one like any other. */
  mark(token: string): void {
    const lease = this.leases.get(token);
    if (!lease?.light) return;
    lease.light = false;
    for (const id of lease.jobs) if (this.jobs.get(id)?.state === "pending") this.#start(id, token);
  }

  markJob(id: string): void {
    for (const lease of this.leases.values()) if (lease.light && lease.jobs.includes(id)) this.mark(lease.token);
  }

  /** Whether this run may write about its job. */
  holds({ id, token }: ModelRun): boolean {
    const job = this.jobs.get(id);
    return job?.state === "running" && job.token === token;
  }

  isLight({ id, token }: ModelRun): boolean {
    return this.leases.get(token)?.light === true && this.jobs.get(id)?.state === "pending";
  }

  /** It has not ended, whether its row says so already or not. */
  isOpen(run: ModelRun): boolean {
    return this.holds(run) || this.isLight(run);
  }

  /** The lease is still there, and none of its runs is. */
  isOver(token: string): boolean {
    const lease = this.leases.get(token);
    return lease !== undefined && !lease.jobs.some((id) => this.isOpen({ ...lease, id }));
  }

  beat(token: string): "renewed" | "lost" {
    const lease = this.leases.get(token);
    if (!lease) return "lost";
    lease.expiresAt = this.now + lease.leaseMs;
    return "renewed";
  }

  /** What became of it; undefined: refused. */
  settle(run: ModelRun, ending: Ending, delay: number): string | undefined {
    if (!this.holds(run)) return undefined;
    const job = this.jobs.get(run.id)!;
    const verdict = this.#verdict(job, ending);
    if (ending === "retry" || ending === "dead") this.charged.set(job.id, (this.charged.get(job.id) ?? 0) + 1);
    if (verdict === "done" || verdict === "cancelled" || verdict === "dead") this.#end(job, verdict);
    else {
      const isRelease = verdict === "release";
      job.state = "pending";
      if (!isRelease) job.hold = 0;
      job.attempt = job.rerun !== null ? 0 : verdict === "retry" ? job.attempt : Math.max(job.attempt - 1, 0);
      job.payload = job.rerun ?? job.payload;
      job.rerun = null;
      job.cancelAsked = false;
      if (!isRelease) {
        job.runAt = this.now + (verdict === "again" ? 0 : delay);
        job.crashes = 0;
      }
    }
    return verdict;
  }

  /** All runs of a light claim at once: the ids that are done; undefined: it is not light any more, or not of so many. */
  settleWhole(token: string, runs: number): string[] | undefined {
    const lease = this.leases.get(token);
    if (!lease?.light || lease.jobs.length !== runs) return undefined;
    if (lease.jobs.some((id) => this.jobs.get(id)?.state !== "pending")) return undefined;
    this.leases.delete(token);
    for (const id of lease.jobs) {
      const job = this.jobs.get(id)!;
      Object.assign(job, { state: "done", token, attempt: job.attempt + 1, claims: job.claims + 1 });
    }
    return lease.jobs;
  }

  /** The ids whose runs are over because nobody beat. */
  expire(): string[] {
    const expired: string[] = [];
    for (const lease of this.leases.values()) {
      if (lease.expiresAt >= this.now) continue;
      this.mark(lease.token);
      this.leases.delete(lease.token);
      for (const id of lease.jobs) {
        if (!this.holds({ ...lease, id })) continue;
        const job = this.jobs.get(id)!;
        const ends = job.cancelAsked || (lease.alone && job.crashes + 1 >= CRASH_LIMIT);
        const goesOn = ends && job.rerun !== null;
        job.crashes = goesOn ? 0 : job.crashes + (lease.alone ? 1 : 0);
        job.hold = goesOn ? 0 : ends ? 4 : 2;
        job.runAt = lease.alone ? this.now : Math.min(job.runAt, this.now);
        job.attempt = job.rerun === null ? Math.max(job.attempt - 1, 0) : 0;
        if (job.rerun !== null) job.cancelAsked = false;
        job.payload = job.rerun ?? job.payload;
        job.rerun = null;
        job.state = "pending";
        job.token = null;
        expired.push(id);
      }
    }
    return expired;
  }

  endSetApart(): string[] {
    const ended: string[] = [];
    for (const job of this.jobs.values()) {
      if (job.hold !== 4 || job.state !== "pending") continue;
      ended.push(job.id);
      if (!job.cancelAsked) this.charged.set(job.id, (this.charged.get(job.id) ?? 0) + 1);
      this.#end(job, job.cancelAsked ? "cancelled" : "dead");
    }
    return ended;
  }

  cancel(id: string): "cancelled" | "requested" | undefined {
    this.markJob(id);
    const job = this.jobs.get(id);
    if (job?.state === "running") {
      job.cancelAsked = true;
      job.rerun = null;
      return "requested";
    }
    if (job?.state !== "pending") return undefined;
    this.#end(job, "cancelled");
    return "cancelled";
  }

  retry(id: string): "retried" | "not-dead" | "superseded" {
    const job = this.jobs.get(id);
    if (job?.state !== "dead") return "not-dead";
    if (job.coalesce !== null && this.#openWith(job.coalesce)) return "superseded";
    Object.assign(job, {
      state: "pending",
      attempt: 0,
      crashes: 0,
      runAt: this.now,
      hold: 0,
    } satisfies Partial<ModelJob>);
    this.#join(job);
    return "retried";
  }

  discard(id: string): boolean {
    if (this.jobs.get(id)?.state !== "dead") return false;
    this.jobs.delete(id);
    return true;
  }

  purgeKeys(): void {
    for (const [key, { id, expiresAt }] of this.keys) {
      if (expiresAt < this.now && !this.#isLive(id)) this.keys.delete(key);
    }
  }

  #isLive(id: string): boolean {
    const state = this.jobs.get(id)?.state;
    return state === "pending" || state === "running" || state === "dead";
  }

  #openWith(coalesce: string): ModelJob | undefined {
    return [...this.jobs.values()].find(
      (job) => job.coalesce === coalesce && (job.state === "pending" || job.state === "running"),
    );
  }

  #lightIds(): Set<string> {
    return new Set([...this.leases.values()].flatMap((lease) => (lease.light ? lease.jobs : [])));
  }

  #start(id: string, token: string): void {
    const job = this.jobs.get(id)!;
    job.state = "running";
    job.token = token;
    job.attempt += 1;
    job.claims += 1;
    job.startedAt = this.leases.get(token)!.claimedAt;
  }

  #verdict(job: ModelJob, ending: Ending): string {
    if (job.rerun !== null && ending !== "release") return "again";
    if (ending === "done" || ending === "cancelled") return ending;
    if (job.cancelAsked && job.rerun === null) return "cancelled";
    if (ending === "dead" || (ending === "retry" && job.attempt >= job.maxAttempts)) return "dead";
    return ending;
  }

  #join(job: ModelJob): void {
    if (job.group === null) return;
    const members = this.groups.get(job.group) ?? [];
    this.groups.set(job.group, members);
    members.push(job.id);
    job.hold = members[0] === job.id ? 0 : 1;
  }

  #end(job: ModelJob, how: "done" | "cancelled" | "dead"): void {
    job.state = how;
    if (how === "dead") {
      job.hold = 3;
      job.cancelAsked = false;
    }
    if (job.group === null) return;
    const members = this.groups.get(job.group)!;
    const wasHead = members[0] === job.id;
    members.splice(members.indexOf(job.id), 1);
    if (members.length === 0) this.groups.delete(job.group);
    else if (wasHead) this.jobs.get(members[0]!)!.hold = 0;
  }
}
