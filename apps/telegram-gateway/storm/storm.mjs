// Updates redelivered in random order by a real HTTP client, while workers and servers are killed with SIGKILL.
//
//   npm run storm -w apps/telegram-gateway                    2,000 updates, 40 kills, a PostgreSQL of its own
//   STORM_UPDATES=200 STORM_KILLS=4 DATABASE_URL=… npm run …  another size, another server
//
// Two servers take the webhooks and work, two more processes only work. Each chat's updates are delivered for the first
// time in their order, as Telegram does it; each is delivered up to four times more at random moments and through
// either server. At the end: every update's effect is there exactly once, and in order within its chat.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const SECRET = "a-secret-of-the-storm";
const TOKEN = "4711:the-token-of-the-storm";
const SCHEMA = "storm";
/** Leases are of one second: a job whose process was killed has long run again. */
const FORGIVEN_MS = 60_000;

/** `standIn`: the url of a stand-in for Telegram. `say`: told how it goes. Throws if anything is lost, doubled or out of order. */
export async function storm({ database, standInUrl, updates = 2_000, chats = 50, kills = 40, say = () => {} }) {
  const { Client } = require("pg");
  const sql = new Client({ connectionString: database });
  await sql.connect();
  // No unique index: an effect that happened twice is seen as two rows.
  await sql.query("create table if not exists effects (seq bigserial, chat bigint, update_id bigint)");
  const folder = await mkdtemp(join(tmpdir(), "telegram-storm-"));
  const source = pathToFileURL(join(root, "apps", "telegram-gateway", "src", "index.ts"));
  await writeFile(
    join(folder, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { telegramGateway } from ${JSON.stringify(fileURLToPath(source))};
     export default defineConfig({
       schema: "${SCHEMA}", lease: "1s", concurrency: 8,
       apps: [telegramGateway({
         apiRoot: ${JSON.stringify(standInUrl)},
         bots: { storm: {
           token: "${TOKEN}", secret: "${SECRET}", async: true, requireAuth: false,
           async handler(update, { text }) {
             await new Promise((resolve) => setTimeout(resolve, update.update_id % 30));
             return {
               text,
               commit: async (tx) => {
                 await tx.query("insert into public.effects (chat, update_id) values ($1, $2)", [update.message.chat.id, update.update_id]);
               },
             };
           },
         } },
       })],
     });`,
  );
  const processes = [
    supervise(["start"], folder, database),
    supervise(["start"], folder, database),
    supervise(["worker"], folder, database),
    supervise(["worker"], folder, database),
  ];
  const servers = processes.slice(0, 2);
  const tally = { deliveries: 0, refused: 0, duplicates: 0, kills: 0 };
  try {
    await Promise.all(processes.map((process) => process.ready()));
    say(`${updates} updates in ${chats} chats, ${kills} kills`);
    const course = { isOver: false };
    await together(course, [
      killAll({ sql, processes, kills, tally, course }),
      deliverAll({ servers, updates, chats, kills, tally, course }),
    ]);
    say(`${tally.deliveries} deliveries, ${tally.refused} not taken, ${tally.duplicates} known, ${tally.kills} kills`);
    await drained(sql);
    return { ...tally, ...(await judge(sql, updates)) };
  } finally {
    await Promise.all(processes.map((process) => process.stop()));
    await sql.end();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Until all have ended: the first that fails ends the others too, and is what went wrong. */
async function together(course, works) {
  let failure;
  const ended = works.map(async (work) => {
    try {
      await work;
    } catch (error) {
      failure ??= { error };
      course.isOver = true;
    }
  });
  await Promise.all(ended);
  if (failure) throw failure.error;
}

/** As long as there is something to deliver. */
async function killAll({ sql, processes, kills, tally, course }) {
  while (tally.kills < kills && !course.isOver) {
    await sleep(150 + Math.random() * 250);
    // Three kills in a row that meet the same job would rightly bury it.
    await forgiven(sql, course);
    if (course.isOver) return;
    const victim = processes[tally.kills % processes.length];
    if (!victim.isReady) continue;
    victim.kill();
    tally.kills += 1;
  }
}

async function deliverAll({ servers, updates, chats, kills, tally, course }) {
  const again = [];
  const perChat = Array.from({ length: chats }, () => []);
  for (let id = 1; id <= updates; id += 1) perChat[id % chats].push(id);
  let open = chats;
  const first = perChat.map(async (ids) => {
    for (const id of ids) {
      if (course.isOver) return;
      await deliver({ servers, id, chats, tally, course, insists: true });
      const times = Math.floor(Math.random() * 5);
      for (let n = 0; n < times; n += 1) again.splice(Math.floor(Math.random() * (again.length + 1)), 0, id);
      // The deliveries last as long as the kills do.
      if (tally.kills < kills) await sleep(Math.random() * 60);
    }
    open -= 1;
  });
  const redelivering = Array.from({ length: 8 }, async () => {
    while (!course.isOver && (open > 0 || again.length > 0)) {
      const id = again.pop();
      if (id === undefined) await sleep(20);
      else await deliver({ servers, id, chats, tally, course, insists: Math.random() < 0.5 });
    }
  });
  await together(course, [...first, ...redelivering]);
  course.isOver = true;
}

/** As Telegram: until it hears a 2xx. `insists`: a redelivery may also give up. */
async function deliver({ servers, id, chats, tally, course, insists }) {
  const chat = (id % chats) + 1;
  const from = { id: chat, is_bot: false, first_name: `user ${chat}` };
  const message = { message_id: id, date: 1, chat: { id: chat, type: "private" }, from, text: `text ${id}` };
  const body = JSON.stringify({ update_id: id, message });
  for (let tries = 0; tries < 2_000; tries += 1) {
    const server = servers[Math.floor(Math.random() * servers.length)];
    try {
      tally.deliveries += 1;
      const answer = await fetch(`${server.url}/telegram/storm`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": SECRET },
        body,
        signal: AbortSignal.timeout(20_000),
      });
      const { came } = await answer.json();
      if (came === "conflict") throw new Error(`Update ${id} came back as another one`);
      if (came === "duplicate") tally.duplicates += 1;
      if (answer.ok) return;
      if (answer.status < 500) throw new Error(`Update ${id} was refused: ${answer.status}`);
    } catch (error) {
      if (/came back|was refused/.test(String(error))) throw error;
      // Killed in the middle: nobody knows whether it was taken.
    }
    tally.refused += 1;
    if (!insists || course.isOver) return;
    await sleep(50);
  }
  throw new Error(`Update ${id} was never taken`);
}

async function judge(sql, updates) {
  const { rows } = await sql.query("select chat::int as chat, update_id::int as id from effects order by seq");
  const times = new Map();
  const last = new Map();
  const wrong = [];
  for (const { chat, id } of rows) {
    times.set(id, (times.get(id) ?? 0) + 1);
    if ((last.get(chat) ?? 0) > id) wrong.push(`chat ${chat}: ${id} after ${last.get(chat)}`);
    last.set(chat, id);
  }
  for (let id = 1; id <= updates; id += 1)
    if (times.get(id) !== 1) wrong.push(`update ${id}: ${times.get(id) ?? 0} times`);
  const { rows: replies } = await sql.query(
    `select count(*)::int as n, count(distinct update_id)::int as updates, count(*) filter (where state = 'sent')::int as sent
     from ${SCHEMA}.telegram_messages where purpose = 'reply'`,
  );
  const { rows: dead } = await sql.query(`select kind, last_error ->> 'message' as error from ${SCHEMA}.jobs limit 5`);
  if (dead.length > 0) wrong.push(`left over: ${JSON.stringify(dead)}`);
  const { n, updates: answered, sent } = replies[0];
  if (n !== updates || answered !== updates || sent !== updates) wrong.push(`replies: ${JSON.stringify(replies[0])}`);
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong: ${wrong.slice(0, 10).join("; ")}`);
  const { rows: claims } = await sql.query(
    `select count(*) filter (where claim_count > 1)::int as again from ${SCHEMA}.job_history where queue = 'telegram'`,
  );
  return { effects: rows.length, ranAgain: claims[0].again };
}

async function forgiven(sql, course) {
  const end = Date.now() + FORGIVEN_MS;
  while (!course.isOver) {
    const { rows } = await sql.query(
      `select id, kind, state, hold, crash_count as crashes from ${SCHEMA}.jobs where crash_count > 0 limit 5`,
    );
    if (rows.length === 0) return;
    if (Date.now() > end)
      throw new Error(`Not run again ${FORGIVEN_MS / 1_000} s after a kill: ${JSON.stringify(rows)}`);
    await sleep(50);
  }
}

async function drained(sql) {
  const end = Date.now() + 120_000;
  for (;;) {
    const { rows } = await sql.query(`select kind, state, hold from ${SCHEMA}.jobs where state <> 'dead' limit 5`);
    if (rows.length === 0) return;
    if (Date.now() > end) throw new Error(`Still open: ${JSON.stringify(rows)}`);
    await sleep(100);
  }
}

/** The real command line, started again whenever it dies. */
function supervise(args, cwd, database) {
  const main = join(root, "dist", "cli", "main.js");
  let isOver = false;
  let child;
  let url = "";
  let isReady = false;
  let errors = "";
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: database,
    HOLDFAST_PORT: "0",
    HOLDFAST_TOKEN: "a-token-of-the-storm",
  };
  const over = (async () => {
    while (!isOver) {
      isReady = false;
      child = spawn(process.execPath, [main, ...args], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
      let text = "";
      child.stderr.setEncoding("utf8").on("data", (piece) => {
        errors = (errors + piece).slice(-4_000);
        if (isReady) return;
        text += piece;
        const line = text.split("\n").find((said) => said.includes('"message":"Ready"') && said.endsWith("}"));
        if (!line) return;
        url = JSON.parse(line).url ?? "";
        isReady = true;
      });
      const [code] = await once(child, "exit");
      if (code !== null && code !== 0 && !isOver) await sleep(500);
    }
  })();
  return {
    get url() {
      return url;
    },
    get isReady() {
      return isReady;
    },
    async ready() {
      const end = Date.now() + 60_000;
      while (!isReady) {
        if (Date.now() > end) throw new Error(`holdfast ${args.join(" ")} does not start: ${errors}`);
        await sleep(20);
      }
    },
    kill() {
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

async function runAlone() {
  const { startPostgres } = await import(join(root, "test", "support", "postgres-server.mjs"));
  const { createJiti } = await import("jiti");
  const { StandIn } = await createJiti(import.meta.url).import(join(here, "..", "src", "stand-in.ts"));
  const say = (text) => process.stdout.write(`${text}\n`);
  const server = process.env.DATABASE_URL ? undefined : await startPostgres();
  const standIn = await StandIn.start();
  const began = Date.now();
  try {
    const result = await storm({
      database: process.env.DATABASE_URL ?? server.url("postgres"),
      standInUrl: standIn.url,
      updates: Number(process.env.STORM_UPDATES ?? 2_000),
      kills: Number(process.env.STORM_KILLS ?? 40),
      say,
    });
    // Telegram knows no idempotency: a process that is killed between its answer and our commit sends once more.
    const twice = standIn.sent.length - new Set(standIn.sent.map((sent) => sent.text)).size;
    say(
      `${JSON.stringify(result)}; messages that Telegram got twice: ${twice}; ${Math.round((Date.now() - began) / 1_000)} s`,
    );
    say("Every update took effect exactly once, in the order of its chat.");
  } finally {
    await standIn.close();
    await server?.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runAlone();
