// How fast the webhook answers while updates come in and are worked on: autocannon against `holdfast start` and a real
// PostgreSQL with fsync on, every request a new update of one of 200 chats.
//
//   npm run bench -w apps/telegram-gateway                       15 s with 4 connections, then 15 s with 32
//   BENCH_SECONDS=10 BENCH_CONNECTIONS=100 BENCH_CONCURRENCY=3 npm run bench -w apps/telegram-gateway
//
// Autocannon has many dependencies and is not needed for anything else: it is installed here at the first run.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const SECRET = "a-secret-of-the-bench";
const SECONDS = Number(process.env.BENCH_SECONDS ?? 15);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);
const CONCURRENCY = Number(process.env.BENCH_CONCURRENCY ?? 5);

if (!existsSync(join(here, "node_modules", "autocannon"))) {
  spawnSync("npm", ["ci", "--no-fund", "--no-audit", "--loglevel=error"], { cwd: here, stdio: "inherit" });
}
const { default: autocannon } = await import("autocannon");
const { startPostgres } = await import(join(root, "test", "support", "postgres-server.mjs"));
const { createJiti } = await import("jiti");
const { StandIn } = await createJiti(import.meta.url).import(join(here, "..", "src", "stand-in.ts"));

const postgres = await startPostgres();
const standIn = await StandIn.start();
const folder = await mkdtemp(join(tmpdir(), "telegram-bench-"));
await writeFile(
  join(folder, "holdfast.config.ts"),
  `import { defineConfig } from "holdfast";
   import { telegramGateway } from ${JSON.stringify(join(here, "..", "src", "index.ts"))};
   export default defineConfig({ concurrency: ${CONCURRENCY}, apps: [telegramGateway({
     apiRoot: ${JSON.stringify(standIn.url)},
     bots: { bench: { token: "4711:the-token-of-the-bench", secret: "${SECRET}", handler: "echo", async: true, requireAuth: false } },
   })] });`,
);
const env = {
  PATH: process.env.PATH,
  DATABASE_URL: postgres.url("postgres"),
  HOLDFAST_PORT: "0",
  HOLDFAST_TOKEN: "a-token-of-the-bench",
};
const gateway = spawn(process.execPath, [join(root, "dist", "cli", "main.js"), "start"], {
  cwd: folder,
  env,
  stdio: ["ignore", "ignore", "pipe"],
});

try {
  const url = await readyUrl(gateway);
  process.stdout.write(`${cpus().length} cores, Node ${process.version}, ${CONCURRENCY} slots, ${SECONDS} s each\n`);
  let next = 1;
  // The first is to warm up, and is not told.
  for (const [connections, seconds] of [
    [4, 3],
    [4, SECONDS],
    [CONNECTIONS, SECONDS],
  ]) {
    const result = await autocannon({
      url: `${url}/telegram/bench`,
      method: "POST",
      connections,
      duration: seconds,
      headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": SECRET },
      requests: [{ setupRequest: (request) => ({ ...request, body: update(next++) }) }],
    });
    if (seconds !== SECONDS) continue;
    const { latency, requests, errors, non2xx } = result;
    process.stdout.write(
      `${connections} connections: ${Math.round(requests.average)} webhooks/s; latency ms p50 ${latency.p50}, p97.5 ${latency.p97_5}, p99 ${latency.p99}, max ${latency.max}; errors ${errors}, not 2xx ${non2xx}\n`,
    );
  }
} finally {
  gateway.kill("SIGTERM");
  await once(gateway, "exit");
  await standIn.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}

function update(id) {
  const chat = { id: (id % 200) + 1, type: "private" };
  const from = { id: chat.id, is_bot: false, first_name: "Ada" };
  return JSON.stringify({ update_id: id, message: { message_id: id, date: 1, chat, from, text: `message ${id}` } });
}

async function readyUrl(child) {
  let text = "";
  for await (const piece of child.stderr.setEncoding("utf8")) {
    text += piece;
    const line = text.split("\n").find((said) => said.includes('"message":"Ready"') && said.endsWith("}"));
    if (!line) continue;
    child.stderr.resume();
    return JSON.parse(line).url;
  }
  throw new Error(`The gateway does not start: ${text}`);
}
