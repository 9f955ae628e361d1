// Views: what an app's own users get to watch one job or one batch, and nothing else of it; guesses, other people's, and
// times that are over.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineBatch, defineJob } from "#src/index.js";
import { makeGate } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";

let gate = makeGate();
const secretive = defineJob<{ password: string }>("secretive.work", {
  attempts: 1,
  async run(job) {
    await job.progress(3, 10, "pages");
    await gate.opened;
    return { secret: "result-1" };
  },
});
const failing = defineJob("failing.work", {
  attempts: 3,
  backoff: ["1h"],
  run() {
    throw new Error("private error text");
  },
});
const items = defineBatch<number>("items.work", {
  attempts: 1,
  run({ payload }) {
    if (payload === 2) throw new Error("private error text");
    return "done";
  },
});

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { kinds: [secretive, failing, items] });
    await bench.hf.work([secretive, failing, items]);
  });
  afterAll(() => api.close());

  const fetchView = (view: string, rest = ""): Promise<Response> =>
    fetch(`${api.server.url}/api/v1/views/${view}${rest}`);
  const sign = async (body: object, headers?: Record<string, string>) => await api.post("/api/v1/views", body, headers);

  test("a job: how far it is, from any page and without a token, and nothing of what it carries", async () => {
    gate = makeGate();
    const { id } = await bench.hf.enqueue(secretive, { password: "p4ss" });
    const { status, body } = await sign({ job: id, expires: "1h" });
    expect(status).toBe(201);
    expect(body.path).toBe(`/api/v1/views/${body.view}`);
    expect(Date.parse(body.expiresAt) - Date.now()).toBeGreaterThan(3_500_000);
    await expect.poll(async () => ((await (await fetchView(body.view)).json()) as { done: number }).done).toBe(3);
    const seen = await fetchView(body.view);
    expect(seen.headers.get("access-control-allow-origin")).toBe("*");
    expect(seen.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    expect(seen.headers.get("cache-control")).toBe("no-store");
    expect(await seen.json()).toEqual({
      what: "job",
      status: "running",
      done: 3,
      total: 10,
      note: "pages",
      attempt: 1,
      maxAttempts: 1,
      errors: null,
      warnings: null,
      etaMs: null,
      nextAt: null,
      startedAt: expect.any(String),
      finishedAt: null,
    });
    const stream = await fetchView(body.view, "/events");
    expect(stream.headers.get("content-type")).toContain("text/event-stream");
    gate.open();
    // It ends by itself, with the end.
    const told = await stream.text();
    const views = [...told.matchAll(/^event: view\ndata: (.*)$/gm)].map(
      ([, json]) => JSON.parse(json!) as { status: string },
    );
    expect(views[0]).toMatchObject({ status: "running" });
    expect(views.at(-1)).toMatchObject({ status: "done", finishedAt: expect.any(String) });
    expect(told).not.toMatch(/p4ss|result-1|secretive/);
    expect(await (await fetchView(body.view)).text()).not.toMatch(/p4ss|result-1|secretive/);
  });

  test("a job that is tried again says when, and not why; a batch says how many failed", async () => {
    const { id } = await bench.hf.enqueue(failing, null);
    await expect.poll(async () => (await bench.hf.jobs.get(id))?.status).toBe("retrying");
    const { body: job } = await sign({ job: id });
    const text = await (await fetchView(job.view)).text();
    expect(JSON.parse(text)).toMatchObject({ status: "retrying", attempt: 1, nextAt: expect.any(String) });
    expect(text).not.toMatch(/private|failing/);

    const made = await bench.hf.batches.create(items, [1, 2, 3], { owner: "ada" });
    await bench.hf.batches.wait(made.id, { timeout: "15s" });
    const { body: batch } = await sign({ batch: made.id });
    const ofBatch = await (await fetchView(batch.view)).text();
    expect(JSON.parse(ofBatch)).toMatchObject({ what: "batch", status: "done", done: 3, total: 3, errors: 1 });
    expect(ofBatch).not.toMatch(/private|items\.work/);

    // An owner's token signs for the owner's batches, and for nothing else.
    const bearer = async (owner: string) => ({
      authorization: `Bearer ${(await bench.hf.tokens.create({ name: owner, role: "operator", owner })).token}`,
    });
    expect(await sign({ batch: made.id }, await bearer("ada"))).toMatchObject({ status: 201 });
    expect(await sign({ batch: made.id }, await bearer("bob"))).toMatchObject({ status: 404 });
    expect(await sign({ job: id }, await bearer("ada"))).toMatchObject({ status: 403 });
  });

  test("what was not signed here is 404: guesses, changed letters, another's signature; also when its time is over", async () => {
    const [one, two] = [await bench.hf.enqueue(failing, null), await bench.hf.enqueue(failing, null)];
    const [first, second] = [
      await bench.hf.views.sign({ job: one.id, expires: "1m" }),
      await bench.hf.views.sign({ job: two.id, expires: "1m" }),
    ];
    const said = first.view.slice(0, -43);
    for (const guess of [
      `${said}${second.view.slice(-43)}`,
      `${second.view.slice(0, -43)}${first.view.slice(-43)}`,
      `${said}${"A".repeat(43)}`,
      first.view.replace(/^(hv1_.{5})./, (_, begin: string) => `${begin}${first.view[9] === "A" ? "B" : "A"}`),
      first.view.slice(0, -1),
      `${first.view}x`,
      "hv1_",
    ]) {
      const answer = await fetchView(guess);
      expect([answer.status, guess], guess).toEqual([404, guess]);
      // A page must be able to tell that it is gone.
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect((await fetchView(guess, "/events")).status).toBe(404);
    }
    expect((await fetchView(first.view)).status).toBe(200);
    await bench.hf.clock.advance("61s");
    expect((await fetchView(first.view)).status).toBe(404);
  });

  test.each<[object, number, string]>([
    [{}, 422, "A view is of one job or of one batch."],
    [{ job: "x" }, 422, 'The job id is "x".'],
    [{ job: "01a1e299-0e62-7000-b7d8-b9cc8b876cb7" }, 404, "There is no job"],
    [{ batch: "01a1e299-0e62-7000-b7d8-b9cc8b876cb7", expires: "1h" }, 404, "There is no batch"],
    [{ job: "01a1e299-0e62-7000-b7d8-b9cc8b876cb7", expires: "500d" }, 422, 'expires is "500d".'],
    [{ job: "01a1e299-0e62-7000-b7d8-b9cc8b876cb7", expires: 5 }, 422, "expires is 5."],
  ])("refused: %j", async (body, status, message) => {
    const refused = await sign(body);
    expect([refused.status, refused.body.error.message]).toEqual([status, expect.stringContaining(message)]);
  });

  test("nothing else is open to other pages", async () => {
    for (const path of ["/api/v1/jobs", "/api/v1/me", "/livez", "/"]) {
      const answer = await fetch(`${api.server.url}${path}`);
      expect(answer.headers.get("access-control-allow-origin"), path).toBeNull();
      expect(answer.headers.get("cross-origin-resource-policy"), path).toBe("same-origin");
    }
    const element = await fetch(`${api.server.url}/job-progress.js`);
    expect([
      element.status,
      element.headers.get("content-type"),
      element.headers.get("access-control-allow-origin"),
    ]).toEqual([200, "text/javascript; charset=utf-8", "*"]);
  });
});
