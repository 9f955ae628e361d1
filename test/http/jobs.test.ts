// Looking at jobs and acting on them, over HTTP, on the embedded database in memory with a worker.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Api, KINDS, startApi } from "./api.ts";

let api: Api;
beforeAll(async () => {
  api = await startApi("memory:");
  await api.hf.work(KINDS, { grace: "0s", abortGrace: "1s" });
  // A fresh embedded database takes seconds, on a busy machine many of them.
}, 180_000);
afterAll(() => api.close());

async function enqueue(body: object): Promise<string> {
  return (await api.post("/api/v1/jobs", body)).body.id as string;
}

async function until(id: string, state: string) {
  for (let tries = 0; tries < 400; tries += 1) {
    const { body } = await api.get(`/api/v1/jobs/${id}`);
    if (body.state === state) return body;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`Job ${id} did not become ${state}`);
}

const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";

describe("reading", () => {
  test("a job that ran has its result and its times", async () => {
    const job = await until(await enqueue({ kind: "greet", payload: { name: "Ada" } }), "done");
    expect(job).toMatchObject({ status: "done", attempt: 1, result: { greeting: "Hello, Ada!" }, lastError: null });
    expect(Date.parse(job.finishedAt)).toBeGreaterThanOrEqual(Date.parse(job.startedAt));
  });

  test("a dead job has its error and its failed attempts", async () => {
    const job = await until(await enqueue({ kind: "hopeless" }), "dead");
    expect(job.lastError).toMatchObject({ name: "Fatal", message: "no use", reason: "fatal" });
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]).toMatchObject({ attempt: 1, error: { message: "no use" } });
    expect(Date.parse(job.attempts[0].failedAt)).toBeGreaterThan(0);
  });

  test("an id in capitals is the same id; one that is none is 400; one that nobody has is 404", async () => {
    const id = await enqueue({ kind: "anything", delay: "1h" });
    expect((await api.get(`/api/v1/jobs/${id.toUpperCase()}`)).body.id).toBe(id);
    for (const wrong of ["5", "x".repeat(2_000), "%00", "%E0%A4%A", `${id}x`]) {
      const answer = await api.get(`/api/v1/jobs/${wrong}`);
      expect(answer.status).toBe(400);
      expect(answer.body.error.code).toBe("HOLDFAST_OPTION_INVALID");
    }
    const missing = await api.get(`/api/v1/jobs/${nobody}`);
    expect(missing.status).toBe(404);
    expect(missing.body.error.code).toBe("HOLDFAST_NOT_FOUND");
  });
});

describe("listing", () => {
  test("newest first, page by page, without payloads", async () => {
    const ids = [];
    for (let n = 0; n < 5; n += 1)
      ids.push(await enqueue({ kind: "anything", queue: "paged", delay: "1h", payload: n }));
    const seen: string[] = [];
    let cursor = "";
    do {
      const { body } = await api.get(`/api/v1/jobs?queue=paged&limit=2&state=&cursor=${cursor}`);
      for (const job of body.jobs) {
        expect(job).toMatchObject({ queue: "paged", status: "scheduled" });
        expect(job).not.toHaveProperty("payload");
        seen.push(job.id as string);
      }
      cursor = (body.next as string | null) ?? "";
    } while (cursor !== "");
    expect(seen).toEqual(ids.toReversed());
  });

  test("by state and kind", async () => {
    await until(await enqueue({ kind: "hopeless" }), "dead");
    const dead = await api.get("/api/v1/jobs?state=dead,cancelled&kind=hopeless");
    expect(dead.body.jobs.length).toBeGreaterThan(0);
    expect(new Set(dead.body.jobs.map((job: { state: string }) => job.state))).toEqual(new Set(["dead"]));
    expect((await api.get("/api/v1/jobs?kind=nobody")).body).toEqual({ jobs: [], next: null });
  });

  test.each([
    ["state=ded", 'state is "ded".'],
    ["limit=0", "limit is 0."],
    ["limit=501", "limit is 501."],
    ["limit=many", 'limit is "many".'],
    ["cursor=5", 'cursor is "5".'],
    ["stat=dead", 'The query has the unknown parameter "stat".'],
    ["kind=a&kind=b", "The query has kind more than once."],
  ])("?%s is refused", async (query, message) => {
    const { status, body } = await api.get(`/api/v1/jobs?${query}`);
    expect(status).toBe(400);
    expect(body.error.message).toContain(message);
    expect(body.error.hint).not.toBe("");
  });
});

describe("acting", () => {
  test("cancel ends a waiting job, asks a running one, and refuses an ended one", async () => {
    const waiting = await enqueue({ kind: "anything", delay: "1h" });
    const answer = await api.post(`/api/v1/jobs/${waiting}/cancel`);
    expect(answer).toMatchObject({ status: 200, body: { id: waiting, state: "cancelled", cancelRequested: false } });

    const running = await enqueue({ kind: "endless" });
    await until(running, "running");
    expect((await api.post(`/api/v1/jobs/${running}/cancel`)).body).toMatchObject({ cancelRequested: true });
    await until(running, "cancelled");

    const again = await api.post(`/api/v1/jobs/${waiting}/cancel`);
    expect(again.status).toBe(409);
    expect(again.body.error).toMatchObject({
      code: "HOLDFAST_STATE_CONFLICT",
      message: `Job ${waiting} is cancelled and cannot be cancelled.`,
    });
  });

  test("retry runs a dead job again; discard puts it away; both refuse any other", async () => {
    const id = await enqueue({ kind: "hopeless" });
    await until(id, "dead");
    expect(await api.post(`/api/v1/jobs/${id}/retry`)).toMatchObject({ status: 200, body: { id, state: "pending" } });
    const again = await until(id, "dead");
    expect(again.attempts).toHaveLength(2);
    expect((await api.post(`/api/v1/jobs/${id}/discard`)).body).toEqual({ id, state: "dead", discarded: true });
    expect(
      (await api.get("/api/v1/jobs?state=dead&limit=500")).body.jobs.map((job: { id: string }) => job.id),
    ).not.toContain(id);
    expect((await api.post(`/api/v1/jobs/${id}/retry`)).status).toBe(409);
    expect((await api.post(`/api/v1/jobs/${id}/discard`)).status).toBe(409);
  });

  test.each(["cancel", "retry", "discard"])("%s: 404 for nobody, 400 for no id, 405 for GET", async (verb) => {
    expect((await api.post(`/api/v1/jobs/${nobody}/${verb}`)).status).toBe(404);
    expect((await api.post(`/api/v1/jobs/x/${verb}`)).status).toBe(400);
    const wrong = await api.get(`/api/v1/jobs/${nobody}/${verb}`);
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST");
  });
});
