// A file of 100 MB through the real programs: uploaded to `holdfast start` as a form, received by `holdfast workspace pull`.
// Neither holds it: what their memory grows by is measured from outside (Linux).
//
//   npm run memory -w apps/chat-uploads
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const main = join(root, "dist", "cli", "main.js");
const ADMIN = "a-token-that-measures";
const MIB = 1_048_576;
const WARM = 8 * MIB;

/** MiB that the server and the workspace grew by, beyond what smaller files had cost before. */
export async function memory({ database, size = 100 * MIB }) {
  const folder = await mkdtemp(join(tmpdir(), "chat-memory-"));
  const source = fileURLToPath(new URL("../src/index.ts", import.meta.url));
  await writeFile(
    join(folder, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { chatUploads } from ${JSON.stringify(source)};
     export default defineConfig({ schema: "memory", apps: [chatUploads()] });`,
  );
  const children = [];
  const run = (args, env) => {
    const child = spawn(process.execPath, [main, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    return child;
  };
  try {
    const server = run(["start"], { DATABASE_URL: database, HOLDFAST_PORT: "0", HOLDFAST_TOKEN: ADMIN });
    const url = await readyUrl(server);
    const answer = await fetch(`${url}/workspaces`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "memory", delivery_mode: "poll" }),
    });
    const { id, token } = await answer.json();
    const into = join(folder, "workspace");
    const workspace = run(["workspace", "pull", id, "--into", into, "--json"], {
      HOLDFAST_URL: url,
      HOLDFAST_TOKEN: token,
    });
    const lines = linesOf(workspace);
    const trip = async (bytes) => {
      const { hash } = await upload(url, id, bytes);
      const entry = JSON.parse(await lines.next());
      if (entry.sha256 !== hash || entry.size !== bytes) throw new Error(`${JSON.stringify(entry)} is not ${hash}`);
      return entry;
    };
    // What a first use costs once: code, plans, buffers.
    for (let n = 0; n < 4; n += 1) await trip(WARM);
    const watches = [watch(server.pid), watch(workspace.pid)];
    const entry = await trip(size);
    const [ofServer, ofWorkspace] = watches.map((stop) => stop());
    // And it is there.
    const [name] = (await readdir(join(into, "files"))).filter((found) => found.startsWith(entry.file_id));
    const saved = createHash("sha256")
      .update(await readFile(join(into, "files", name)))
      .digest("hex");
    if (saved !== entry.sha256) throw new Error("The file on disk is another one");
    return { size, server: ofServer, workspace: ofWorkspace };
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

const rss = (pid) => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_024;

function watch(pid) {
  const before = rss(pid);
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, rss(pid))), 10);
  return () => {
    clearInterval(timer);
    return Math.round(Math.max(peak, rss(pid)) - before);
  };
}

/** A form with one file, made as it is sent: nothing here holds it. */
async function upload(url, id, size) {
  const hash = createHash("sha256");
  const boundary = "a-line-that-is-nowhere-in-it";
  const head = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="files"; filename="big.bin"\r\ncontent-type: application/octet-stream\r\n\r\n`,
  );
  const foot = Buffer.from(`\r\n--${boundary}--\r\n`);
  const sent = request(`${url}/workspaces/${id}/chat/uploads`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${ADMIN}`,
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": head.length + size + foot.length,
    },
  });
  const answered = once(sent, "response");
  sent.write(head);
  for (let at = 0; at < size; at += 65_536) {
    const piece = Buffer.alloc(Math.min(65_536, size - at), (at / 65_536) % 253);
    hash.update(piece);
    if (!sent.write(piece)) await once(sent, "drain");
  }
  sent.end(foot);
  const [response] = await answered;
  let text = "";
  for await (const piece of response) text += String(piece);
  if (response.statusCode !== 200) throw new Error(`The upload was answered ${response.statusCode}: ${text}`);
  return { hash: hash.digest("hex") };
}

function readyUrl(server) {
  return new Promise((resolve, reject) => {
    let text = "";
    server.once("exit", () => reject(new Error(`The server ended: ${text}`)));
    server.stderr.setEncoding("utf8").on("data", (piece) => {
      text += piece;
      const line = text.split("\n").find((said) => said.includes('"message":"Ready"') && said.endsWith("}"));
      if (line) resolve(JSON.parse(line).url);
    });
  });
}

function linesOf(child) {
  let text = "";
  let trouble = "";
  const waiting = [];
  const lines = [];
  child.stdout.setEncoding("utf8").on("data", (piece) => {
    text += piece;
    const parts = text.split("\n");
    text = parts.pop();
    for (const line of parts) {
      const next = waiting.shift();
      if (next) next.resolve(line);
      else lines.push(line);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (piece) => (trouble = (trouble + piece).slice(-2_000)));
  child.once("exit", () => waiting.forEach(({ reject }) => reject(new Error(`The workspace ended: ${trouble}`))));
  return {
    next: () =>
      lines.length > 0
        ? Promise.resolve(lines.shift())
        : new Promise((resolve, reject) => waiting.push({ resolve, reject })),
  };
}

async function runAlone() {
  const { startPostgres } = await import(join(root, "test", "support", "postgres-server.mjs"));
  const server = process.env.DATABASE_URL ? undefined : await startPostgres();
  try {
    const result = await memory({ database: process.env.DATABASE_URL ?? server.url("postgres") });
    process.stdout.write(`${JSON.stringify(result)} (MiB that each grew by)\n`);
  } finally {
    await server?.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runAlone();
