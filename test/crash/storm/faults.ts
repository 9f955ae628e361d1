// The faults of a storm. Each is seen in the history under its name, and puts what ends it into `heals` for as long as it
// lasts. A nemesis is a loop that picks one, does it, and rests.
import { spawnSync } from "node:child_process";
import { Client } from "pg";
import type { TcpProxy } from "../../support/tcp-proxy.ts";
import { type Place, SCHEMA, sleep, type Storm } from "./storm.ts";

export type Fault = (storm: Storm) => Promise<void>;

/** Runs `fault` under its name, and heals it even if the storm ends meanwhile. */
async function lasting(storm: Storm, ms: number, heal: () => void | Promise<void>): Promise<void> {
  storm.heals.add(heal);
  await sleep(ms);
  if (storm.heals.delete(heal)) await heal();
}

/**
 * A job that crashed alone twice must not be hit again: a third crash would rightly bury it. True: somebody may be hit.
 */
async function isForgiving({ ask }: Storm): Promise<boolean> {
  const rows = await ask(`select 1 from ${SCHEMA}.jobs where crash_count >= 2 limit 1`);
  return rows.length === 0;
}

function victim({ places, random }: Storm): Place | undefined {
  const busy = places.filter(
    ({ worker: { child }, isSpared }) =>
      !isSpared && child.isRunning && child.said.some((said) => said.what === "started"),
  );
  return busy.length === 0 ? undefined : random.pick(busy);
}

// ---- processes

export const kill: Fault = async (storm) => {
  const place = victim(storm);
  if (!place || !(await isForgiving(storm))) return;
  storm.history.fault("kill -9", place.name);
  place.worker.child.kill("SIGKILL");
};

/** Frozen for longer than a lease, then thawed: whatever it says then is refused. */
export const freeze: Fault = async (storm) => {
  const place = victim(storm);
  if (!place || !(await isForgiving(storm))) return;
  const { child } = place.worker;
  storm.history.fault("SIGSTOP", place.name);
  child.kill("SIGSTOP");
  await lasting(storm, storm.random.whole(1_300, 3_000), () => child.kill("SIGCONT"));
};

export const term: Fault = async (storm) => {
  const place = victim(storm);
  if (!place) return;
  storm.history.fault("SIGTERM", place.name);
  const { child } = place.worker;
  child.kill("SIGTERM");
  const exit = await Promise.race([child.exited, sleep(20_000)]);
  // Somebody else's fault may have killed it meanwhile.
  if (exit && exit.signal !== "SIGKILL" && exit.code !== 0) {
    throw new Error(`${child.name} did not stop cleanly: ${JSON.stringify(exit)}\n${child.errors}`);
  }
  if (!exit) throw new Error(`${child.name} did not stop within 20 s of SIGTERM.`);
};

// ---- the network

const NETWORK: Record<string, (proxy: TcpProxy, storm: Storm) => Promise<void>> = {
  reset: async (proxy) => proxy.cut(),
  silence: async (proxy, storm) => {
    proxy.pause();
    await lasting(storm, storm.random.whole(200, 3_500), () => proxy.resume());
  },
  "one-way silence": async (proxy, storm) => {
    proxy.pause(storm.random.pick(["to-server", "to-client"]));
    await lasting(storm, storm.random.whole(200, 3_500), () => proxy.resume());
  },
  "half open": async (proxy) => proxy.halfOpen(),
  slow: async (proxy, storm) => {
    proxy.slow({ ms: storm.random.whole(20, 200), jitterMs: 100 });
    await lasting(storm, storm.random.whole(500, 2_500), () => proxy.slow({}));
  },
  trickle: async (proxy, storm) => {
    proxy.slow({ bytesPerSecond: 8_000 });
    await lasting(storm, storm.random.whole(500, 2_000), () => proxy.slow({}));
  },
  "cut in the middle": async (proxy, storm) => {
    void proxy.cutAfter(storm.random.whole(1, 20_000));
    await sleep(storm.random.whole(50, 300));
  },
  refused: async (proxy, storm) => {
    await proxy.refuse(true);
    proxy.cut();
    await lasting(storm, storm.random.whole(100, 1_500), () => proxy.refuse(false));
  },
};

export const network: Fault = async (storm) => {
  const { random } = storm;
  if (!(await isForgiving(storm))) return;
  const name = random.pick(Object.keys(NETWORK));
  const place = random.chance(0.25) ? undefined : random.pick(storm.places.filter((each) => !each.isSpared));
  storm.history.fault(`network: ${name}`, place?.name ?? "producers");
  await NETWORK[name]!(place?.proxy ?? storm.proxy, storm);
};

const COMMITS: [what: string, pattern: RegExp][] = [
  ["enqueue", /insert_(alike|jobs|special|taken)_|copy [^]*from stdin/],
  ["settle", /settle_/],
  ["COMMIT", /^[\s\S]{5}commit\0/i],
];

/** From now on: of statements that commit something, so many reach the server and their answer never arrives. */
export function loseReplies(storm: Storm, share: number): void {
  const watch = (proxy: TcpProxy, on: string): void => {
    proxy.onData(({ direction, data }) => {
      if (direction !== "to-server") return "pass";
      const text = data.toString("latin1", 0, Math.min(data.length, 600));
      const found = COMMITS.find(([, pattern]) => pattern.test(text));
      if (!found || !storm.random.chance(share)) return "pass";
      return { verdict: "lose-reply", lost: () => storm.history.fault(`commit unknown: ${found[0]}`, on) };
    });
  };
  watch(storm.proxy, "producers");
  for (const { proxy, name } of storm.places) watch(proxy, name);
}

/** No notification arrives any more. */
export function loseNotifications(storm: Storm): void {
  const NOTIFICATION = 0x41;
  for (const { proxy } of storm.places) {
    proxy.onData(({ direction, data }) => {
      if (direction !== "to-client" || data[0] !== NOTIFICATION) return "pass";
      storm.history.fault("notification lost");
      return "drop";
    });
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

export const stopPostgres: Fault = async (storm) => {
  storm.history.fault("PostgreSQL: immediate stop");
  await storm.server.stop("immediate");
  await sleep(storm.random.whole(0, 2_500));
  await startAgain(storm);
};

export const killPostmaster: Fault = async (storm) => {
  storm.history.fault("PostgreSQL: kill -9 of the postmaster");
  await storm.server.stop("kill");
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
  storm.history.fault("PostgreSQL: kill -9 of a backend");
  process.kill(found.pid, "SIGKILL");
  await sleep(200);
  await untilUp(storm);
};

export const terminateBackends: Fault = async (storm) => {
  storm.history.fault("PostgreSQL: backends terminated");
  for (let round = 0; round < 5; round += 1) {
    await storm.ask(
      `select pg_terminate_backend(pid) from (
         select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
         order by random() limit 3) as victims`,
    );
    await sleep(60);
  }
};

/** Somebody else takes every connection there is. */
export const exhaustConnections: Fault = async (storm) => {
  storm.history.fault("PostgreSQL: connections exhausted");
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
    } catch {
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
  storm.history.fault("PostgreSQL: read-only");
  await turn("on");
  await lasting(storm, storm.random.whole(300, 3_000), () => turn("off"));
};

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
  storm.history.fault("PostgreSQL: frozen");
  send("SIGSTOP");
  await lasting(storm, storm.random.whole(500, 3_000), () => send("SIGCONT"));
};

// ---- loops

export interface Nemesis {
  /** Milliseconds between the end of one fault and the beginning of the next. */
  rest: [least: number, most: number];
  faults: readonly Fault[];
}

/** Until `over()`. Rejects with what a fault found wrong. */
export async function unleash(storm: Storm, nemeses: readonly Nemesis[], over: () => boolean): Promise<void> {
  storm.history.phase("faults");
  await Promise.all(
    nemeses.map(async ({ rest, faults }) => {
      while (!over()) {
        await sleep(storm.random.whole(...rest));
        await storm.random.pick(faults)(storm);
      }
    }),
  );
}
