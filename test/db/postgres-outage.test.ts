// The server tier on a bad day: silent networks, killed backends, a server that goes away and comes back. In all of
// it every call settles in time, nothing ends the process, and the pool works again afterwards.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Db } from "#src/db/db.js";
import { openPostgres, type PostgresOptions } from "#src/db/postgres.js";
import { Closed, DatabaseUnavailable } from "#src/errors.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { startPostgres } from "../support/postgres-server.mjs";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const TIMEOUT_MS = 500;
/** By then a call with that timeout has settled, on a busy machine too. */
const SETTLED_MS = TIMEOUT_MS + 1_000;
/** For calls that are not what is being measured. */
const CALM = { timeoutMs: 10_000 };

let database: TestDatabase;
/** Straight to the server: to look, and to kill. */
let direct: Db;
const cleanups: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await createDatabase();
  direct = await openPostgres({ url: database.url });
  await direct.script("create table mark (id text primary key)");
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});
afterAll(async () => {
  await direct.close();
  await database.drop();
});

async function openThroughProxy(options: PostgresOptions = {}): Promise<{ db: Db; proxy: TcpProxy; trouble: Error[] }> {
  const proxy = await startTcpProxy(database.url);
  const trouble: Error[] = [];
  const db = await openPostgres({
    url: proxy.through(database.url),
    statementTimeoutMs: TIMEOUT_MS,
    connectTimeoutMs: TIMEOUT_MS,
    closeTimeoutMs: 100,
    onTrouble: (error) => trouble.push(error),
    ...options,
  });
  cleanups.push(
    () => proxy.close(),
    () => db.close(),
  );
  return { db, proxy, trouble };
}

/** Makes the pool hold `count` idle connections. */
async function fill(db: Db, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => db.query("select pg_sleep(0.05)", [], CALM)));
}

async function backends(db: Db, count: number): Promise<number[]> {
  const answers = await Promise.all(
    Array.from({ length: count }, () =>
      db.query<{ pid: number }>("select pg_backend_pid() as pid, pg_sleep(0.05)", [], CALM),
    ),
  );
  return answers.map(({ rows }) => rows[0]!.pid);
}

const terminate = (pids: number[]): Promise<unknown> =>
  direct.query("select pg_terminate_backend(pid, 5000) from unnest($1::int[]) pid", [pids]);

async function marked(id: string): Promise<boolean> {
  return (await direct.query("select from mark where id = $1", [id])).rowCount === 1;
}

async function settled(call: Promise<unknown>): Promise<{ error: Error | undefined; ms: number }> {
  const startedAt = performance.now();
  const error = await call.then(
    () => undefined,
    (reason: Error) => reason,
  );
  return { error, ms: performance.now() - startedAt };
}

/** For what has no event to wait for. */
async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + 8_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`It never became true that ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("a network that falls silent", () => {
  test.skipIf(process.platform !== "linux")("what was given up is not sent later by the kernel", async () => {
    const { db, proxy } = await openThroughProxy({ poolSize: 1 });
    await fill(db, 1);
    proxy.pause("to-server");
    // More than the other side takes without reading it.
    const { error } = await settled(db.query("select length($1)", ["x".repeat(24 * 1_048_576)]));
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    const port = proxy.port.toString(16).toUpperCase().padStart(4, "0");
    const unsent = (): string[] =>
      readFileSync("/proc/net/tcp", "utf8")
        .split("\n")
        .filter((line) => new RegExp(String.raw`^\s*\d+: \w+:\w+ \w+:${port} \w+ (?!00000000)\w{8}:`).test(line));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(unsent()).toEqual([]);
  });

  test("every kind of call settles in time, the connections are destroyed, the pool works after it", async () => {
    const { db, proxy } = await openThroughProxy({ poolSize: 3 });
    await fill(db, 3);
    proxy.pause();
    const outcomes = await Promise.all([
      settled(db.query("select 1")),
      settled(db.script("select 1; select 2")),
      settled(db.transaction((tx) => tx.query("select 1"))),
      settled(db.notify("somewhere", "x")),
      ...Array.from({ length: 10 }, () => settled(db.query("select $1::int", [1]))),
      settled(db.query("select 1", [], { timeoutMs: 150 })),
    ]);
    for (const { error, ms } of outcomes) {
      expect(error).toBeInstanceOf(DatabaseUnavailable);
      expect(ms).toBeLessThan(SETTLED_MS);
    }
    expect(outcomes.at(-1)!.ms).toBeLessThan(1_150);
    proxy.resume();
    await until(() => ![1, 2, 3].some((id) => proxy.isOpen(id)), "all the silent connections were destroyed");
    await fill(db, 3);
    await until(() => proxy.open === 3, "the pool was full again, and nothing else was left");
  });

  test("one timeout is enough to drop every idle connection that was silent as long", async () => {
    const { db, proxy } = await openThroughProxy({ poolSize: 5 });
    await fill(db, 5);
    const old = proxy.accepted;
    proxy.onData(({ connection }) => (connection <= old ? "drop" : "pass"));
    expect((await settled(db.query("select 1"))).error).toBeInstanceOf(DatabaseUnavailable);
    for (let call = 0; call < 5; call += 1) {
      expect((await settled(db.query("select 1"))).error).toBeUndefined();
    }
  });

  test("a slow statement costs the busy neighbours nothing", async () => {
    const { db, proxy } = await openThroughProxy({ poolSize: 4 });
    await fill(db, 4);
    const slow = settled(db.query("select pg_sleep(10)"));
    const others = Array.from({ length: 3 }, async () => {
      for (let call = 0; call < 6; call += 1) await db.query("select pg_sleep(0.08)");
    });
    expect((await slow).error).toBeInstanceOf(DatabaseUnavailable);
    await Promise.all(others);
    expect(proxy.accepted - 4).toBeLessThanOrEqual(1 + 1); // the cancel request, and at most one new connection
  });

  test("a statement nobody waits for any more is cancelled on the server", async () => {
    const { db } = await openThroughProxy();
    await settled(db.query("select pg_sleep(30), 'nobody waits'"));
    await until(async () => {
      const running = "select from pg_stat_activity where query like '%nobody waits%' and pid <> pg_backend_pid()";
      return (await direct.query(running)).rowCount === 0;
    }, "the statement ended on the server");
  });

  test("connecting is bounded too", async () => {
    const { db, proxy } = await openThroughProxy();
    proxy.pause();
    const { error, ms } = await settled(db.query("select 1"));
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(ms).toBeLessThan(SETTLED_MS);
    proxy.resume();
    expect((await db.query("select 1")).rowCount).toBe(1);
  });

  test("an error of the work is thrown in time although ROLLBACK gets no answer", async () => {
    const { db, proxy } = await openThroughProxy();
    const mine = new Error("mine");
    const { error, ms } = await settled(
      db.transaction(async (tx) => {
        await tx.query("insert into mark values ('rolled back')");
        proxy.pause();
        throw mine;
      }),
    );
    expect(error).toBe(mine);
    expect(ms).toBeLessThan(SETTLED_MS);
    proxy.resume();
    await until(() => !proxy.isOpen(1), "its connection was destroyed");
    expect(await marked("rolled back")).toBe(false);
    expect((await db.query("select 1")).rowCount).toBe(1);
  });

  test("close() is bounded, and what was under way is told that it is closed", async () => {
    const { db, proxy } = await openThroughProxy({ poolSize: 1, statementTimeoutMs: 20_000, connectTimeoutMs: 20_000 });
    await fill(db, 1);
    await db.listen("any", { onMessage: () => {} });
    proxy.pause();
    const underWay = settled(db.query("select 1"));
    const waiting = settled(db.query("select 2"));
    expect((await settled(db.close())).ms).toBeLessThan(2_000);
    for (const { error, ms } of await Promise.all([underWay, waiting])) {
      expect(error).toBeInstanceOf(Closed);
      expect(ms).toBeLessThan(2_500);
    }
  });
});

describe("connections that break", () => {
  test("a backend killed while idle is an event nobody has to handle", async () => {
    const { db, trouble } = await openThroughProxy({ poolSize: 3 });
    await terminate(await backends(db, 3));
    await until(() => trouble.length === 3, "all three were reported");
    expect(trouble.map((error) => Reflect.get(error, "code"))).toEqual(["57P01", "57P01", "57P01"]);
    await fill(db, 3);
  });

  test("a backend killed at work fails its call only", async () => {
    const { db } = await openThroughProxy({ poolSize: 2, statementTimeoutMs: 5_000 });
    const [victim] = await backends(db, 1);
    const call = settled(db.query("select pg_sleep(10)"));
    const bystander = settled(db.query("select pg_sleep(0.3)"));
    await terminate([victim!]);
    const { error } = await call;
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error).toMatchObject({ cause: { code: "57P01" } });
    expect((await bystander).error).toBeUndefined();
    await fill(db, 2);
  });

  test("a backend killed inside a transaction, between two statements", async () => {
    const { db } = await openThroughProxy({ statementTimeoutMs: 5_000 });
    const { error } = await settled(
      db.transaction(async (tx) => {
        const { rows } = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
        await terminate([rows[0]!.pid]);
        await tx.query("insert into mark values ('killed')");
      }),
    );
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error?.message).toMatch(/not committed/);
    expect(await marked("killed")).toBe(false);
    await fill(db, 2);
  });

  test("work that swallows the loss of its connection does not pass for committed", async () => {
    const { db, proxy } = await openThroughProxy();
    const { error } = await settled(
      db.transaction(async (tx) => {
        await tx.query("insert into mark values ('swallowed')");
        proxy.cut();
        await tx.query("select 1").catch(() => {});
      }),
    );
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error?.message).toMatch(/not committed/);
    expect(await marked("swallowed")).toBe(false);
  });

  test("resets and refusals are DatabaseUnavailable at once, and over when they are over", async () => {
    const { db, proxy } = await openThroughProxy({ statementTimeoutMs: 5_000 });
    const call = settled(db.query("select pg_sleep(10)"));
    await until(() => proxy.open === 1, "it was connected");
    await proxy.refuse(true);
    proxy.cut();
    expect((await call).error).toBeInstanceOf(DatabaseUnavailable);
    const { error, ms } = await settled(db.query("select 1"));
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error).toMatchObject({ cause: { code: "ECONNREFUSED" } });
    expect(ms).toBeLessThan(1_000);
    await proxy.refuse(false);
    await fill(db, 3);
  });

  test("the server is stopped the hard way and started again", async () => {
    const server = await startPostgres({ settings: { shared_buffers: "16MB", max_connections: 20 } });
    cleanups.push(() => server.remove());
    const db = await openPostgres({
      url: server.url(),
      poolSize: 3,
      statementTimeoutMs: 5_000,
      connectTimeoutMs: 1_000,
    });
    cleanups.push(() => db.close());
    const ready: number[] = [];
    const messages: string[] = [];
    await db.listen("news", { onMessage: (text) => messages.push(text), onReady: () => ready.push(1) });
    await fill(db, 2);
    const atWork = settled(db.query("select pg_sleep(30)"));
    await until(
      async () => (await db.query("select from pg_stat_activity where state = 'active'")).rowCount === 2,
      "it ran",
    );
    await server.stop("immediate");
    expect((await atWork).error).toBeInstanceOf(DatabaseUnavailable);
    for (let call = 0; call < 5; call += 1) {
      expect((await settled(db.query("select 1"))).error).toBeInstanceOf(DatabaseUnavailable);
    }
    await server.start();
    await fill(db, 3);
    await until(() => ready.length === 2, "the listener came back");
    await db.notify("news", "back");
    await until(() => messages.includes("back"), "it hears again");
  });
});

describe("a pool that is used up", () => {
  test("waiting is bounded, says why, and ends when a connection is free", async () => {
    const { db } = await openThroughProxy({ poolSize: 2, statementTimeoutMs: 5_000 });
    const release = deferred();
    const held = [1, 2].map(() => db.transaction(() => release.promise));
    const { error, ms } = await settled(db.query("select 1"));
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error?.message).toMatch(/all 2 are busy/);
    expect(ms).toBeLessThan(SETTLED_MS);
    expect((await settled(db.query("select 1", [], { timeoutMs: 100 }))).ms).toBeLessThan(TIMEOUT_MS);
    const patient = db.query("select 1");
    release.resolve();
    expect((await patient).rowCount).toBe(1);
    await Promise.all(held);
    await fill(db, 2);
  });
});

describe("COMMIT", () => {
  test("whose reply is lost: the outcome is unknown, and it was committed", async () => {
    const { db, proxy } = await openThroughProxy();
    const { error } = await settled(
      db.transaction(async (tx) => {
        await tx.query("insert into mark values ('reply lost')");
        void proxy.loseReplyTo("commit");
      }),
    );
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error?.message).toMatch(/outcome is unknown/);
    expect(await marked("reply lost")).toBe(true);
    expect((await db.query("select 1")).rowCount).toBe(1);
  });

  test("that never reached the server: the outcome is unknown just the same", async () => {
    const { db, proxy } = await openThroughProxy();
    const { error } = await settled(
      db.transaction(async (tx) => {
        await tx.query("insert into mark values ('request lost')");
        proxy.onData(({ data }) => (data.includes("commit") ? "cut" : "pass"));
      }),
    );
    expect(error?.message).toMatch(/outcome is unknown/);
    expect(await marked("request lost")).toBe(false);
  });

  test("that gets no answer", async () => {
    const { db, proxy } = await openThroughProxy();
    const { error, ms } = await settled(
      db.transaction(async (tx) => {
        await tx.query("select 1");
        proxy.pause();
      }),
    );
    expect(error?.message).toMatch(/outcome is unknown/);
    expect(ms).toBeLessThan(SETTLED_MS);
  });

  test("a single statement whose reply is lost may have taken effect, and says so", async () => {
    const { db, proxy } = await openThroughProxy();
    const lost = proxy.loseReplyTo("insert into mark");
    const { error } = await settled(db.query("insert into mark values ($1)", ["single"]));
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(error?.message).toMatch(/may or may not have taken effect/);
    await lost;
    expect(await marked("single")).toBe(true);
  });
});

describe("a listener", () => {
  interface Heard {
    messages: string[];
    ready: number;
    down: string[];
  }

  async function listen(options: PostgresOptions = {}): Promise<{ db: Db; proxy: TcpProxy; heard: Heard }> {
    const opened = await openThroughProxy({ canaryIntervalMs: 150, canaryTimeoutMs: 200, ...options });
    const heard: Heard = { messages: [], ready: 0, down: [] };
    await opened.db.listen("news", {
      onMessage: (payload) => heard.messages.push(payload),
      onReady: () => (heard.ready += 1),
      onDown: (reason) => heard.down.push(reason),
    });
    return { ...opened, heard };
  }

  test("reconnects when its connection is reset, and says so", async () => {
    const { db, proxy, heard } = await listen();
    expect(heard).toMatchObject({ ready: 1, down: [] });
    proxy.cut();
    await until(() => heard.ready === 2, "it was ready again");
    expect(heard.down).toHaveLength(1);
    await db.notify("news", "after");
    await until(() => heard.messages.length > 0, "it hears again");
    expect(heard.messages).toEqual(["after"]);
  });

  test("its canary notices a connection that fell silent", async () => {
    const { db, proxy, heard } = await listen();
    const [pids, old] = [await listenerPids(), proxy.accepted];
    expect(pids).toHaveLength(1);
    proxy.onData(({ connection, direction }) => (connection <= old && direction === "to-client" ? "drop" : "pass"));
    await until(() => heard.ready === 2, "it was ready again");
    expect(heard.down).toHaveLength(1);
    await db.notify("news", "after");
    await until(() => heard.messages.length > 0, "it hears again");
    expect(heard.messages).toEqual(["after"]);
  });

  test("a paused network is noticed, and the end of the pause as well", async () => {
    const { proxy, heard } = await listen();
    proxy.pause();
    await until(() => heard.down.length === 1, "it was down");
    proxy.resume();
    await until(() => heard.ready === 2, "it was ready again");
    expect(heard.down).toHaveLength(1);
  });

  test("a busy pool is no reason to be down", async () => {
    const { db, heard } = await listen({ poolSize: 1, canaryTimeoutMs: 400 });
    await db.transaction((tx) => tx.query("select pg_sleep(1)"), { timeoutMs: 5_000 });
    expect(heard).toMatchObject({ ready: 1, down: [] });
  });

  test("behind a pooler that swallows notifications it is down from the start, and calls go on", async () => {
    const { db, proxy } = await openThroughProxy({ canaryTimeoutMs: 800 });
    await fill(db, 1);
    const NOTIFICATION = 0x41;
    proxy.onData(({ direction, data }) => (direction === "to-client" && data[0] === NOTIFICATION ? "drop" : "pass"));
    const events: string[] = [];
    await db.listen("news", {
      onMessage: () => events.push("message"),
      onReady: () => events.push("ready"),
      onDown: (reason) => events.push(reason),
    });
    expect(events).toEqual([expect.stringMatching(/did not arrive within 800ms/)]);
    await until(() => proxy.accepted >= 3, "it tried again");
    expect(events).toHaveLength(1);
    expect((await db.query("select 1")).rowCount).toBe(1);
    proxy.onData(undefined);
    await until(() => events.includes("ready"), "it was ready");
  });

  test("starts while the database is away", async () => {
    const { db, proxy } = await openThroughProxy();
    await proxy.refuse(true);
    const events: string[] = [];
    const listener = await db.listen("news", {
      onMessage: () => {},
      onReady: () => events.push("ready"),
      onDown: (reason) => events.push(reason),
    });
    expect(events).toEqual([expect.stringContaining("ECONNREFUSED")]);
    await proxy.refuse(false);
    await until(() => events.includes("ready"), "it was ready");
    await listener.close();
    await until(async () => (await listenerPids()).length === 0, "its backend was gone");
  });
});

async function listenerPids(): Promise<number[]> {
  const { rows } = await direct.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and query like 'listen %'",
  );
  return rows.map(({ pid }) => pid);
}

function deferred(): { promise: Promise<void>; resolve(): void } {
  let resolve: (() => void) | undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve: () => resolve?.() };
}

test("after close() nothing keeps the process alive", async () => {
  const script = `
    import { openPostgres } from "#src/db/postgres.js";
    const db = await openPostgres({ url: process.env.URL, poolSize: 3 });
    await db.listen("x", { onMessage() {} });
    await Promise.all([1, 2, 3, 4].map(() => db.query("select 1")));
    await db.query("select pg_sleep(5)", [], { timeoutMs: 50 }).catch(() => {});
    await db.close();
    console.log("closed");
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: process.cwd(),
    env: { ...process.env, URL: database.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const startedAt: Promise<number> = once(child.stdout, "data").then(() => performance.now());
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(performance.now() - (await startedAt)).toBeLessThan(1_500);
});
