// The faults of a storm. Each is written into the history under its name once it has had its effect, and puts what ends it
// into `heals` for as long as it lasts. A nemesis is a loop that picks one, does it, and rests.
import { spawnSync } from "node:child_process";
import { Client } from "pg";
import type { Child } from "../../support/processes.ts";
import type { TcpProxy } from "../../support/tcp-proxy.ts";
import { FROZEN } from "../../support/history/told.ts";
import { type Place, SCHEMA, sleep, type Storm } from "./storm.ts";

export type Fault = (storm: Storm) => Promise<void>;

const LOOK_MS = 100;

/**
 * Waits, and heals; if the storm ends meanwhile, that heals. It is over sooner if somebody must not be hit any more: what lasts hits whoever
 * comes into it.
 */
export async function lasting(storm: Storm, ms: number, heal: () => void | Promise<void>): Promise<void> {
  storm.heals.add(heal);
  let isOver = false;
  const untilUnforgiving = async (): Promise<void> => {
    while (!isOver) {
      await sleep(LOOK_MS);
      // The database may be what is away.
      if (!isOver && !(await isForgiving(storm).catch(() => true))) return;
    }
  };
  await Promise.race([sleep(ms), untilUnforgiving()]);
  isOver = true;
  if (storm.heals.delete(heal)) await heal();
}

/**
 * A job that crashed alone twice must not be hit again: a third crash would rightly bury it. True: somebody may be hit.
 */
async function isForgiving({ ask }: Storm): Promise<boolean> {
  const rows = await ask(`select 1 from ${SCHEMA}.jobs where crash_count >= 2 limit 1`);
  return rows.length === 0;
}

/** Frozen right now. They are left alone, so that they live to say what is refused. */
const frozen = new WeakSet<Child>();

function victim({ places, random }: Storm): Place | undefined {
  const busy = places.filter(
    ({ worker: { child }, isSpared }) =>
      !isSpared && child.isRunning && !frozen.has(child) && child.said.some((said) => said.what === "started"),
  );
  return busy.length === 0 ? undefined : random.pick(busy);
}

// ---- processes

export const kill: Fault = async (storm) => {
  if (!(await isForgiving(storm))) return;
  const child = victim(storm)?.worker.child;
  if (child?.kill("SIGKILL")) storm.history.fault("kill -9", child.name);
};

/** Of the longest of its leases, in milliseconds. Nothing: it has none. */
async function leaseOf({ ask }: Storm, worker: string): Promise<number | undefined> {
  const [row] = await ask<{ ms: number | null }>(
    `select max(l.lease_ms)::integer as ms from ${SCHEMA}.leases l join ${SCHEMA}.workers w on w.id = l.worker_id where w.name = $1`,
    [worker],
  );
  return row?.ms ?? undefined;
}

/**
 * Frozen for longer than a lease, then thawed: whatever it says then is refused. Only of one that had a lease, and was frozen for longer than
 * that, it is called so.
 */
export const freeze: Fault = async (storm) => {
  if (!(await isForgiving(storm))) return;
  const child = victim(storm)?.worker.child;
  if (!child?.kill("SIGSTOP")) return;
  frozen.add(child);
  const startedAt = performance.now();
  // Once it stands still, so that what it has is what it keeps.
  let leaseMs: number | undefined;
  void leaseOf(storm, child.name).then(
    (ms) => (leaseMs = ms),
    () => {},
  );
  await lasting(storm, storm.random.whole(1_300, 3_000), () => {
    frozen.delete(child);
    const ms = performance.now() - startedAt;
    const isPast = leaseMs !== undefined && ms > leaseMs;
    if (child.kill("SIGCONT")) storm.history.fault(isPast ? "SIGSTOP" : "frozen, and kept its lease", child.name, ms);
  });
};

export const term: Fault = async (storm) => {
  if (!(await isForgiving(storm))) return;
  const place = victim(storm);
  if (!place) return;
  const { child } = place.worker;
  const startedAt = performance.now();
  if (!child.kill("SIGTERM")) return;
  const exit = await Promise.race([child.exited, sleep(20_000)]);
  // Somebody else's fault may have killed it meanwhile.
  if (exit && exit.signal !== "SIGKILL" && exit.code !== 0) {
    throw new Error(`${child.name} did not stop cleanly: ${JSON.stringify(exit)}\n${child.errors}`);
  }
  if (!exit) throw new Error(`${child.name} did not stop within 20 s of SIGTERM.`);
  const isKilled = exit.signal === "SIGKILL";
  const ms = performance.now() - startedAt;
  storm.history.fault(isKilled ? "SIGTERM, and killed before it had ended" : "SIGTERM", child.name, ms);
};

// ---- the network

/** As long as it lasts; it has met somebody if it has kept something back that was said. */
async function keeping(proxy: TcpProxy, storm: Storm, ms: number, end: () => void, hit: () => void): Promise<void> {
  await lasting(storm, ms, () => {
    if (proxy.held > 0) hit();
    end();
  });
}

/** Each calls `hit` when it has met somebody. */
const NETWORK: Record<string, (proxy: TcpProxy, storm: Storm, hit: () => void) => Promise<void>> = {
  reset: async (proxy, _storm, hit) => {
    if (proxy.cut() > 0) hit();
  },
  silence: async (proxy, storm, hit) => {
    proxy.pause();
    await keeping(proxy, storm, storm.random.whole(200, 3_500), () => proxy.resume(), hit);
  },
  "one-way silence": async (proxy, storm, hit) => {
    proxy.pause(storm.random.pick(["to-server", "to-client"]));
    await keeping(proxy, storm, storm.random.whole(200, 3_500), () => proxy.resume(), hit);
  },
  "half open": async (proxy, _storm, hit) => {
    if (proxy.halfOpen() > 0) hit();
  },
  slow: async (proxy, storm, hit) => {
    proxy.slow({ ms: storm.random.whole(20, 200), jitterMs: 100 });
    await keeping(proxy, storm, storm.random.whole(500, 2_500), () => proxy.slow({}), hit);
  },
  trickle: async (proxy, storm, hit) => {
    proxy.slow({ bytesPerSecond: 8_000 });
    await keeping(proxy, storm, storm.random.whole(500, 2_000), () => proxy.slow({}), hit);
  },
  "cut in the middle": async (proxy, storm, hit) => {
    // It waits for so many bytes; if they do not come, the next one of its sort takes its place.
    void proxy.cutAfter(storm.random.whole(1, 20_000)).then(hit);
    await sleep(storm.random.whole(50, 300));
  },
  refused: async (proxy, storm, hit) => {
    await proxy.refuse(true);
    if (proxy.cut() > 0) hit();
    await lasting(storm, storm.random.whole(100, 1_500), () => proxy.refuse(false));
  },
};

export const network: Fault = async (storm) => {
  const { random } = storm;
  if (!(await isForgiving(storm))) return;
  const name = random.pick(Object.keys(NETWORK));
  const place = random.chance(0.25) ? undefined : random.pick(storm.places.filter((each) => !each.isSpared));
  const hit = (): void => storm.history.fault(`network: ${name}`, place?.name ?? "producers");
  await NETWORK[name]!(place?.proxy ?? storm.proxy, storm, hit);
};

interface Commit {
  what: string;
  matches(data: Buffer, head: string): boolean;
  /** So many times the share of the others, because there are few of it. */
  times?: number;
}

const COMMITS: Commit[] = [
  { what: "enqueue", matches: (_, head) => /insert_(alike|jobs|special|taken)_/.test(head) },
  // The last message of a COPY: what is answered then is its commit.
  { what: "COPY", matches: (data) => data.toString("latin1", data.length - 5) === "c\0\0\0\x04", times: 20 },
  { what: "settle", matches: (_, head) => /settle_/.test(head) },
  { what: "COMMIT", matches: (_, head) => /^[\s\S]{5}commit\0/i.test(head) },
];

/**
 * From now on: of statements that commit something, so many reach the server and their answer never arrives. Only those whose
 * answer said that they were committed are called so: the same statement may fail, or be part of a transaction.
 */
export function loseReplies(storm: Storm, share: number): void {
  const watch = (proxy: TcpProxy, on: string): void => {
    proxy.onData(({ direction, data }) => {
      if (direction !== "to-server") return "pass";
      const head = data.toString("latin1", 0, Math.min(data.length, 600));
      const found = COMMITS.find(({ matches }) => matches(data, head));
      if (!found || !storm.random.chance(share * (found.times ?? 1))) return "pass";
      return {
        verdict: "lose-reply",
        lost: (reply) =>
          storm.history.fault(
            reply === "committed" ? `committed, answer lost: ${found.what}` : "network: answer lost",
            on,
          ),
      };
    });
  };
  watch(storm.proxy, "producers");
  for (const { proxy, name } of storm.places) watch(proxy, name);
}

/** No notification arrives at a worker any more, whatever it arrives with: they are taken out, message by message. */
export function loseNotifications(storm: Storm): void {
  const NOTIFICATION = 0x41;
  for (const { proxy } of storm.places) {
    /** The beginning of a message whose rest has not come yet, by connection. */
    const begun = new Map<number, Buffer>();
    proxy.onData(({ direction, data, connection }) => {
      if (direction !== "to-client") return "pass";
      const all = Buffer.concat([begun.get(connection) ?? Buffer.alloc(0), data]);
      const kept: Buffer[] = [];
      let at = 0;
      while (at + 5 <= all.length && at + 1 + all.readUInt32BE(at + 1) <= all.length) {
        const end = at + 1 + all.readUInt32BE(at + 1);
        if (all[at] === NOTIFICATION) storm.history.fault("notification lost");
        else kept.push(all.subarray(at, end));
        at = end;
      }
      begun.set(connection, all.subarray(at));
      return kept.length === 0 ? "drop" : { verdict: "pass", instead: Buffer.concat(kept) };
    });
    // From their first byte: in the middle nobody knows where a message begins.
    proxy.cut();
  }
}

// ---- PostgreSQL

async function untilUp(storm: Storm): Promise<void> {
  const until = Date.now() + 60_000;
  for (;;) {
    const client = new Client({ connectionString: storm.server.url(), connectionTimeoutMillis: 1_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("select 1");
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(100);
    } finally {
      void client.end().catch(() => {});
    }
  }
}

async function startAgain(storm: Storm): Promise<void> {
  const until = Date.now() + 60_000;
  for (;;) {
    try {
      // The memory of a server whose postmaster was killed is in use until its last process is gone.
      await storm.server.start();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(200);
    }
  }
}

async function crash({ server, history }: Storm, how: "immediate" | "kill"): Promise<void> {
  const startedAt = performance.now();
  await server.stop(how);
  history.crashed(performance.now() - startedAt);
}

export const stopPostgres: Fault = async (storm) => {
  await crash(storm, "immediate");
  storm.history.fault("PostgreSQL: immediate stop");
  await sleep(storm.random.whole(0, 2_500));
  await startAgain(storm);
};

export const killPostmaster: Fault = async (storm) => {
  await crash(storm, "kill");
  storm.history.fault("PostgreSQL: kill -9 of the postmaster");
  await sleep(storm.random.whole(0, 1_000));
  await startAgain(storm);
};

/** The server throws everybody out and recovers, as after a segmentation fault. */
export const killBackend: Fault = async (storm) => {
  const [found] = await storm.ask<{ pid: number }>(
    `select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
     order by random() limit 1`,
  );
  if (!found) return;
  try {
    process.kill(found.pid, "SIGKILL");
  } catch {
    // It has ended by itself.
    return;
  }
  storm.history.crashed(0);
  storm.history.fault("PostgreSQL: kill -9 of a backend");
  await sleep(200);
  await untilUp(storm);
};

export const terminateBackends: Fault = async (storm) => {
  const startedAt = performance.now();
  let hit = 0;
  for (let round = 0; round < 5; round += 1) {
    const ended = await storm.ask<{ ended: boolean }>(
      `select pg_terminate_backend(pid) as ended from (
         select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
           and application_name <> $1
         order by random() limit 3) as victims`,
      [SNAPSHOT],
    );
    hit += ended.filter((row) => row.ended).length;
    await sleep(60);
  }
  if (hit > 0) storm.history.fault("PostgreSQL: backends terminated", undefined, performance.now() - startedAt);
};

const TOO_MANY_CONNECTIONS = "53300";

/** Somebody else takes every connection there is. */
export const exhaustConnections: Fault = async (storm) => {
  const held: Client[] = [];
  const release = async (): Promise<void> => {
    await Promise.all(held.splice(0).map((client) => client.end().catch(() => {})));
  };
  storm.heals.add(release);
  // Those who hold connections lose them, so that they need new ones.
  await storm.ask(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name like 'holdfast%'`,
  );
  for (;;) {
    const client = new Client({ connectionString: storm.server.url(), connectionTimeoutMillis: 1_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      held.push(client);
    } catch (error) {
      if ((error as { code?: unknown }).code === TOO_MANY_CONNECTIONS) {
        storm.history.fault("PostgreSQL: connections exhausted");
      }
      break;
    }
  }
  await sleep(storm.random.whole(500, 2_500));
  if (storm.heals.delete(release)) await release();
};

/** It answers, and takes nothing: what providers do to a full disk, and what a demoted primary does. */
export const goReadOnly: Fault = async (storm) => {
  const turn = async (value: "on" | "off"): Promise<void> => {
    await storm.ask(
      `begin read write; alter database postgres set default_transaction_read_only = ${value}; commit;
       select pg_terminate_backend(pid) from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
  };
  await turn("on");
  storm.history.fault("PostgreSQL: read-only");
  await lasting(storm, storm.random.whole(300, 3_000), () => turn("off"));
};

/** The application that keeps a snapshot: it is spared when connections are ended. */
export const SNAPSHOT = "old snapshot";

/**
 * Somebody keeps a snapshot, in a transaction with a number of its own: nothing that goes from now on can be cleaned away, and every index keeps
 * its dead entries.
 */
async function keepSnapshot(storm: Storm): Promise<() => Promise<void>> {
  const client = new Client({
    connectionString: storm.server.url(),
    connectionTimeoutMillis: 2_000,
    application_name: SNAPSHOT,
  });
  client.on("error", () => {});
  await client.connect();
  await client.query("begin isolation level repeatable read; select pg_current_xact_id()");
  storm.history.fault("PostgreSQL: old snapshot");
  return () => client.end().catch(() => {});
}

/** For a while. A server that is away just now has none. */
export const holdSnapshot: Fault = async (storm) => {
  const release = await keepSnapshot(storm).catch(() => undefined);
  if (release) await lasting(storm, storm.random.whole(2_000, 8_000), release);
};

/** From now on, until the faults are over. */
export async function holdSnapshotThroughout(storm: Storm): Promise<void> {
  storm.heals.add(await keepSnapshot(storm));
}

/** Everything stands still, as under a machine that is suspended. */
export const freezePostgres: Fault = async (storm) => {
  const postmaster = storm.server.pid()!;
  const listed = spawnSync("ps", ["-o", "pid=", "--ppid", String(postmaster)], { encoding: "utf8" }).stdout;
  const all = [postmaster, ...listed.split("\n").flatMap((line) => (line.trim() === "" ? [] : [Number(line)]))];
  const send = (signal: NodeJS.Signals): void => {
    for (const pid of all) {
      try {
        process.kill(pid, signal);
      } catch {
        // It ended by itself.
      }
    }
  };
  const startedAt = performance.now();
  send("SIGSTOP");
  await lasting(storm, storm.random.whole(500, 3_000), () => {
    send("SIGCONT");
    storm.history.fault(FROZEN, undefined, performance.now() - startedAt);
  });
};

// ---- loops

export interface Nemesis {
  /** Milliseconds between the end of one fault and the beginning of the next. */
  rest: [least: number, most: number];
  faults: readonly Fault[];
}

/** Until `over()`, or until a fault finds something wrong: then it rejects with that, once all have ended. */
export async function unleash(storm: Storm, nemeses: readonly Nemesis[], over: () => boolean): Promise<void> {
  storm.history.phase("faults");
  const wrong: unknown[] = [];
  await Promise.all(
    nemeses.map(async ({ rest, faults }) => {
      while (!over() && wrong.length === 0) {
        await sleep(storm.random.whole(...rest));
        await storm.random
          .pick(faults)(storm)
          .catch((error: unknown) => wrong.push(error));
      }
    }),
  );
  if (wrong.length > 0) throw wrong[0];
}
