// `holdfast start` as a program of its own, for storms: killed as often as one likes, and started again at the same address.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/**
 * In the folder of its configuration. Started again whenever it dies, until it is stopped.
 * @param {{ cwd: string, database: string, token: string }} options
 */
export async function superviseServer({ cwd, database, token }) {
  const port = await freePort();
  const env = { PATH: process.env.PATH, DATABASE_URL: database, HOLDFAST_PORT: String(port), HOLDFAST_TOKEN: token };
  let isOver = false;
  let isReady = false;
  let child;
  let said = "";
  let kills = 0;
  const over = (async () => {
    while (!isOver) {
      isReady = false;
      said = "";
      child = spawn(process.execPath, [main, "start"], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
      child.stderr.setEncoding("utf8").on("data", (piece) => {
        said = (said + piece).slice(-20_000);
        if (/"message":"Ready"/.test(said)) isReady = true;
      });
      const [code] = await once(child, "exit");
      if (code !== null && code !== 0 && !isOver) await sleep(500);
    }
  })();
  return {
    url: `http://127.0.0.1:${port}`,
    get kills() {
      return kills;
    },
    async ready() {
      const end = Date.now() + 60_000;
      while (!isReady) {
        if (Date.now() > end) throw new Error(`holdfast start does not start: ${said}`);
        await sleep(20);
      }
    },
    kill() {
      kills += 1;
      isReady = false;
      child.kill("SIGKILL");
    },
    async stop() {
      isOver = true;
      child.kill("SIGTERM");
      const hard = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await over;
      clearTimeout(hard);
    },
  };
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
