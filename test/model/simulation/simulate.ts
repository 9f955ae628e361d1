// One seed: processes start, work is asked for, things go wrong, then nothing more does, and the judge looks.
import { defineJob, Fatal, type JobContext, Snooze } from "#src/index.js";
import type { EnqueueOptions } from "#src/client/new-job.js";
import { type Enqueuer, makeEnqueuer } from "#src/client/enqueue.js";
import { watchHealth } from "#src/db/health.js";
import { makeExpireLeases } from "#src/janitor/chores/expire-leases.js";
import { makeJanitor } from "#src/janitor/janitor.js";
import type { HoldfastEvents } from "#src/metrics/events.js";
import { makeTally } from "#src/metrics/tally.js";
import { makeEmitter } from "#src/shared/emitter.js";
import { makePulses } from "#src/shared/pulse.js";
import { makeStore } from "#src/store/sql.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { discardIfDead } from "#src/store/jobs/discard.js";
import { releaseIfRunning } from "#src/store/jobs/release.js";
import { retryIfDead } from "#src/store/jobs/retry.js";
import { makeOccupancy } from "#src/worker/occupancy.js";
import { makeWakeUps, type WakeUps } from "#src/worker/wake-ups.js";
import { makeWorker, type Worker } from "#src/worker/worker.js";
import { AFTER_DEATH, type ExecFact, gatherFacts, NEWEST } from "../../support/history/facts.ts";
import { judge, type Verdict } from "../../support/history/judge.ts";
import { type Asked, makeHistory, type Verb } from "../../support/history/record.ts";
import { makeRandom } from "../../support/random.ts";
import { SCHEMA, type SimDatabase } from "./database.ts";
import { CALM, type Chances, type SimProcess, World } from "./world.ts";

export interface Simulation extends Verdict {
  seed: number;
  statements: number;
  hash: number;
  faults: Record<string, number>;
  virtualMs: number;
}

/** The answer is known: nothing was done. */
class Refused extends Error {}

interface Running {
  process: SimProcess;
  worker: Worker;
  enqueuer: Enqueuer;
  wakeUps: WakeUps;
  /** It has started. */
  isUp: boolean;
}

const LEASE_MS = 1_000;
const KEEP = { ms: 86_400_000, queues: {} };
const MOST_STEPS = 20_000;
/** Handlers say in which order they ran, but not between which changes of the database: the judge has to go by those alone. */
const AFTER_ALL = 1_000_000_000;
const MOST_MS = 15 * 60_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function simulate(database: SimDatabase, seed: number, startMs: number): Promise<Simulation> {
  const random = makeRandom(seed);
  await database.empty();
  const world = new World(database, random, startMs);
  world.time.install(makeRandom(seed ^ 0x7171));
  try {
    return await world.time.inside(() => run(world, random, seed, database));
  } finally {
    world.time.uninstall();
  }
}

async function run(
  world: World,
  random: ReturnType<typeof makeRandom>,
  seed: number,
  database: SimDatabase,
): Promise<Simulation> {
  const startMs = world.time.now;
  const history = makeHistory();
  const execs: ExecFact[] = [];
  const note = (job: JobContext, what: ExecFact["what"], item: number | null = null): void => {
    execs.push({ seq: AFTER_ALL + execs.length, job: job.id, token: job.token, what, item });
  };
  const common = { lease: `${LEASE_MS}ms`, attempts: 4, backoff: ["50ms"] } as const;
  const kind = defineJob<Asked & { ms?: number; stubborn?: boolean; until?: number }>("sim.work", {
    ...common,
    async run(job) {
      const { ms = 0, fail = 0, fatal, effect, items = 0, stubborn, until = 0 } = job.payload;
      note(job, "start");
      if (Date.now() < until) throw new Snooze("50ms");
      const write = (tx: { query(text: string, values: unknown[]): Promise<unknown> }, item = 0): Promise<unknown> =>
        tx.query("insert into proof.effects (job, token, what, item) values ($1, $2, $3, $4)", [
          job.id,
          job.token,
          effect,
          item,
        ]);
      for (let left = ms; left > 0; left -= 50) {
        if (!stubborn) job.signal.throwIfAborted();
        await sleep(Math.min(left, 50));
      }
      if (fatal) throw new Fatal("as its payload says");
      if (job.attempt <= fail) throw new Error("as its payload says");
      if (effect === "step") await job.step("pay", (tx) => write(tx));
      if (effect === "chunks") {
        const all = Array.from({ length: items }, (_, item) => item);
        for await (const chunk of job.chunks("parts", all, { size: 2 })) {
          note(job, "chunk", chunk.start);
          await sleep(20);
          await chunk.save(async (tx) => {
            for (const item of chunk.items) await write(tx, item);
          });
        }
      }
      note(job, "end");
      const result = { token: job.token };
      if (effect !== "complete") return result;
      await job.transaction(async (tx) => {
        await write(tx);
        await job.complete(tx, result);
      });
      return undefined;
    },
  });

  // Says which payload it ran with.
  const newest = defineJob<{ n: number; ms: number }>(NEWEST, {
    ...common,
    async run(job) {
      const { n, ms } = job.payload;
      note(job, "start", n);
      for (let left = ms; left > 0; left -= 50) {
        job.signal.throwIfAborted();
        await sleep(Math.min(left, 50));
      }
      note(job, "end", n);
      return { token: job.token };
    },
  });
  const afterDeath = defineJob(AFTER_DEATH, {
    ...common,
    run(job) {
      note(job, "start");
      note(job, "end");
    },
  });

  // ---- processes

  let born = 0;
  const hasJanitor = [true, random.chance(0.4), random.chance(0.4)];
  /** Every place but the first may be without a janitor: whoever dies is followed by one of the same sort. */
  function start(at: number): Running {
    const process = world.makeProcess(`p${(born += 1)}`);
    return world.as(process, () => {
      const events = makeEmitter<HoldfastEvents>(() => {});
      const pulses = makePulses();
      const { db, seenForMs } = watchHealth(process.db, pulses);
      const store = makeStore(db, SCHEMA);
      const wakeUps = makeWakeUps({ db, schema: SCHEMA, onHeard() {}, onTrouble() {} });
      const worker = makeWorker({
        store,
        kinds: [kind, newest, afterDeath],
        concurrency: random.whole(1, 4),
        name: process.name,
        connection: undefined,
        hungHook: null,
        pollMs: 3_000,
        graceMs: 300,
        abortMs: 300,
        occupancy: makeOccupancy(),
        wakeUps,
        pulses,
        keepEnded: KEEP,
        inQueue: (same) => same,
        tally: makeTally(),
        events,
        log: () => ({ debug() {}, info() {}, warn() {}, error() {} }),
      });
      const janitor = makeJanitor({
        store,
        events,
        pulses,
        chores: [
          makeExpireLeases({
            store,
            events,
            seenForMs,
            liveWorkers: () => [worker.id],
            shortestLeaseMs: () => LEASE_MS,
            onRecovered: () => wakeUps.send({}),
            onEnded: () => wakeUps.send({}),
            onAdvanced: () => {},
            keepEnded: KEEP,
          }),
        ],
      });
      const enqueuer = makeEnqueuer({
        store,
        onTrouble: () => {},
        onAnswered: () => {},
        offer: (name, count) => worker.offer(name, count),
        onEnqueued: (jobs, _, taken) => {
          if (!taken) for (const each of jobs) wakeUps.send({ kind: each.kind, rank: 0 });
        },
      });
      if (at === 0 || hasJanitor[at]) void janitor.start();
      void wakeUps.listen().catch(() => {});
      // A process that cannot start ends, and is followed by another: that is what process managers do.
      const made: Running = { process, worker, enqueuer, wakeUps, isUp: false };
      worker.start().then(
        () => (made.isUp = true),
        () => {
          world.kill(process);
          world.time.later(200, () => {
            fleet = fleet.map((each) => (each.process === process ? start(at) : each));
          });
        },
      );
      return made;
    });
  }
  let fleet = Array.from({ length: random.whole(2, 3) }, (_, at) => start(at));

  // ---- what is asked

  let last = 0;
  /** Calls under way. Those of processes that died never end. */
  const open = new Map<Promise<unknown>, SimProcess>();
  const known: { id: string; n: number }[] = [];
  function ask(by: Running, isTail = false): void {
    const n = (last += 1);
    const asked: Asked = { n };
    const lot = random();
    if (lot < 0.3) asked.effect = "complete";
    else if (lot < 0.45) asked.effect = "step";
    else if (lot < 0.6) Object.assign(asked, { effect: "chunks", items: 6 });
    if (random.chance(0.15)) asked.fail = random.whole(1, 2);
    else if (random.chance(0.08)) asked.fatal = true;
    const options: EnqueueOptions = {};
    if (asked.fatal && random.chance(0.7)) {
      asked.onDead = true;
      options.onDead = { kind: AFTER_DEATH };
    }
    if (random.chance(0.1)) asked.snooze = true;
    if (isTail || random.chance(0.4)) options.key = asked.key = `k${n}`;
    if (random.chance(0.2)) options.group = asked.group = `g${random.whole(0, 1)}`;
    if (random.chance(0.15)) options.delay = `${random.whole(1, 1_500)}ms`;
    if (random.chance(0.15)) options.priority = random.whole(-1, 1);
    const payload = {
      ...asked,
      ms: random.pick([0, 0, 10, 200, 900, 1_300]),
      stubborn: random.chance(0.2),
      ...(asked.snooze ? { until: world.time.now + random.whole(50, 900) } : {}),
    };
    const send = async (): Promise<void> => {
      for (;;) {
        const op = history.asked("enqueue", [asked]);
        try {
          const { id, created } = await by.enqueuer.enqueue(kind, payload, options);
          history.ok(op, { ids: [id], created: [created] });
          known.push({ id, n });
          return;
        } catch (error) {
          history.notOk(op, "unknown", error);
          if (asked.key === undefined || !by.process.isAlive) return;
          await sleep(100);
        }
      }
    };
    const sent: Promise<unknown> = world.as(by.process, send).finally(() => open.delete(sent));
    open.set(sent, by.process);
  }
  /** Under one of two coalescing keys, which are open most of the time. */
  function coalesce(by: Running): void {
    const asked: Asked = { n: (last += 1), coalesce: `c${random.whole(0, 1)}` };
    const payload = { n: asked.n, ms: random.pick([0, 200, 900, 1_300]) };
    act(by, "coalesce", asked, async () => {
      const { id, created } = await by.enqueuer.enqueue(newest, payload, { coalesce: asked.coalesce! });
      return { ids: [id], created: [created] };
    });
  }
  /** Something that is asked for once, whatever comes of it. */
  function act(
    by: Running,
    verb: Verb,
    asked: Asked,
    work: () => Promise<{ ids: string[]; created?: boolean[] } | undefined>,
  ): void {
    const op = history.asked(verb, [asked]);
    const sent: Promise<unknown> = world
      .as(by.process, work)
      .then(
        (answer) => history.ok(op, answer ?? { ids: [] }),
        (error: unknown) => history.notOk(op, error instanceof Refused ? "failed" : "unknown", error),
      )
      .finally(() => open.delete(sent));
    open.set(sent, by.process);
  }
  const storeOf = (by: Running) => makeStore(by.process.db, SCHEMA);
  function cancel(by: Running): void {
    const found = known.length > 0 ? random.pick(known) : undefined;
    if (!found) return;
    act(by, "cancel", { n: found.n }, async () => {
      await cancelIfOpen(storeOf(by), [found.id], KEEP);
      return { ids: [found.id] };
    });
  }
  /** A person takes a running job away from its worker. */
  async function release(by: Running): Promise<void> {
    const { rows } = await world.ask<{ id: string }>(
      `select id from ${SCHEMA}.jobs where state = 'running' order by id`,
    );
    if (rows.length === 0) return;
    const { id } = random.pick(rows);
    world.as(by.process, () => {
      releaseIfRunning(storeOf(by), [id]).then(
        ([released]) => {
          if (!released) return;
          world.fault("taken away");
          by.wakeUps.send({ releasedTokens: [`${released.token}/${id}`] });
          by.wakeUps.send({ kind: released.kind, rank: released.rank, ids: [id] });
        },
        () => {},
      );
    });
  }
  /** A person has a dead job run again, or puts it away. A member of a group would join it at the end. */
  async function actOnDead(by: Running): Promise<void> {
    const { rows } = await world.ask<{ id: string; n: number }>(
      `select id, (payload ->> 'n')::integer as n from ${SCHEMA}.jobs
       where state = 'dead' and group_key is null and kind = 'sim.work' order by id`,
    );
    if (rows.length === 0) return;
    const { id, n } = random.pick(rows);
    const isRetry = random.chance(0.7);
    act(by, isRetry ? "retry" : "discard", { n }, async () => {
      const isDone = isRetry
        ? (await retryIfDead(storeOf(by), id)) === "retried"
        : await discardIfDead(storeOf(by), id, KEEP);
      if (!isDone) throw new Refused("It is not dead any more.");
      if (isRetry) by.wakeUps.send({ kind: kind.kind, rank: 0, ids: [id] });
      world.fault(isRetry ? "dead job run again" : "dead job put away");
      return { ids: [id] };
    });
  }

  // ---- what goes wrong: which sorts at all is decided once, how often each time

  const isOn = (): boolean => random.chance(0.5);
  const chances: Chances = {
    lostBefore: isOn() ? 0.03 : 0,
    lostAfter: isOn() ? 0.05 : 0,
    slow: isOn() ? 0.03 : 0,
    late: isOn() ? 0.5 : 0,
  };
  const sorts = [
    isOn() ? "kill" : "freeze",
    isOn() ? "freeze" : "cut off",
    isOn() ? "stop" : "kill",
    ...(random.chance(0.2) ? (["clock"] as const) : []),
  ] as const;

  async function goWrong(): Promise<void> {
    const at = random.whole(0, fleet.length - 1);
    const victim = fleet[at]!;
    const { process } = victim;
    if (process.frozenUntil > world.time.now || process.cutOffUntil > world.time.now) return;
    // A third crash of its own would rightly bury a job.
    const { rows } = await world.ask(`select 1 from ${SCHEMA}.jobs where crash_count >= 2 limit 1`);
    if (rows.length > 0) return;
    const sort = random.pick(sorts);
    world.fault(sort);
    history.fault(sort, process.name);
    // The database's clock jumps, back or ahead: leases end early or late, and what is due is due at another time.
    if (sort === "clock") world.clockSkewMs += random.whole(-120_000, 300_000);
    if (sort === "freeze") process.frozenUntil = world.time.now + random.whole(200, 4_000);
    if (sort === "cut off") process.cutOffUntil = world.time.now + random.whole(200, 4_000);
    if (sort === "kill") {
      world.kill(process);
      fleet = fleet.with(at, start(at));
    }
    if (sort === "stop") {
      fleet = fleet.with(at, start(at));
      // In its own context, and not waited for: it takes as long as it takes.
      world.as(process, () => void victim.worker.stop().catch(() => {}));
    }
  }

  // ---- the course of it

  history.phase("begin");
  const step = async (): Promise<void> => {
    if (!(await world.step())) throw new Error("Nothing will ever happen again.");
  };
  for (let steps = 0; steps < 12; steps += 1) await step();
  history.phase("faults");
  world.chances = chances;
  const wanted = random.whole(3, 9);
  const wrongs = random.whole(1, 5);
  let wrong = 0;
  for (let steps = 0; steps < 300 && (last < wanted || wrong < wrongs); steps += 1) {
    if (last < wanted && random.chance(0.12)) {
      if (random.chance(0.25)) coalesce(random.pick(fleet));
      else ask(random.pick(fleet));
    }
    if (random.chance(0.01)) cancel(random.pick(fleet));
    if (random.chance(0.01)) await release(random.pick(fleet));
    if (random.chance(0.03)) await actOnDead(random.pick(fleet));
    if (wrong < wrongs && random.chance(0.03)) {
      wrong += 1;
      await goWrong();
    }
    await step();
  }
  world.chances = CALM;
  for (const { process } of fleet) process.cutOffUntil = process.frozenUntil = 0;
  history.phase("healed");
  for (let steps = 0; steps < 2_000 && !fleet.some((each) => each.isUp); steps += 1) await step();
  const up = fleet.filter((each) => each.isUp);
  for (let n = 0; n < 2; n += 1) ask(up[n % up.length]!, true);
  const isOver = async (): Promise<boolean> => {
    if ([...open.values()].some((process) => process.isAlive)) return false;
    const { rows } = await world.ask(`select 1 from ${SCHEMA}.jobs where state <> 'dead' limit 1`);
    return rows.length === 0;
  };
  let isDrained = false;
  let isTried = false;
  for (let steps = 0; steps < MOST_STEPS && world.time.now - startMs < MOST_MS; steps += 1) {
    if (steps % 50 === 0 && (await isOver())) {
      isDrained = isTried || !random.chance(0.5);
      if (isDrained) break;
      // Most deaths are late ones.
      isTried = true;
      await actOnDead(up[0]!);
    }
    await step();
  }
  if (isDrained) history.phase("drained");
  const facts = await gatherFacts({ query: (text, values) => world.ask(text, values) }, SCHEMA);
  const audit = facts.audit.map((entry) => ({ ...entry, at: null }));
  const verdict = judge(history.lines, { ...facts, audit, execs }, { okShare: 0, drainMs: MOST_MS, faults: false });
  for (const { process } of fleet) world.kill(process);
  const unsound = await database.unsound();
  if (unsound !== undefined) verdict.violations.push(unsound);
  return {
    ...verdict,
    seed,
    statements: world.statements,
    hash: world.hash,
    faults: world.faults,
    virtualMs: Math.round(world.time.now - startMs),
  };
}
