// /api/v1/janitor: what it does, did and would do.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineChore } from "#src/index.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  let left = 3;
  beforeAll(async () => {
    bench.hf.janitor.add(
      defineChore("sweep-things", {
        every: "1h",
        run(context) {
          context.count("swept", left);
          left = 0;
        },
        preview: () => Promise.resolve({ swept: left }),
      }),
    );
    api = await serveApi(bench.hf);
  });
  afterAll(() => api.close());

  test("preview tells, run does, history remembers, page by page", async () => {
    const { body: list } = await api.get("/api/v1/janitor");
    expect(list.chores).toContainEqual({
      name: "sweep-things",
      everyMs: 3_600_000,
      everywhere: false,
      deadlineMs: 30_000,
      batchSize: 1_000,
      budgetMs: 5_000,
      canPreview: true,
      succeededAt: null,
      nextAt: null,
      failures: 0,
      error: null,
    });
    const preview = await api.get("/api/v1/janitor/preview?chore=sweep-things");
    expect(preview.body).toEqual({ previews: [{ chore: "sweep-things", rows: { swept: 3 }, more: false }] });
    const run = await api.post("/api/v1/janitor/run?chore=sweep-things");
    expect(run.body.results).toMatchObject([{ chore: "sweep-things", ran: true, rows: { swept: 3 }, error: null }]);
    left = 2;
    await api.post("/api/v1/janitor/run?chore=sweep-things");
    const first = await api.get("/api/v1/janitor/history?chore=sweep-things&limit=1");
    expect(first.body.runs).toMatchObject([{ chore: "sweep-things", rows: { swept: 2 } }]);
    const second = await api.get(`/api/v1/janitor/history?chore=sweep-things&limit=1&cursor=${first.body.next}`);
    expect(second.body.runs).toMatchObject([{ rows: { swept: 3 } }]);
  });

  test("all of them at once", async () => {
    const { status, body } = await api.post("/api/v1/janitor/run");
    expect(status).toBe(200);
    expect(body.results.length).toBeGreaterThan(3);
    expect((await api.get("/api/v1/janitor/preview")).status).toBe(200);
  });

  test.each(["run?chore=nothing", "run?chor=x"])("POST %s is refused", async (path) => {
    expect((await api.post(`/api/v1/janitor/${path}`)).status).toBe(400);
  });
  test.each(["history?cursor=x", "history?limit=0", "preview?chore=nothing"])("GET %s is refused", async (path) => {
    const { status, body } = await api.get(`/api/v1/janitor/${path}`);
    expect(status).toBe(400);
    expect(body.error.hint).not.toBe("");
  });
});
