// Uploads over connections that are cut at random, to a server that is killed in between; the sender asks again with the
// same key until it is told yes, and a recipient pulls everything over connections that are cut as well. In the end every
// file has arrived once and whole, and nothing that broke off was ever seen.
//
// FAULT_UPLOADS=120 makes it long (`npm run test:faults`); FAULT_SEED repeats a run.
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { makeInboxApi } from "#src/cli/inbox-api.js";
import { pull } from "#src/cli/pull.js";
import { openTest, partsOf } from "#src/testing/open-test.js";
import { createDatabase } from "../support/database.ts";
import { saveResult } from "../support/history/save-result.ts";
import { TIERS } from "../support/open-test.ts";
import { QUICK_ENGINE } from "../support/quick-engine.ts";
import { makeRandom, seedFrom } from "../support/random.ts";
import { sha256 } from "./scene.ts";

const UPLOADS = Number(process.env["FAULT_UPLOADS"] ?? 24);
const SEED = seedFrom(process.env["FAULT_SEED"]);
const TOKEN = "0123456789abcdef0123";
const AT_ONCE = 4;
const script = fileURLToPath(new URL("children/server.mjs", import.meta.url));

/** The n-th file is the same in every run with the same seed, and is not kept. */
function fileOf(seed: number, n: number): Buffer {
  const random = makeRandom(seed * 31 + n);
  const size = 1 + Math.floor(random() ** 3 * 1_500_000);
  const block = createHash("sha512").update(`${seed} ${n}`).digest();
  return Buffer.alloc(size, block);
}

interface Server {
  port: number;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const running = new Set<ChildProcess>();
const clean: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const child of running) child.kill("SIGKILL");
  for (const work of clean.splice(0)) await work();
});

async function makeServer(database: string): Promise<Server> {
  let child: ChildProcess | undefined;
  const server: Server = {
    port: 0,
    async start() {
      const config = JSON.stringify({ database, port: server.port, token: TOKEN });
      const started = spawn(process.execPath, [...QUICK_ENGINE, script, config], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      child = started;
      running.add(started);
      const [line] = (await once(createInterface({ input: started.stdout }), "line")) as [string];
      server.port = (JSON.parse(line) as { port: number }).port;
    },
    async kill() {
      const ended = once(child!, "exit");
      child!.kill("SIGKILL");
      await ended;
      running.delete(child!);
    },
  };
  await server.start();
  return server;
}

/**
 * One try: what the server said, or null if there was no answer. `cutAt`: the connection is cut after so many bytes; `onCut` is
 * told when it was, which it is not if the server is away.
 */
async function tryUpload(
  port: number,
  key: string,
  bytes: Buffer,
  cutAt: number,
  onCut: () => void,
): Promise<number | null> {
  const socket = connect(port, "127.0.0.1");
  const head =
    `POST /api/v1/inbox/target/parcels?name=${key}.bin&key=${key} HTTP/1.1\r\nhost: 127.0.0.1\r\n` +
    `authorization: Bearer ${TOKEN}\r\ncontent-length: ${bytes.length}\r\nconnection: close\r\n\r\n`;
  const all = Buffer.concat([Buffer.from(head), bytes]);
  return await new Promise((resolve) => {
    let answer = "";
    socket.on("error", () => resolve(null));
    socket.on("close", () => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1];
      // An answer that did not arrive whole is none.
      resolve(status !== undefined && /\}\]\}\s*(0\s*)?$/.test(answer) ? Number(status) : null);
    });
    socket.on("data", (piece) => (answer += piece.toString("latin1")));
    socket.setTimeout(15_000, () => socket.destroy());
    socket.on("connect", () => {
      if (cutAt >= all.length) return void socket.write(all);
      socket.write(all.subarray(0, cutAt), (error) => {
        if (!error) onCut();
        socket.destroy();
      });
    });
  });
}

/** Everything that can be seen of the inbox, at any moment, is whole. */
async function assertWhole(port: number, expected: ReadonlyMap<string, string>): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/inbox/target/parcels?limit=500&order=newest`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  const { parcels } = (await response.json()) as { parcels: { key: string; sha256: string; id: string }[] };
  for (const { key, sha256: hash } of parcels) expect(hash, key).toBe(expected.get(key));
  return parcels.length;
}

describe.each(TIERS)("%s", (tier) => {
  test(
    `${UPLOADS} uploads, cut at random and with the server killed in between, arrive once and whole`,
    { timeout: 40_000 + UPLOADS * 1_200 },
    async ({ annotate }) => {
      await annotate(`FAULT_SEED=${SEED}`);
      const startedAt = performance.now();
      const random = makeRandom(SEED);
      const home = await mkdtemp(join(tmpdir(), "holdfast-faults-"));
      clean.push(() => rm(home, { recursive: true, force: true }));
      let database = `embedded:${join(home, "data")}`;
      if (tier === "server") {
        const made = await createDatabase();
        clean.push(() => made.drop());
        database = made.url;
      }
      const server = await makeServer(database);
      const expected = new Map<string, string>();
      const counts = { tries: 0, cuts: 0, kills: 0, refused: 0 };
      let sent = 0;
      const sendAll = async (): Promise<void> => {
        for (;;) {
          const n = sent++;
          if (n >= UPLOADS) return;
          const bytes = fileOf(SEED, n);
          const key = `f${n}`;
          expected.set(key, sha256(bytes));
          for (let status: number | null = null; status !== 201 && status !== 200;) {
            const cutAt = random() < 0.4 ? Math.floor(random() * (bytes.length + 400)) : Infinity;
            counts.tries += 1;
            status = await tryUpload(server.port, key, bytes, cutAt, () => (counts.cuts += 1));
            if (status !== null && status >= 400 && status !== 503) throw new Error(`${key}: ${status}`);
            if (status === null) await delay(20);
          }
        }
      };
      const killer = async (): Promise<void> => {
        const kills = Math.max(3, Math.floor(UPLOADS / 25));
        for (let n = 1; n <= kills; n += 1) {
          const due = (UPLOADS * n) / (kills + 1);
          while (sent < due) await delay(10);
          await delay(random() * 50);
          await server.kill();
          counts.kills += 1;
          await server.start();
          await assertWhole(server.port, expected);
        }
      };
      await Promise.all([killer(), ...Array.from({ length: AT_ONCE }, sendAll)]);
      await assertWhole(server.port, expected);

      // The recipient: pulled with cuts of its own (the server is killed under it), started again until nothing is left.
      const into = join(home, "pulled");
      const api = makeInboxApi(`http://127.0.0.1:${server.port}`, TOKEN);
      for (let rounds = 0, left = UPLOADS; left > 0; rounds += 1) {
        expect(rounds).toBeLessThan(50);
        const stopping = new AbortController();
        const pulling = pull({
          api,
          recipient: "target",
          into,
          once: true,
          signal: stopping.signal,
          onPulled: () => (left -= 1),
          onFailed: () => {},
        }).catch(() => {});
        if (rounds < 3) {
          await delay(random() * 300);
          if (rounds === 1) stopping.abort();
          await server.kill();
          counts.kills += 1;
          await pulling;
          await server.start();
        } else {
          await pulling;
          const { parcels } = await api.list("target", { state: "waiting,fetched", limit: "1" });
          if (parcels.length === 0) left = 0;
        }
      }
      const files = await readdir(into);
      expect(files.filter((name) => name.endsWith(".part"))).toEqual([]);
      const arrived = new Map<string, string>();
      for (const name of files) {
        const [, key = name] = /-(f\d+)\.bin$/.exec(name) ?? [];
        expect(arrived.has(key), `${key} twice`).toBe(false);
        arrived.set(key, sha256(await readFile(join(into, name))));
      }
      expect(arrived).toEqual(expected);

      // What broke off is swept: no draft and no chunk without a parcel is left.
      await server.kill();
      const hf = await openTest({ database, inbox: { draftTimeout: "1s" } });
      clean.unshift(() => hf.close());
      await hf.clock.advance("1h");
      // A run has a budget of time: what it did not get to is for the next.
      for (let hasMore = true; hasMore;) {
        const [run] = await hf.janitor.run("purge-inbox");
        hasMore = !run!.ran || run!.more;
      }
      const { db, store } = partsOf(hf);
      const { rows } = await db.query<{ drafts: number; parcels: number; acked: number; chunks: number }>(
        `select (select count(*)::integer from "${store.schema}".parcel_drafts) as drafts,
          (select count(*)::integer from "${store.schema}".parcels) as parcels,
          (select count(*)::integer from "${store.schema}".parcels where acked_at is not null) as acked,
          (select count(*)::integer from "${store.schema}".parcel_chunks c where not exists (
            select 1 from "${store.schema}".parcels p where p.id = c.parcel_id)) as chunks`,
      );
      expect(rows[0]).toEqual({ drafts: 0, parcels: UPLOADS, acked: UPLOADS, chunks: 0 });
      await hf.close();
      await annotate(JSON.stringify(counts));
      expect(counts.cuts).toBeGreaterThan(UPLOADS / 10);
      await saveResult(`uploads-${tier}`, SEED, {
        seconds: Math.round((performance.now() - startedAt) / 1_000),
        uploads: UPLOADS,
        tries: counts.tries,
        faults: { "upload cut": counts.cuts, "kill -9 of the server of uploads": counts.kills },
        violations: [],
      });
    },
  );
});
