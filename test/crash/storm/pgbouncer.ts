// A pooler in transaction mode between everybody and PostgreSQL: no session outlives a transaction, and no notification
// arrives. It comes from the system; where it is missing, the part is skipped and says so.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { freePort } from "../../support/postgres-server.mjs";
import { type Route, type Server, sleep } from "./storm.ts";

const NOBODY = 65_534;

export function findPgbouncer(): string | undefined {
  for (const path of ["pgbouncer", "/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]) {
    if (spawnSync(path, ["--version"]).status === 0) return path;
  }
  return undefined;
}

export async function routeToPgbouncer(server: Server): Promise<Route> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-pgbouncer-"));
  const port = await freePort();
  writeFileSync(
    join(folder, "pgbouncer.ini"),
    `[databases]
* = host=127.0.0.1 port=${server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 12
max_client_conn = 500
server_lifetime = 20
logfile = ${join(folder, "log")}
`,
  );
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  // It refuses to run as root.
  const child = spawn(findPgbouncer()!, [join(folder, "pgbouncer.ini")], {
    stdio: "ignore",
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  // A test process that ends before its time must not leave it behind.
  process.once("exit", () => child.kill("SIGKILL"));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  for (const until = Date.now() + 15_000; ;) {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("select 1");
      await client.end();
      break;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(100);
    }
  }
  return {
    url,
    logUrls: [server.url()],
    async close() {
      if (child.exitCode === null) {
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
