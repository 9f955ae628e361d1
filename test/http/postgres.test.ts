// The same server on a real PostgreSQL: the round trip, and what callers are told while the database is away.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { type Api, KINDS, startApi } from "./api.ts";

let database: TestDatabase;
let proxy: TcpProxy;
let api: Api;
beforeAll(async () => {
  database = await createDatabase();
  proxy = await startTcpProxy(database.url);
  api = await startApi(proxy.through(database.url));
  await api.hf.work(KINDS);
});
afterAll(async () => {
  await api.close();
  await proxy.close();
  await database.drop();
});

test("a job goes in, runs, and comes back with its result", async () => {
  const { status, body } = await api.post("/api/v1/jobs", { kind: "greet", payload: { name: "Ada" }, key: "k" });
  expect(status).toBe(201);
  await api.hf.jobs.wait(body.id as string, { timeout: "10s" });
  expect((await api.get(`/api/v1/jobs/${body.id}`)).body).toMatchObject({
    state: "done",
    key: "k",
    result: { greeting: "Hello, Ada!" },
  });
  expect((await api.get("/readyz")).body).toMatchObject({ status: "ok", tier: "server" });
});

test("while the database is away: 503 with Retry-After, live but not ready; then it goes on", async () => {
  await proxy.refuse(true);
  proxy.cut();
  try {
    const [read, enqueued, live, ready] = await Promise.all([
      api.get("/api/v1/jobs"),
      api.post("/api/v1/jobs", { kind: "anything", payload: 1, key: "while-away" }),
      api.get("/livez"),
      api.get("/readyz"),
    ]);
    for (const answer of [read, enqueued]) {
      expect(answer.status).toBe(503);
      expect(answer.body.error.code).toBe("HOLDFAST_DATABASE_UNAVAILABLE");
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(JSON.stringify(answer.body)).not.toContain("node:");
    }
    expect(enqueued.body.error.hint).toContain("same key");
    expect(live.status).toBe(200);
    expect(ready).toMatchObject({ status: 503, body: { status: "unavailable", databaseMs: null } });
    expect(JSON.stringify(ready.body)).not.toContain(String(proxy.port));
  } finally {
    await proxy.refuse(false);
  }
  const again = await api.post("/api/v1/jobs", { kind: "anything", payload: 1, key: "while-away" });
  expect([200, 201]).toContain(again.status);
  expect((await api.get("/readyz")).status).toBe(200);
});
