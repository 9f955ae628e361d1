// What the dashboard asks for: filters, counts, errors in groups, actions on all that match, the verdict, the system.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "#src/index.js";
import { redactText } from "#src/http/redact.js";
import { quantile } from "#src/client/stats.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";

const failing = defineJob<{ order: number; user?: { id: number } }, { order: number; user?: { id: number } }>("pay", {
  queue: "payments",
  attempts: 1,
  run: (job) => {
    throw new Error(`No answer for order ${job.payload.order}`);
  },
});
const waiting = defineJob<{ user?: { id: number } }, { user?: { id: number } }>("wait", {
  queue: "later",
  run: () => null,
});

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  let ids: string[];
  beforeAll(async () => {
    api = await serveApi(bench.hf, { kinds: [failing, waiting], environment: "staging" });
    const worker = await bench.hf.work([failing]);
    const rows = Array.from({ length: 7 }, (_, n) => ({ payload: { order: n, user: { id: n } } }));
    ids = (await bench.hf.enqueueMany(failing, rows)).map(({ id }) => id);
    for (const id of ids) await bench.hf.jobs.wait(id);
    await worker.stop();
    await bench.hf.enqueue(waiting, { user: { id: 3 } }, { key: "first", delay: "1h" });
    await bench.hf.enqueue(waiting, {});
    for (const chore of ["add-error-counts", "add-run-counts", "measure-queues"]) await bench.hf.janitor.run(chore);
  });
  afterAll(() => api.close());

  const list = async (query: string): Promise<string[]> => {
    const { body } = await api.get(`/api/v1/jobs?${query}`);
    return body.jobs.map((job: { kind: string; status: string }) => `${job.kind} ${job.status}`);
  };

  test("every word of the filter finds what it says, and nothing else", async () => {
    expect(await list("status=scheduled")).toEqual(["wait scheduled"]);
    expect(await list("status=ready")).toEqual(["wait ready"]);
    expect(await list("key=first")).toEqual(["wait scheduled"]);
    expect(await list("kind=wait&status=dead")).toEqual([]);
    expect(await list("error=NO%20ANSWER&limit=3")).toHaveLength(3);
    expect(await list("error=nowhere")).toEqual([]);
    expect(await list("leastAttempts=1")).toHaveLength(7);
    expect(await list("mostAttempts=0")).toHaveLength(2);
    expect(await list("olderThan=1h")).toEqual([]);
    expect(await list("youngerThan=1h")).toHaveLength(9);
    expect(await list(`payload=${encodeURIComponent('{"user.id":3}')}`)).toHaveLength(2);
    expect((await api.get("/api/v1/jobs?payload=3")).status).toBe(400);
    expect((await api.get("/api/v1/jobs?status=lost")).body.error.message).toContain("lost");
  });

  test("a job of a paused queue says so, and one whose lease is over is stuck", async () => {
    await bench.hf.queues.pause("later");
    expect(await list("status=paused")).toEqual(["wait paused", "wait paused"]);
    await bench.hf.queues.resume("later");
    expect(await list("status=paused")).toEqual([]);
  });

  test("errors of one cause are one group, and the dead of that group are counted", async () => {
    const { body } = await api.get("/api/v1/errors");
    expect(body.errors).toMatchObject([
      { kind: "pay", queue: "payments", name: "Error", seen: [7, 7, 7, 7, 7], deaths: 7 },
    ]);
    const { body: dead } = await api.get("/api/v1/dead");
    expect(dead.groups).toMatchObject([
      { kind: "pay", count: 7, more: false, fingerprint: body.errors[0].fingerprint },
    ]);
    const query = `status=dead&kind=pay&fingerprint=${body.errors[0].fingerprint}`;
    expect((await api.get(`/api/v1/jobs/count?${query}`)).body).toEqual({ count: 7, more: false });
    expect(await list(`${query}&limit=2`)).toHaveLength(2);
  });

  test("the verdict names what is wrong", async () => {
    const { body } = await api.get("/api/v1/overview");
    expect(body.problems.map(({ code }: { code: string }) => code)).toContain("deaths");
    expect(body.verdict).toContain("7 jobs in queue payments died in the last hour");
  });

  test("an action retries what matches, at its rate, and leaves the rest alone", async () => {
    const slow = await api.post("/api/v1/actions", { verb: "retry", filter: { kind: "pay" }, perMinute: 1 });
    expect(slow.status).toBe(201);
    expect(slow.body).toMatchObject({ verb: "retry", state: "running", expected: 7, perMinute: 1 });
    await bench.hf.janitor.run("carry-out-actions");
    await expect.poll(async () => (await api.get(`/api/v1/actions/${slow.body.id}`)).body.done).toBe(1);
    const stopped = await api.post(`/api/v1/actions/${slow.body.id}/cancel`);
    expect(stopped.body).toMatchObject({ state: "cancelled", done: 1 });
    expect((await api.post(`/api/v1/actions/${slow.body.id}/cancel`)).status).toBe(409);
    expect((await api.get("/api/v1/jobs/count?status=dead")).body.count).toBe(6);

    const two = await api.post("/api/v1/actions", { verb: "discard", filter: { ids: ids.slice(0, 2) } });
    const rest = await api.post("/api/v1/actions", { verb: "retry", filter: { kind: "pay" } });
    const cancel = await api.post("/api/v1/actions", { verb: "cancel", filter: { queue: "later" }, title: "no more" });
    for (const { body } of [two, rest, cancel]) {
      await expect
        .poll(async () => {
          await bench.hf.janitor.run("carry-out-actions");
          return (await api.get(`/api/v1/actions/${body.id}`)).body.state;
        })
        .toBe("done");
    }
    expect((await api.get("/api/v1/jobs/count?status=dead")).body.count).toBe(0);
    expect(await list("kind=wait")).toEqual(["wait cancelled", "wait cancelled"]);
    expect((await api.get("/api/v1/actions")).body.actions).toHaveLength(4);
    expect((await api.get("/api/v1/audit")).body.entries.map(({ action }: { action: string }) => action)).toContain(
      "startAction",
    );
    expect((await api.post("/api/v1/actions", { verb: "explode", filter: {} })).status).toBe(422);
    expect((await api.post("/api/v1/actions", { verb: "retry", filter: { colour: "red" } })).status).toBe(422);
    expect((await api.post("/api/v1/actions", { verb: "retry", filter: {}, perMinute: 0 })).status).toBe(422);
  });

  test("figures come as quantiles, and by kind", async () => {
    const { body } = await api.get("/api/v1/stats/latency");
    expect(body.points.at(-1)).toMatchObject({ waitP50: expect.any(Number), runP95: expect.any(Number) });
    const { body: kinds } = await api.get("/api/v1/stats/kinds");
    expect(kinds.kinds).toMatchObject([{ kind: "pay", runs: 7, failures: 7, deaths: 7 }]);
  });

  test("who is asking, and what this stands on", async () => {
    expect((await api.get("/api/v1/me")).body).toMatchObject({ role: "admin", tier, environment: "staging" });
    const { body } = await api.get("/api/v1/system");
    expect(body.migrations.at(-1).version).toBeGreaterThan(10);
    expect(body.tables.map(({ name }: { name: string }) => name)).toContain("job_history");
    expect(body.settings).toBeNull();
  });

  test("a payload keeps every digit of its numbers, masked or not", async () => {
    const { id } = await bench.hf.enqueue(waiting, {}, { delay: "1h" });
    await bench.hf.sql.query(
      'update holdfast.jobs set payload = \'{"n": 12345678901234567890, "token": "x"}\' where id = $1',
      [id],
    );
    expect((await api.get(`/api/v1/jobs/${id}`)).body.payloadText).toBe('{"n": 12345678901234567890, "token": "x"}');
    await bench.hf.jobs.cancel(id);
  });

  test("the page is there, under a strict policy, and knows nothing by itself", async () => {
    const page = await fetch(`${api.server.url}/`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
    const html = await page.text();
    const script = /src="\.(\/assets\/[\w-]+\.js)"/.exec(html)?.[1];
    const asset = await fetch(`${api.server.url}${script}`);
    expect(asset.headers.get("content-encoding")).toBe("gzip");
    expect(asset.headers.get("cache-control")).toContain("immutable");
    expect((await fetch(`${api.server.url}/assets/../../package.json`)).status).not.toBe(200);
  });
});

test("masked text keeps digits, and hides what is no JSON", () => {
  expect(redactText('{"a":12345678901234567890,"password":"x","b":["1e400",1.10]}')).toBe(
    '{"a":12345678901234567890,"password":"***","b":["1e400",1.10]}',
  );
  expect(redactText('{"a":')).toBe('"***"');
});

test("a quantile lies in its class", () => {
  expect(quantile([], 0.5)).toBeNull();
  expect(quantile([10], 0.5)).toBeLessThanOrEqual(1);
  // All between 64 and 128 ms.
  expect(quantile([0, 0, 0, 0, 0, 0, 0, 100], 0.5)).toBe(96);
  expect(quantile([90, 0, 0, 0, 0, 0, 0, 10], 0.95)).toBe(96);
});
