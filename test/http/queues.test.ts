// /api/v1/queues, /api/v1/stats, /metrics and the health checks, on figures that a real worker and janitor wrote.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeHandler } from "#src/http/index.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, authorization, KINDS, serveApi, TOKEN } from "./api.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { token: TOKEN });
  });
  afterAll(() => api.close());

  const queueOf = async (name: string) =>
    ((await api.get("/api/v1/queues")).body.queues as { queue: string; ready: number }[]).find(
      ({ queue }) => queue === name,
    );

  test("a queue is as deep as the roll-up says; pausing it holds its jobs, resuming lets them run", async () => {
    await api.post("/api/v1/queues/mail/pause");
    const again = await api.post("/api/v1/queues/mail/pause");
    expect(again.body).toEqual({ queue: "mail", paused: true, changed: false });
    const { body } = await api.post("/api/v1/jobs", { kind: "anything", queue: "mail" });
    const worker = await bench.hf.work(KINDS);
    const { body: other } = await api.post("/api/v1/jobs", { kind: "anything", queue: "other" });
    await bench.hf.jobs.wait(other.id as string, { timeout: "10s" });
    // A worker may take it for a moment, and sets it aside.
    const counted = async () => {
      await api.post("/api/v1/janitor/run");
      return await queueOf("mail");
    };
    await expect
      .poll(counted, { timeout: 10_000 })
      .toMatchObject({ paused: 1, ready: 0, running: 0, pausedBy: "HOLDFAST_TOKEN" });
    expect((await api.get(`/api/v1/jobs/${body.id}`)).body).toMatchObject({ state: "pending", attempt: 0 });
    const resumed = await api.post("/api/v1/queues/mail/resume");
    expect(resumed.body).toEqual({ queue: "mail", paused: false, changed: true });
    await bench.hf.jobs.wait(body.id as string, { timeout: "10s" });
    expect((await api.post("/api/v1/queues/mail/resume")).body.changed).toBe(false);
    expect((await api.get("/api/v1/audit?limit=500")).body.entries).toContainEqual(
      expect.objectContaining({ action: "pauseQueue", target: "/queues/mail/pause" }),
    );
    await worker.stop();
  });

  test("what runs came to is told over time", async () => {
    await api.post("/api/v1/janitor/run");
    const { body } = await api.get("/api/v1/stats");
    const done = (body.runs as { queue: string; outcome: string; runs: number }[]).filter(
      ({ queue, outcome }) => queue === "mail" && outcome === "done",
    );
    expect(done.reduce((sum, { runs }) => sum + runs, 0)).toBe(1);
    const past = await api.get("/api/v1/stats?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z");
    expect(past.body).toEqual({ runs: [], depths: [] });
    for (const query of ["from=yesterday", "from=2020-01-01T00:00:00", "from=2030-01-01T00:00:00Z", "form=x"]) {
      expect((await api.get(`/api/v1/stats?${query}`)).status, query).toBe(400);
    }
  });

  test("a name that no queue can have is refused", async () => {
    expect((await api.post(`/api/v1/queues/${encodeURIComponent("a b")}/pause`)).status).toBe(400);
  });

  test("metrics want a token, and are in Prometheus' format", async () => {
    expect((await fetch(`${api.server.url}/metrics`)).status).toBe(401);
    const response = await fetch(`${api.server.url}/metrics`, { headers: authorization });
    expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
    const text = await response.text();
    expect(text).toMatch(/^# HELP holdfast_\w+ /m);
    expect(text).toMatch(/^holdfast_jobs_finished_total\{[^}]*\} 1$/m);
    expect(text).not.toContain(TOKEN);
  });

  test("alive, ready and well; a loop that stopped is named", async () => {
    expect((await api.get("/livez")).body).toEqual({ status: "ok", stoppedLoops: [] });
    expect((await api.get("/healthz")).body).toMatchObject({ status: "ok", stalledQueues: [], stoppedLoops: [] });
    const live = () => ({ isAlive: false, stopped: ["claim loop"] });
    const health = {
      live,
      check: async () => ({ ...(await bench.hf.health.check()), ...live(), health: "degraded" }),
    };
    const handler = makeHandler({
      hf: { ...bench.hf, health: health as typeof bench.hf.health },
      kinds: [],
      token: TOKEN,
    });
    const ask = (path: string) => handler(new Request(`http://localhost${path}`));
    const dead = await ask("/livez");
    expect(dead.status).toBe(503);
    expect(await dead.json()).toEqual({ status: "stopped", stoppedLoops: ["claim loop"] });
    const unwell = await ask("/healthz");
    expect(unwell.status).toBe(503);
    expect(await unwell.json()).toMatchObject({ health: "degraded", stoppedLoops: ["claim loop"] });
    expect((await ask("/readyz")).status).toBe(200);
  });
});
