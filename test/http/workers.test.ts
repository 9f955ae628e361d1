// GET /api/v1/workers and /api/v1/kinds: who is there, what they hold, what may be enqueued.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, KINDS, serveApi } from "./api.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf);
  });
  afterAll(() => api.close());

  test("a worker is listed with the leases of what it runs; when it stops, both are gone", async () => {
    expect((await api.get("/api/v1/workers")).body).toEqual({ workers: [], orphans: [] });
    const worker = await bench.hf.work(KINDS, { name: "mine", concurrency: 3, grace: "0s", abortGrace: "1s" });
    const { body: enqueued } = await api.post("/api/v1/jobs", { kind: "endless" });
    const held = async () => (await api.get("/api/v1/workers")).body.workers[0]?.leases as { jobIds: string[] }[];
    await expect.poll(held).toHaveLength(1);
    const { body } = await api.get("/api/v1/workers");
    expect(body.orphans).toEqual([]);
    expect(body.workers).toHaveLength(1);
    expect(body.workers[0]).toMatchObject({
      id: worker.id,
      name: "mine",
      concurrency: 3,
      kinds: KINDS.map(({ kind }) => kind),
      leases: [{ jobIds: [enqueued.id], leaseMs: 30_000, alone: false }],
    });
    const { expiresInMs } = body.workers[0].leases[0];
    expect(expiresInMs).toBeGreaterThan(0);
    expect(expiresInMs).toBeLessThanOrEqual(30_000);
    expect(JSON.stringify(body)).not.toContain("token");
    await bench.hf.jobs.cancel(enqueued.id as string);
    await bench.hf.jobs.wait(enqueued.id as string, { timeout: "10s" });
    // The lease's row may be there for a moment; what is settled is not shown as running.
    expect(await held()).toEqual([]);
    await worker.stop();
    expect((await api.get("/api/v1/workers")).body).toEqual({ workers: [], orphans: [] });
  });

  test("a worker is drained and resumed, by name of who asked; one that is gone is 404", async () => {
    const worker = await bench.hf.work(KINDS, { name: "mine" });
    const drained = await api.post(`/api/v1/workers/${worker.id}/drain`);
    expect(drained).toMatchObject({ status: 200, body: { id: worker.id, name: "mine", draining: true } });
    const { body } = await api.get("/api/v1/workers");
    expect(body.workers[0]).toMatchObject({ drainAskedAt: expect.any(String), drainAskedBy: expect.any(String) });
    const resumed = await api.post(`/api/v1/workers/${worker.id}/resume`);
    expect(resumed).toMatchObject({ status: 200, body: { draining: false } });
    expect((await api.get("/api/v1/workers")).body.workers[0]).toMatchObject({ drainAskedAt: null });
    await worker.stop();
    expect(await api.post(`/api/v1/workers/${worker.id}/drain`)).toMatchObject({ status: 404 });
    expect(await api.post("/api/v1/workers/mine/drain")).toMatchObject({ status: 400 });
  });

  test("kinds are listed with the JSON Schema of their payload", async () => {
    const { body } = await api.get("/api/v1/kinds");
    expect(body.kinds.map(({ kind }: { kind: string }) => kind)).toEqual(KINDS.map(({ kind }) => kind));
    expect(body.kinds[0]).toMatchObject({
      kind: "greet",
      queue: "default",
      attempts: 5,
      leaseMs: 30_000,
      schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    });
    expect(body.kinds[1].schema).toBeNull();
  });
});
