// A storm: a PostgreSQL server of its own, workers as processes behind proxies of their own, and producers in this
// process, which is never killed and writes down everything it asks and is told. Faults are in faults.ts; when they are
// over everything is healed, what is left is drained, and the judge looks at history and database.
import { Client } from "pg";
import { openPostgres } from "#src/db/postgres.js";
import { type Holdfast, open } from "#src/index.js";
import { assertSound } from "../../support/assert-sound.ts";
import { findDamage } from "../../support/damage.ts";
import { type Facts, gatherFacts, instrumentation } from "../../support/history/facts.ts";
import { type Expectations, judge, type Verdict } from "../../support/history/judge.ts";
import { keepRun } from "../../support/history/keep.ts";
import { type History, makeHistory } from "../../support/history/record.ts";
import { saveResult } from "../../support/history/save-result.ts";
import { startPostgres } from "../../support/postgres-server.mjs";
import { killChildren, supervise, type Supervised } from "../../support/processes.ts";
import { makeRandom, type Random } from "../../support/random.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";
import { makeProducers, type Producers } from "./producers.ts";
import { measureRecovery, type Recovery } from "./recovery.ts";

export const SCHEMA = "hf_storm";
export type Server = Awaited<ReturnType<typeof startPostgres>>;

export interface StormOptions {
  seed: number;
  workers?: number;
  concurrency?: number;
  lease?: string;
  callTimeout?: string;
  poll?: string;
  grace?: string;
  timeout?: string;
  /** Jobs that may wait before the producers pause. */
  backlog?: number;
  /** Loops that enqueue. */
  producers?: number;
  settings?: Record<string, string | number>;
  /** Where workers and producers connect instead of through proxies: several hosts, or a pooler. */
  route?: (server: Server) => Promise<Route>;
  /** The workers say how large they are, and the first of them is spared, so that it can grow old. */
  report?: boolean;
  /** No fault is aimed at the first of the workers. */
  spares?: boolean;
  /** The most memory that a worker's heap may take. */
  heapMb?: number;
  /** No jobs that need order or time of their own. */
  batches?: boolean;
  /** The share of jobs in chunks that run for longer than their lease. */
  long?: number;
}

export interface Route {
  url: string;
  /** Where handlers write their log: whichever of them takes writes. */
  logUrls?: string[];
  /** For callers' own transactions, which know one host only. */
  callerUrl?: string;
  close(): Promise<void>;
}

export interface Place {
  readonly name: string;
  /** No fault is aimed at it. */
  readonly isSpared: boolean;
  readonly worker: Supervised;
  readonly proxy: TcpProxy;
}

export interface Storm {
  readonly random: Random;
  readonly history: History;
  /** The primary; a failover puts another one here. */
  server: Server;
  /** Direct, and asked again while the database is away. */
  ask<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  readonly places: readonly Place[];
  /** The way of the producers to the database. */
  readonly proxy: TcpProxy;
  readonly hf: Holdfast;
  readonly producers: Producers;
  /** Ends what a fault began, whatever it was. */
  readonly heals: Set<() => void | Promise<void>>;
  close(): Promise<void>;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function openStorm(options: StormOptions): Promise<Storm> {
  const random = makeRandom(options.seed);
  const history = makeHistory();
  const server = await startPostgres({ settings: { max_connections: 100, ...options.settings } });
  const route = await options.route?.(server);
  const through = (each: TcpProxy): string => route?.url ?? each.through(server.url());
  let sql: Client | undefined;
  const connect = async (): Promise<Client> => {
    if (sql) return sql;
    const made = new Client({
      connectionString: storm.server.url(),
      connectionTimeoutMillis: 2_000,
      query_timeout: 20_000,
    });
    const forget = (): void => {
      if (sql === made) sql = undefined;
    };
    made.on("error", forget);
    made.on("end", forget);
    await made.connect();
    return (sql = made);
  };
  const ask = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> => {
    const until = Date.now() + 30_000;
    for (;;) {
      try {
        return (await (await connect()).query(text, values)).rows as Row[];
      } catch (error) {
        if (Date.now() > until || (error as { severity?: string }).severity === "ERROR") throw error;
        await sleep(50);
      }
    }
  };
  const storm: Pick<Storm, "server"> = { server };
  await (await open({ database: server.url(), schema: SCHEMA })).close();
  await (await connect()).query(instrumentation(SCHEMA));

  const proxy = await startTcpProxy(server.url());
  const hf = await open({
    database: through(proxy),
    schema: SCHEMA,
    migrate: false,
    poolSize: 8,
    callTimeout: "2s",
  });
  const places: Place[] = [];
  // What a child is started with, now and in its later lives.
  if (options.heapMb !== undefined) process.env["NODE_OPTIONS"] = `--max-old-space-size=${options.heapMb}`;
  for (let index = 0; index < (options.workers ?? 4); index += 1) {
    const name = `w${index}`;
    const own = await startTcpProxy(server.url());
    const worker = supervise("storm-worker.mjs", {
      name,
      url: through(own),
      logUrls: route?.logUrls ?? [server.url()],
      schema: SCHEMA,
      concurrency: options.concurrency ?? 8,
      lease: options.lease ?? "1s",
      callTimeout: options.callTimeout ?? "2s",
      ...(options.poll ? { poll: options.poll } : {}),
      ...(options.grace ? { grace: options.grace } : {}),
      ...(options.timeout ? { timeout: options.timeout } : {}),
      ...(options.report ? { report: true } : {}),
    });
    places.push({ name, worker, proxy: own, isSpared: (options.report || options.spares) === true && index === 0 });
  }
  const heals = new Set<() => void | Promise<void>>();
  const producers = makeProducers({
    hf,
    history,
    random: makeRandom(options.seed ^ 0x5eed),
    callerUrl: route?.callerUrl ?? through(proxy),
    loops: options.producers ?? 4,
    backlog: options.backlog ?? 1_500,
    batches: options.batches ?? true,
    long: options.long ?? 0,
    schema: SCHEMA,
    waiting: async () =>
      (await ask<{ count: number }>(`select count(*)::integer as count from ${SCHEMA}.jobs where state <> 'dead'`))[0]!
        .count,
  });
  history.phase("begin");
  return Object.assign(storm, {
    random,
    history,
    ask,
    places,
    proxy,
    hf,
    producers,
    heals,
    async close() {
      await producers.stop();
      await producers.close();
      await killChildren();
      delete process.env["NODE_OPTIONS"];
      await hf.close();
      await sql?.end().catch(() => {});
      await Promise.all([proxy, ...places.map((place) => place.proxy)].map((each) => each.close()));
      await route?.close();
      await storm.server.remove();
    },
  });
}

export interface Outcome extends Verdict {
  part: string;
  seed: number;
  seconds: number;
  faults: Record<string, number>;
  claims: number;
  again: number;
  /** Attempts that were charged because a statement of the handler's own did not get through. */
  troubled: number;
  /** Indexes and tables in which amcheck looked for damage. */
  checked: number;
  drainedInMs: number;
  recovery: Recovery;
}

/** Heals, drains, judges, and writes the results down if somebody wants them. `wrong`: what others have found already. */
export async function endStorm(
  storm: Storm,
  part: string,
  seed: number,
  expected: Expectations = {},
  wrong: readonly string[] = [],
): Promise<Outcome> {
  const { history, ask, places, producers } = storm;
  const startedAt = history.lines[0]!.at;
  for (const heal of storm.heals) await heal();
  for (const each of [storm.proxy, ...places.map((place) => place.proxy)]) {
    each.onData(undefined);
    each.slow({});
    each.resume();
    // One that still waits for its bytes would cut what comes after the last fault.
    void each.cutAfter(Infinity);
    await each.refuse(false);
  }
  await producers.stop();
  // What was half open when the faults ended is found out by its timeouts, not by us.
  await untilWell(storm);
  history.phase("healed");
  const healedAt = performance.now();
  await producers.tail(40);
  await drained(storm, (expected.drainMs ?? 120_000) + 60_000);
  history.phase("drained");
  const drainedInMs = Math.round(performance.now() - healedAt);
  const exits = await Promise.all(
    places.map(async ({ worker }) => {
      // One that has only just been started again does not know yet what it is asked to do.
      await worker.child.until("ready").catch(() => {});
      const last = worker.child;
      await worker.stop();
      return { name: last.name, exit: await last.exited, errors: last.errors };
    }),
  );
  const db = await openPostgres({ url: storm.server.url() });
  let verdict: Verdict;
  let facts: Facts;
  const beside = [...wrong];
  let troubled = 0;
  let checked = 0;
  try {
    facts = await gatherFacts(db, SCHEMA);
    verdict = judge(history.lines, facts, expected);
    for (const count of facts.troubled.values()) troubled += count;
    for (const { name, exit, errors } of exits) {
      if (exit.code !== 0) beside.push(`I15: ${name} did not stop cleanly: ${JSON.stringify(exit)} ${errors}`);
    }
    await assertSound(db, SCHEMA, { idle: true }).catch((error: Error) => beside.push(error.message));
    const { damage, looked } = await findDamage(db);
    beside.push(...damage);
    checked = looked;
    verdict.violations.unshift(...beside);
  } finally {
    await db.close();
  }
  const [claims] = await ask<{ claims: number; again: number }>(
    `select coalesce(sum(claim_count), 0)::integer as claims, count(*) filter (where claim_count > 1)::integer as again
     from ${SCHEMA}.job_history`,
  );
  const recovery = await measureRecovery(storm);
  if (recovery.never > 0) {
    const never = `I15: ${recovery.never} runs that a kill cut off were never given to anybody again`;
    beside.push(never);
    verdict.violations.unshift(never);
  }
  const outcome: Outcome = {
    part,
    seed,
    seconds: Math.round((history.lines.at(-1)!.at - startedAt) / 1_000),
    faults: { ...history.faults },
    drainedInMs,
    recovery,
    troubled,
    checked,
    ...claims!,
    ...verdict,
  };
  const saved = await saveResult(part, seed, outcome);
  if (saved !== undefined) await keepRun(`${saved}.ndjson.gz`, { lines: history.lines, facts, expected, beside });
  return outcome;
}

/** Waits until the producers' own way to the database works again. */
async function untilWell(storm: Storm): Promise<void> {
  const until = Date.now() + 30_000;
  for (;;) {
    try {
      await storm.hf.jobs.list({ limit: 1 });
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(50);
    }
  }
}

async function drained({ ask }: Storm, limitMs: number): Promise<void> {
  const until = Date.now() + limitMs;
  for (;;) {
    const jobs = await ask(`select 1 from ${SCHEMA}.jobs where state <> 'dead' limit 1`);
    const batches = await ask(`select 1 from ${SCHEMA}.batches where finished_at is null limit 1`);
    const parcels = await ask(`select 1 from ${SCHEMA}.parcels where acked_at is null limit 1`);
    if (jobs.length + batches.length + parcels.length === 0) return;
    // The judge says what is missing.
    if (Date.now() > until) return;
    await sleep(100);
  }
}
