// Files sent to a workspace that is killed with SIGKILL at random, through a real server, by real programs.
//
//   npm run storm -w apps/chat-uploads                       1,000 files, 40 kills, a PostgreSQL of its own
//   STORM_FILES=100 STORM_KILLS=5 DATABASE_URL=… npm run …   another size, another server
//
// `holdfast start` serves; people upload files and send messages that mention them, a few at a time; `holdfast workspace
// pull` receives, is killed, and is started again. In between the server is killed, too, now and then. At the end: every
// file is on the workspace's disk exactly once with the right hash, every message is in its journal exactly once and in order,
// and each was shown only when its files were there.
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const main = join(root, "dist", "cli", "main.js");
const ADMIN = "a-token-of-the-storm";
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Throws if anything is lost, doubled, changed, out of order or shown too early. */
export async function storm({ database, files = 1_000, kills = 40, serverKills = 3, say = () => {} }) {
  const folder = await mkdtemp(join(tmpdir(), "chat-storm-"));
  const source = fileURLToPath(new URL("../src/index.ts", import.meta.url));
  await writeFile(
    join(folder, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { chatUploads } from ${JSON.stringify(source)};
     export default defineConfig({ schema: "storm", apps: [chatUploads()] });`,
  );
  const port = 20_000 + Math.floor(Math.random() * 30_000);
  const server = supervise(
    ["start"],
    folder,
    { DATABASE_URL: database, HOLDFAST_PORT: String(port), HOLDFAST_TOKEN: ADMIN },
    "stderr",
  );
  const url = `http://127.0.0.1:${port}`;
  const tally = { kills: 0, atWork: 0, serverKills: 0, tooEarly: 0 };
  let workspace;
  try {
    await server.says('"message":"Ready"');
    const { id, token } = await insist(() =>
      post(url, "/workspaces", JSON.stringify({ name: "storm", delivery_mode: "poll" })),
    );
    const into = join(folder, "workspace");
    await mkdir(into);
    const env = { HOLDFAST_URL: url, HOLDFAST_TOKEN: token };
    workspace = supervise(["workspace", "pull", id, "--into", into, "--json"], folder, env, "stdout");
    let isOver = false;
    const killing = (async () => {
      while (tally.kills < kills && !isOver) {
        // In the middle of its work: when it has shown something in this life, or is about to.
        await workspace.spoke(10_000);
        await sleep(Math.random() * 300);
        if (workspace.lines > 0) tally.atWork += 1;
        workspace.kill();
        tally.kills += 1;
        if (tally.serverKills < serverKills && tally.kills % Math.ceil(kills / (serverKills + 1)) === 0) {
          server.kill();
          tally.serverKills += 1;
        }
      }
    })();
    const watching = watchJournal(into, () => isOver, tally);
    say(`${files} files, ${kills} kills of the workspace, ${serverKills} of the server`);
    // Spread over the kills, so that every life of the workspace has something to receive.
    const paced = async (share) => {
      while (share * kills > tally.kills + 1) await sleep(20);
    };
    const sent = await sendAll({ url, id, files, paced });
    await received({ url, id, into, last: sent.last });
    isOver = true;
    await killing;
    await watching;
    await workspace.stop();
    if (tally.tooEarly > 0) throw new Error(`${tally.tooEarly} files were not there when their message was shown`);
    return { ...tally, ...(await judge(into, sent)) };
  } finally {
    await workspace?.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** One to four files and a message that mentions them, from several people at once. */
async function sendAll({ url, id, files, paced }) {
  const hashes = new Map();
  const messages = [];
  let left = files;
  const person = async () => {
    while (left > 0) {
      const count = Math.min(left, 1 + Math.floor(Math.random() * 4));
      left -= count;
      const contents = Array.from({ length: count }, () => randomBytes(1 + Math.floor(Math.random() ** 3 * 600_000)));
      // What is sent again after a lost answer is another file: the same bytes would hide that one was lost.
      const uris = await insist(async () => {
        const form = new FormData();
        for (const content of contents) form.append("files", new File([content], "file.bin"));
        return (await post(url, `/workspaces/${id}/chat/uploads`, form)).files.map(({ uri }) => uri);
      });
      uris.forEach((uri, n) => hashes.set(uri.split("/").at(-1), sha256(contents[n])));
      const text = `message ${messages.length}`;
      const messageId = crypto.randomUUID();
      messages.push({ id: messageId, uris });
      await insist(() =>
        post(url, `/workspaces/${id}/chat/messages`, JSON.stringify({ id: messageId, text, files: uris })),
      );
      await paced((files - left) / files);
    }
  };
  await Promise.all(Array.from({ length: 4 }, person));
  const last = await insist(() => lastNotice(url, id));
  return { hashes, messages, last };
}

async function lastNotice(url, id) {
  let last = 0;
  for (;;) {
    const { notices } = await get(url, `/workspaces/${id}/inbox?after=${last}`);
    if (notices.length === 0) return last;
    last = notices.at(-1).seq;
  }
}

async function post(url, path, body) {
  const type = typeof body === "string" ? { "content-type": "application/json" } : {};
  const headers = { authorization: `Bearer ${ADMIN}`, ...type };
  const answer = await fetch(`${url}${path}`, { method: "POST", headers, body, signal: AbortSignal.timeout(20_000) });
  const content = await answer.json();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${JSON.stringify(content)}`);
  return content;
}

async function get(url, path) {
  const headers = { authorization: `Bearer ${ADMIN}` };
  const answer = await fetch(`${url}${path}`, { headers, signal: AbortSignal.timeout(20_000) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return await answer.json();
}

/** A server that was killed is there again soon. */
async function insist(work) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries > 300 || / 4\d\d /.test(String(error))) throw error;
      await sleep(100);
    }
  }
}

/** Until nothing waits, and the journal has the last notice. */
async function received({ url, id, into, last }) {
  const end = Date.now() + 300_000;
  for (;;) {
    const { workspace } = await insist(() => get(url, `/workspaces/${id}/chat`));
    const lines = (await readFile(join(into, "journal.ndjson"), "utf8").catch(() => "")).split("\n").length - 1;
    if (workspace.waiting === 0 && lines >= last) return;
    if (Date.now() > end)
      throw new Error(`${workspace.waiting} files wait; ${lines} of ${last} notices were dealt with`);
    await sleep(200);
  }
}

/** Looks at the journal as it grows: when a message appears, its files are there. */
async function watchJournal(into, isOver, tally) {
  let seen = 0;
  while (!isOver()) {
    const text = await readFile(join(into, "journal.ndjson"), "utf8").catch(() => "");
    const lines = text.split("\n").slice(0, -1);
    for (const line of lines.slice(seen)) {
      const entry = JSON.parse(line);
      for (const file of entry.kind === "message" ? entry.files : []) {
        const found = await stat(join(into, file.uri.replace("workspace:/", ""))).catch(() => undefined);
        if (found?.size !== file.size) tally.tooEarly += 1;
      }
    }
    seen = lines.length;
    await sleep(50);
  }
}

async function judge(into, { hashes, messages, last }) {
  const wrong = [];
  const journal = (await readFile(join(into, "journal.ndjson"), "utf8")).split("\n").slice(0, -1);
  const entries = journal.map((line) => JSON.parse(line));
  entries.forEach((entry, n) => {
    if (entry.seq !== n + 1) wrong.push(`journal line ${n + 1} is notice ${entry.seq}`);
  });
  if (entries.length !== last) wrong.push(`${entries.length} lines in the journal, ${last} notices`);
  const found = new Map();
  for (const name of await readdir(join(into, "files"))) {
    if (name.startsWith(".")) {
      wrong.push(`left over: ${name}`);
      continue;
    }
    const id = name.slice(0, 36);
    if (found.has(id)) wrong.push(`${id} is there twice`);
    found.set(id, sha256(await readFile(join(into, "files", name))));
  }
  let strangers = 0;
  for (const [id, hash] of hashes)
    if (found.get(id) !== hash) wrong.push(`${id}: ${found.has(id) ? "other bytes" : "missing"}`);
  // Uploads whose answer was lost with the server: stored, announced and received, and nobody mentions them.
  for (const id of found.keys()) if (!hashes.has(id)) strangers += 1;
  const told = entries.filter((entry) => entry.kind === "message");
  const times = new Map();
  for (const { id, files } of told) {
    times.set(id, (times.get(id) ?? 0) + 1);
    if (files.some((file) => !file.isHere)) wrong.push(`message ${id} mentions a file that is not here`);
  }
  for (const { id } of messages) if (times.get(id) !== 1) wrong.push(`message ${id}: ${times.get(id) ?? 0} times`);
  const gone = entries.filter((entry) => entry.kind === "file" && !entry.isHere);
  if (gone.length > 0) wrong.push(`${gone.length} files were gone`);
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong: ${wrong.slice(0, 10).join("; ")}`);
  return { files: hashes.size, messages: messages.length, strangers };
}

/** The real command line, started again whenever it dies. */
function supervise(args, cwd, more, stream) {
  let isOver = false;
  let child;
  let errors = "";
  let lines = 0;
  const hearers = new Set();
  const env = { PATH: process.env.PATH, ...more };
  const over = (async () => {
    while (!isOver) {
      lines = 0;
      child = spawn(process.execPath, [main, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
      createInterface({ input: child[stream] }).on("line", (line) => {
        lines += 1;
        for (const hear of hearers) hear(line);
      });
      child[stream === "stdout" ? "stderr" : "stdout"].resume();
      child.stderr.on("data", (piece) => (errors = (errors + piece).slice(-4_000)));
      const [code] = await once(child, "exit");
      if (code !== null && code !== 0 && !isOver) await sleep(300);
    }
  })();
  return {
    /** That it said in this life. */
    get lines() {
      return lines;
    },
    async spoke(ms) {
      const end = Date.now() + ms;
      await sleep(50);
      while (lines === 0 && Date.now() < end) await sleep(10);
    },
    async says(text) {
      let timer;
      await new Promise((resolve, reject) => {
        timer = setTimeout(
          () => reject(new Error(`holdfast ${args.join(" ")} does not say ${text}: ${errors}`)),
          60_000,
        );
        hearers.add((line) => line.includes(text) && resolve());
      });
      clearTimeout(timer);
    },
    kill() {
      child.kill("SIGKILL");
    },
    async stop() {
      isOver = true;
      child.kill("SIGINT");
      const hard = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await over;
      clearTimeout(hard);
    },
  };
}

async function runAlone() {
  const { startPostgres } = await import(join(root, "test", "support", "postgres-server.mjs"));
  const say = (text) => process.stdout.write(`${text}\n`);
  const server = process.env.DATABASE_URL ? undefined : await startPostgres();
  const began = Date.now();
  try {
    const result = await storm({
      database: process.env.DATABASE_URL ?? server.url("postgres"),
      files: Number(process.env.STORM_FILES ?? 1_000),
      kills: Number(process.env.STORM_KILLS ?? 40),
      say,
    });
    say(`${JSON.stringify(result)}; ${Math.round((Date.now() - began) / 1_000)} s`);
    say(
      "Every file is on the workspace's disk exactly once, with the right hash; every message once, in order, after its files.",
    );
  } finally {
    await server?.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runAlone();
