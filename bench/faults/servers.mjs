// A server for each contender, so that they can be broken side by side: PostgreSQL with fsync on, or a Redis that writes every
// command to disk before it answers (appendfsync always): the strongest it has.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, startPostgres } from "../../test/support/postgres-server.mjs";
import { ask } from "../contenders/ask.mjs";

export async function startPostgresServer() {
  const server = await startPostgres({ settings: { shared_buffers: "32MB", max_connections: 120 } });
  let count = 0;
  return {
    /** A fresh database. */
    async fresh() {
      count += 1;
      await ask(server.url(), `create database faults_${count}`);
      return server.url(`faults_${count}`);
    },
    crash: () => server.stop("immediate"),
    start: () => server.start(),
    remove: () => server.remove(),
  };
}

export function redisVersion() {
  const found = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  return found.status === 0 ? (/v=([\d.]+)/.exec(found.stdout)?.[1] ?? "unknown") : undefined;
}

export async function startRedisServer() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-faults-redis-"));
  const port = await freePort();
  let child;
  async function start() {
    const durable = ["--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    const place = ["--port", String(port), "--bind", "127.0.0.1", "--maxmemory-policy", "noeviction"];
    child = spawn("redis-server", [...place, ...durable], { stdio: "ignore" });
    while ((await tell(port, "PING")) !== "+PONG") await sleep(20);
  }
  async function crash() {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }
  await start();
  process.once("exit", () => child.kill("SIGKILL"));
  return {
    async fresh() {
      await tell(port, "FLUSHALL");
      return `redis://127.0.0.1:${port}`;
    },
    crash,
    start,
    async remove() {
      await crash();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The first line of the answer; undefined if there was none. */
function tell(port, command) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.setTimeout(2_000, () => socket.destroy());
    socket.once("connect", () => socket.write(`${command}\r\n`));
    socket.once("data", (data) => {
      resolve(data.toString().split("\r\n")[0]);
      socket.destroy();
    });
    socket.once("error", () => resolve(undefined));
    socket.once("close", () => resolve(undefined));
  });
}
