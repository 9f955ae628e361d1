// A primary with a synchronous standby. A failover kills the primary, promotes the standby, and gives it a standby of its
// own, made from a copy of its files while it is stopped for a moment.
import { Client } from "pg";
import { startPostgres } from "../../support/postgres-server.mjs";
import type { Fault } from "./faults.ts";
import { type Route, type Server, sleep, type Storm } from "./storm.ts";

/** A standby must not have less of anything than its primary. */
const SETTINGS = { max_connections: 100 };
let standby: Server | undefined;

async function ask<Row>(server: Server, text: string): Promise<Row[]> {
  const client = new Client({ connectionString: server.url(), connectionTimeoutMillis: 2_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const limit = Date.now() + 60_000;
  for (;;) {
    if (await holds().catch(() => false)) return;
    if (Date.now() > limit) throw new Error(`Not within a minute: ${what}.`);
    await sleep(100);
  }
}

/** From now on every commit waits for the standby. */
async function addStandby(primary: Server, port?: number): Promise<Server> {
  await primary.stop("fast");
  const made = await startPostgres({
    settings: SETTINGS,
    standbyOf: { data: primary.data, port: primary.port },
    ...(port === undefined ? {} : { port }),
  });
  await primary.start();
  await ask(primary, "alter system set synchronous_standby_names = '*'");
  await ask(primary, "select pg_reload_conf()");
  await until("the standby is synchronous", async () => {
    const rows = await ask<{ state: string }>(primary, "select sync_state as state from pg_stat_replication");
    return rows.some((row) => row.state === "sync");
  });
  return made;
}

/** One URL with two hosts: a new standby takes the port of the primary that is gone. */
export async function routeToBoth(primary: Server): Promise<Route> {
  standby = await addStandby(primary);
  const hosts = [primary, standby].map((server) => `127.0.0.1:${server.port}`).join(",");
  const urls = [primary.url(), standby.url()];
  return {
    url: `postgres://postgres@${hosts}/postgres`,
    logUrls: urls,
    callerUrl: urls[0]!,
    close: async () => {
      await standby?.remove();
      standby = undefined;
    },
  };
}

export const failOver: Fault = async (storm: Storm) => {
  if (!standby) return;
  const old = storm.server;
  const next = standby;
  standby = undefined;
  const startedAt = performance.now();
  await old.stop(storm.random.chance(0.5) ? "kill" : "immediate");
  storm.history.crashed(performance.now() - startedAt);
  await ask(next, "select pg_promote(true, 30)");
  storm.server = next;
  await until("the new primary takes writes", async () => {
    const [row] = await ask<{ standby: boolean }>(next, "select pg_is_in_recovery() as standby");
    return !row!.standby;
  });
  storm.history.fault("failover");
  await until("the producers reach the new primary", async () => {
    await storm.hf.jobs.list({ limit: 1 });
    return true;
  });
  await sleep(3_000);
  await old.remove();
  standby = await addStandby(next, old.port);
};
