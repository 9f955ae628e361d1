// A Redis of our own, without persistence: what BullMQ's users mostly have, and not durable.
import { spawn, spawnSync } from "node:child_process";
import { createServer, connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** Undefined where there is no redis-server. */
export async function startRedis() {
  const found = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  if (found.status !== 0) return undefined;
  const port = await freePort();
  const settings = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--bind", "127.0.0.1"];
  const child = spawn("redis-server", ["--port", String(port), ...settings], { stdio: "ignore" });
  for (let tries = 0; tries < 100; tries++) {
    if ((await ask(port, "PING")) === "+PONG") break;
    await delay(50);
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    version: /v=([\d.]+)/.exec(found.stdout)?.[1] ?? "unknown",
    empty: () => ask(port, "FLUSHALL"),
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The first line of the answer; undefined if there was none. */
function ask(port, command) {
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
