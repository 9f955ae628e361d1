// A file of 100 MB goes in, comes out and is removed, and the process never holds it: its memory grows by much less than
// the file. A process that does hold it is told apart by the same measure.
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { TIERS } from "../support/open-test.ts";

const SIZE = 104_857_600;
/** Below the file; above what chunks on their way, sockets, lazy garbage and the embedded engine's own memory take. */
const MOST_MIB = 80;

const script = fileURLToPath(new URL("children/round-trip.mjs", import.meta.url));

let database: TestDatabase;
let folder: string;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  database = await createDatabase();
  folder = await mkdtemp(join(tmpdir(), "holdfast-memory-"));
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

interface Lines {
  child: ChildProcess;
  next(): Promise<Record<string, unknown>>;
}

function run(tier: string, mode: string): Lines {
  const place = tier === "server" ? database.url : `embedded:${join(folder, mode)}`;
  const config = JSON.stringify({ database: place, size: SIZE, mode });
  const child = spawn(process.execPath, ["--expose-gc", script, config], { stdio: ["pipe", "pipe", "inherit"] });
  children.add(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    async next() {
      const { value, done } = await lines.next();
      if (done) throw new Error("The child ended.");
      return JSON.parse(value) as Record<string, unknown>;
    },
  };
}

describe.each(TIERS)("%s", (tier) => {
  test("put, open and purge hold a few chunks", { timeout: 120_000 }, async () => {
    const { next } = run(tier, "stream");
    expect(await next()).toEqual({ what: "went", matches: true, size: SIZE });
    const { mib } = await next();
    expect(mib).toBeLessThan(MOST_MIB);
  });

  test("over HTTP too: a raw body in, a download out", { timeout: 120_000 }, async () => {
    const { child, next } = run(tier, "http");
    const { url } = (await next()) as { url: string };
    const trip = async (size: number): Promise<void> => {
      const put = await upload(`${url}/api/v1/inbox/someone/parcels?name=big.bin`, size);
      expect(put).toMatchObject({ size, sha256: put.sent });
      expect(await download(`${url}/api/v1/inbox/someone/parcels/${put.id}/content`)).toBe(put.sent);
    };
    // What a first use costs once.
    for (let n = 0; n < 3; n += 1) await trip(8_388_608);
    child.stdin!.write("begin\n");
    await next();
    await trip(SIZE);
    child.stdin!.write("done\n");
    const { mib } = await next();
    expect(mib).toBeLessThan(MOST_MIB);
  });
});

test("the measure notices a process that holds the file", { timeout: 120_000 }, async () => {
  const { next } = run("server", "hold");
  expect(await next()).toMatchObject({ matches: true });
  const { mib } = await next();
  expect(mib).toBeGreaterThan(MOST_MIB);
});

const authorization = "Bearer 0123456789abcdef";

async function upload(url: string, size: number): Promise<{ id: string; sha256: string; size: number; sent: string }> {
  const hash = createHash("sha256");
  const sent = request(url, { method: "POST", headers: { authorization, "content-length": size } });
  const answered = once(sent, "response");
  for (let at = 0; at < size; at += 65_536) {
    const piece = Buffer.alloc(Math.min(65_536, size - at), (at / 65_536) % 253);
    hash.update(piece);
    if (!sent.write(piece)) await once(sent, "drain");
  }
  sent.end();
  const [response] = (await answered) as [NodeJS.ReadableStream];
  let text = "";
  for await (const piece of response) text += String(piece);
  const { parcels } = JSON.parse(text) as { parcels: { id: string; sha256: string; size: number }[] };
  return { ...parcels[0]!, sent: hash.digest("hex") };
}

async function download(url: string): Promise<string> {
  const response = await fetch(url, { headers: { authorization } });
  const hash = createHash("sha256");
  for await (const piece of response.body!) hash.update(piece as Uint8Array);
  return hash.digest("hex");
}
