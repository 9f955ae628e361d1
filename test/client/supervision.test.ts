// Every background loop of a process is known by name, and one that stops is told of.
import { expect, describe, test } from "vitest";
import { makeHandler } from "#src/http/handler.js";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { createDatabase } from "../support/database.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { openTest } from "#src/testing/index.js";
import { until } from "../long/scene.ts";

const gauge = (text: string, name: string): number =>
  Number(new RegExp(`^holdfast_${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);

describe.each(TIERS)("the loops of a process (%s)", (tier) => {
  const bench = useHoldfast(tier);
  const names = (): string[] =>
    bench.hf.health
      .loops()
      .map(({ name }) => name)
      .toSorted();

  test("are all registered while it works, and none is left when it stops", async () => {
    expect(names()).toEqual([]);
    const worker = await bench.hf.work([makeKind()], { name: "w" });
    const held = bench.hf.janitor.chores.map(({ name }) => `janitor: ${name}`);
    const ofTier =
      tier === "server"
        ? ["heartbeat of w", "heartbeat thread of w", "janitor: watch", "listener of holdfast:holdfast"]
        : ["heartbeat of w"];
    const ofWorker = ["claim loop", "lease watch", "registration", "watch"].map((loop) => `${loop} of w`);
    await until("every loop has begun", () => Promise.resolve(names().length >= held.length + 4 + ofTier.length));
    expect(names()).toEqual([...held, ...ofTier, ...ofWorker].toSorted());
    expect(bench.hf.health.live()).toEqual({ isAlive: true, stopped: [] });
    await worker.stop();
    const left = [...held, ...(tier === "server" ? ["janitor: watch", "listener of holdfast:holdfast"] : [])];
    expect(names()).toEqual(left.toSorted());
  });

  test("those of an app or a program are told of over HTTP when they stop", async () => {
    const handler = makeHandler({ hf: bench.hf, kinds: [], token: "0123456789abcdef0123456789abcdef" });
    const live = async () => {
      const response = await handler(new Request("http://127.0.0.1/livez"));
      return { status: response.status, body: (await response.json()) as object };
    };
    const pulse = bench.hf.health.register("tailing the log");
    pulse.beat(60_000);
    expect(await live()).toEqual({ status: 200, body: { status: "ok", stoppedLoops: [] } });
    // It should have been heard of a minute ago.
    pulse.beat(-60_000);
    expect(await live()).toEqual({ status: 503, body: { status: "stopped", stoppedLoops: ["tailing the log"] } });
    pulse.end();
    expect((await live()).status).toBe(200);
  });

  test("streams of events are one while somebody listens", async () => {
    const handler = makeHandler({ hf: bench.hf, kinds: [], token: "0123456789abcdef0123456789abcdef" });
    const headers = { authorization: "Bearer 0123456789abcdef0123456789abcdef" };
    const { body } = await handler(new Request("http://127.0.0.1/api/v1/events", { headers }));
    expect(names()).toContain("event streams");
    await body!.cancel();
    handler.endStreams();
    expect(names()).not.toContain("event streams");
  });
});

test("a listener that is cut off is at it: no loop stopped, but /metrics says that notifications do not arrive", async () => {
  const database = await createDatabase();
  const proxy = await startTcpProxy(database.url);
  const hf = await openTest({ database: proxy.through(database.url), poolSize: 4 });
  try {
    const { metrics } = hf;
    const worker = await hf.work([makeKind()]);
    await until("it hears", async () => gauge(await metrics.text(), "listen_connected") === 1);
    expect(gauge(await metrics.text(), "db_pool_size")).toBe(4);
    // The first runs of all chores are more than its connections.
    await until("nobody waits", async () => gauge(await metrics.text(), "db_pool_waiting") === 0);
    const idle = 'db_pool_connections\\{state="idle"\\}';
    await until("some are idle", async () => gauge(await metrics.text(), idle) > 0);
    await proxy.refuse(true);
    proxy.cut();
    await until("it hears nothing", async () => gauge(await metrics.text(), "listen_connected") === 0);
    expect(hf.health.live().stopped).toEqual([]);
    await proxy.refuse(false);
    await until("it hears again", async () => gauge(await metrics.text(), "listen_connected") === 1);
    await worker.stop();
  } finally {
    await hf.close();
    await proxy.close();
    await database.drop();
  }
}, 30_000);
