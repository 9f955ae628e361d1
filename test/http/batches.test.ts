// /api/v1/batches: make, look, act, over HTTP, on both tiers.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";
import { BATCH_KINDS, importer, lines, NDJSON, urls } from "./batch-kinds.ts";

const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { kinds: BATCH_KINDS });
    await bench.hf.work([importer]);
  });
  afterAll(() => api.close());

  const create = async (body: object): Promise<string> => {
    const answer = await api.post("/api/v1/batches", body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    return (answer.body as { id: string }).id;
  };

  test("a kind of batch is not enqueued as a job, and does not follow a batch", async () => {
    const hint = "Known kinds: greet, anything, hopeless, endless.";
    const error = { code: "HOLDFAST_KIND_UNKNOWN", message: '"idle" is a kind of batch, not of job.', hint };
    const plain = await api.post("/api/v1/jobs", { kind: "idle", payload: {} });
    expect(plain).toMatchObject({ status: 422, body: { error } });
    const made = await api.post("/api/v1/batches", { kind: "idle", items: [], onDone: { kind: "idle" } });
    expect(made).toMatchObject({ status: 422, body: { error } });
  });

  test("made from a list, run, counted, with its items and its errors in groups", async () => {
    const items = urls("a", "known", "wall", "bad 1", "bad 2");
    const { status, body } = await api.post("/api/v1/batches", { kind: "articles.import", items, owner: "ada" });
    expect(status).toBe(201);
    expect(body).toEqual({ id: expect.any(String), created: true, added: 5 });
    await bench.hf.batches.wait(body.id, { timeout: "20s" });

    const batch = (await api.get(`/api/v1/batches/${body.id}`)).body;
    expect(batch).toMatchObject({ kind: "articles.import", owner: "ada", state: "done", total: 5, ended: 5 });
    expect(batch.counts).toEqual({
      pending: 0,
      running: 0,
      "handed-over": 0,
      saved: 1,
      duplicate: 1,
      "consent-wall": 1,
      error: 2,
      cancelled: 0,
    });
    expect(batch).toMatchObject({ countedAs: { saved: 2, duplicate: 1, error: 2 }, warnings: 1, closed: true });

    const path = `/api/v1/batches/${body.id}/items`;
    const page = (await api.get(`${path}?limit=2`)).body;
    expect(page.items.map(({ seq, state }: { seq: number; state: string }) => [seq, state])).toEqual([
      [1, "saved"],
      [2, "duplicate"],
    ]);
    expect(page.items[0]).toMatchObject({ payload: { url: "a" }, result: { title: "About a" }, attempt: 1 });
    const rest = (await api.get(`${path}?limit=3&cursor=${page.next}`)).body;
    expect(rest.items.map(({ seq }: { seq: number }) => seq)).toEqual([3, 4, 5]);
    const failed = (await api.get(`${path}?state=error`)).body;
    expect(failed.items.map(({ seq }: { seq: number }) => seq)).toEqual([4, 5]);
    expect((await api.get(`${path}/4`)).body).toEqual(failed.items[0]);
    expect((await api.get(`${path}/6`)).status).toBe(404);
    expect((await api.get(`${path}/x`)).status).toBe(400);
    expect((await api.get(`${path}?state=lost`)).body.error).toMatchObject({
      message: 'state is "lost".',
      hint: expect.stringContaining("pending, running, handed-over, saved, duplicate, consent-wall, error, cancelled"),
    });

    const { errors } = (await api.get(`/api/v1/batches/${body.id}/errors`)).body;
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ count: 2, lastSeq: expect.any(Number), sample: { reason: "fatal" } });
  });

  test("pause, resume, cancel, retry-failed and delete: the batch as it stands, or 409 with the reason", async () => {
    const act = async (id: string, verb: string) => {
      const { status, body } = await api.post(`/api/v1/batches/${id}/${verb}`);
      return { status, state: body.state, error: body.error?.message, body };
    };
    const id = await create({ kind: "idle", items: [1, 2, 3, 4, 5] });
    expect(await act(id, "pause")).toMatchObject({ status: 200, state: "paused" });
    expect(await act(id, "pause")).toMatchObject({ status: 200, state: "paused" });
    expect(await act(id, "resume")).toMatchObject({ status: 200, state: "queued" });
    const waiting = (await api.get(`/api/v1/batches/${id}/items?state=pending`)).body;
    expect(waiting.items).toHaveLength(5);
    expect(await api.delete(`/api/v1/batches/${id}`)).toMatchObject({
      status: 409,
      body: { error: { code: "HOLDFAST_STATE_CONFLICT", hint: "Cancel it first." } },
    });
    expect(await act(id, "cancel")).toMatchObject({ status: 200, state: "cancelled" });
    expect(await act(id, "cancel")).toMatchObject({ status: 200, state: "cancelled" });
    expect(await act(id, "resume")).toMatchObject({
      status: 409,
      error: `Batch ${id} is cancelled and cannot be resumed.`,
    });
    expect(await act(id, "pause")).toMatchObject({ status: 409 });
    expect(await act(id, "retry-failed")).toMatchObject({ status: 409 });
    expect((await api.delete(`/api/v1/batches/${id}`)).body).toEqual({ id, deleted: true });
    expect((await api.delete(`/api/v1/batches/${id}`)).body).toEqual({ id, deleted: false });
    expect(await act(id, "pause")).toMatchObject({ status: 404 });

    const failing = await create({ kind: "articles.import", items: urls("bad", "good") });
    await bench.hf.batches.wait(failing, { timeout: "20s" });
    expect(await act(failing, "cancel")).toMatchObject({ status: 409 });
    expect(await act(failing, "retry-failed")).toMatchObject({ status: 200, body: { id: failing, retried: 1 } });
    await expect.poll(async () => (await bench.hf.batches.get(failing))?.completions, { timeout: 10_000 }).toBe(2);
    for (const verb of ["pause", "resume", "cancel", "retry-failed", "close"]) {
      expect(await act(nobody, verb), verb).toMatchObject({ status: 404 });
      expect(await act("x", verb), verb).toMatchObject({ status: 400 });
    }
  });

  test("single items that failed are tried again by their places; what is no error is left alone", async () => {
    const id = await create({ kind: "articles.import", items: urls("bad", "good", "bad", "bad") });
    await bench.hf.batches.wait(id, { timeout: "20s" });
    const retry = (seqs: string) => api.post(`/api/v1/batches/${id}/retry-failed?seqs=${seqs}`);
    expect(await retry("2")).toMatchObject({ status: 200, body: { retried: 0, state: "done" } });
    expect(await retry("3,2,99")).toMatchObject({ status: 200, body: { retried: 1 } });
    await expect.poll(async () => (await bench.hf.batches.get(id))?.completions, { timeout: 10_000 }).toBe(2);
    const { changes } = (await api.get(`/api/v1/batches/changes?since=0&limit=500`)).body;
    const told = changes.filter(
      (one: { batchId: string; what: string }) => one.batchId === id && one.what === "retried",
    );
    expect(told.map(({ seqs }: { seqs: number[] }) => seqs)).toContainEqual([3]);
    for (const wrong of ["0", "a", "1,,2", Array.from({ length: 1_001 }, (_, n) => n + 1).join(",")]) {
      expect(await retry(wrong), wrong.slice(0, 20)).toMatchObject({
        status: 400,
        body: { error: { code: "HOLDFAST_OPTION_INVALID" } },
      });
    }
  });

  test("a batch from lines has everything that one from JSON has", async () => {
    const said = { priority: "-7", onDone: '{"kind":"greet","payload":{"n":1}}', fields: '{"title":"spring","n":2}' };
    const path = `/api/v1/batches?kind=idle&${new URLSearchParams(said).toString()}`;
    const { status, body } = await api.postText(path, "1\n2", NDJSON);
    expect([status, body.added]).toEqual([201, 2]);
    expect((await api.get(`/api/v1/batches/${body.id}`)).body).toMatchObject({
      priority: -7,
      fields: { title: "spring", n: 2 },
    });
    for (const [wrong, message] of [
      ["priority=101", "priority is 101."],
      ["onDone=greet", 'onDone is "greet".'],
      ["onDone={}", "The query has no onDone.kind."],
      ['onDone={"kind":"x"}', 'the kind "x"'],
      ["fields=[]", 'fields is "[]".'],
      ['fields={"n":12345678901234567890}', "12345678901234567890"],
    ] as const) {
      const refused = await api.postText(`/api/v1/batches?kind=idle&${encodeURI(wrong)}`, "1", NDJSON);
      expect([refused.status, refused.body.error.message], wrong).toEqual([
        /"x"|123456/.test(wrong) ? 422 : 400,
        expect.stringContaining(message),
      ]);
    }
    const followed = await api.postText(
      "/api/v1/batches?kind=articles.import&onDone=%7B%22kind%22:%22greet%22%7D",
      '{"url":"good"}',
      NDJSON,
    );
    await bench.hf.batches.wait(followed.body.id, { timeout: "20s" });
    const after = async () => (await api.get("/api/v1/jobs?kind=greet")).body.jobs.length;
    await expect.poll(after).toBeGreaterThan(0);
  });

  test("listed newest first, by state, kind, owner and errors, page by page", async () => {
    const owner = "lister";
    const ids: string[] = [];
    for (const items of [[1], [2], [3]]) ids.unshift(await create({ kind: "idle", items, owner }));
    const failing = await create({ kind: "articles.import", items: urls("bad"), owner });
    await bench.hf.batches.wait(failing, { timeout: "20s" });
    const idsOf = async (query: string) =>
      (await api.get(`/api/v1/batches?${query}`)).body.batches.map((batch: { id: string }) => batch.id);
    expect(await idsOf(`owner=${owner}`)).toEqual([failing, ...ids]);
    expect(await idsOf(`owner=${owner}&kind=idle`)).toEqual(ids);
    expect(await idsOf(`owner=${owner}&state=done,cancelled`)).toEqual([failing]);
    expect(await idsOf(`owner=${owner}&withErrors=true`)).toEqual([failing]);
    const { next } = (await api.get(`/api/v1/batches?owner=${owner}&kind=idle&limit=2`)).body;
    expect(await idsOf(`owner=${owner}&kind=idle&limit=2&cursor=${next.toUpperCase()}`)).toEqual([ids[2]]);
    for (const wrong of ["state=dead", "limit=0", "limit=501", "cursor=x", "withErrors=yes", "stat=done"]) {
      expect((await api.get(`/api/v1/batches?${wrong}`)).status, wrong).toBe(400);
    }
  });

  test("a key is one batch; an open batch takes more from several writers, each item once, and is closed", async () => {
    const first = await api.post("/api/v1/batches", { kind: "idle", items: [1, 2], key: "once" });
    const again = await api.post("/api/v1/batches", { kind: "idle", items: [1, 2], key: "once" });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body).toEqual({ id: first.body.id, created: false, added: 0 });

    const id = await create({ kind: "articles.import", open: true });
    const path = `/api/v1/batches/${id}/items`;
    const part = { writer: "phone", from: 0, items: urls("a", "b") };
    expect((await api.post(path, part)).body).toEqual({ id, added: 2, total: 2 });
    expect((await api.post(path, part)).body).toEqual({ id, added: 0, total: 2 });
    expect((await api.post(path, { writer: "phone", from: 5, items: urls("z") })).status).toBe(409);
    const more = await api.postText(`${path}?writer=laptop`, lines(urls("c", "d", "e")), NDJSON);
    expect(more.body).toEqual({ id, added: 3, total: 5 });
    expect((await api.post(path, { items: [{ uri: "x" }] })).status).toBe(422);
    expect((await api.post(`${path}?writer=a`, { items: [] })).body.error.message).toBe("writer stands in the query.");
    expect((await api.post(`/api/v1/batches/${id}/close`)).body).toMatchObject({ id, closed: true, total: 5 });
    await bench.hf.batches.wait(id, { timeout: "20s" });
    expect((await api.post(path, { items: urls("late") })).status).toBe(409);
  });

  test("lines: blank ones are nothing, a declared total closes it, a wrong start leaves nothing behind", async () => {
    const path = "/api/v1/batches?kind=articles.import&owner=liner";
    const text = `\n${lines(urls("a", "b"))}\r\n\n{"url":"c"}`;
    const { status, body } = await api.postText(`${path}&total=3`, text, NDJSON);
    expect([status, body.added]).toEqual([201, 3]);
    expect(await bench.hf.batches.wait(body.id, { timeout: "20s" })).toMatchObject({ total: 3, state: "done" });

    for (const [wrong, code, message] of [
      ['{"url":"a"}\n{"url":', 400, "Line 2 is not JSON"],
      ['{"url":"a"}\n{"uri":"b"}', 422, "Item 2: "],
      ['{"url":"a"}\n{"url":"b","n":12345678901234567890}', 422, "Line 2"],
      [new Uint8Array([0x22, 0xff, 0x22]), 400, "Line 1 is not UTF-8."],
    ] as const) {
      const refused = await api.postText(`${path}-wrong`, wrong, NDJSON);
      expect([refused.status, refused.body.error.message]).toEqual([code, expect.stringContaining(message)]);
    }
    expect((await bench.hf.batches.list({ owner: "liner-wrong" })).batches).toEqual([]);
    expect((await api.postText("/api/v1/batches", "1\n2", NDJSON)).body.error.message).toBe("The query has no kind.");
  });

  test("lines that go wrong late: without a key the batch is cancelled, with one it goes on from there", async () => {
    const items = Array.from({ length: 2_500 }, (_, n) => ({ url: `u${n}` }));
    const broken = `${lines(items.slice(0, 2_200))}\nnot json`;
    const path = "/api/v1/batches?kind=idle";
    const refused = await api.postText(path, broken, NDJSON);
    expect(refused.status).toBe(400);
    const [, id = ""] = /Batch (\S+) has what came before, and is cancelled/.exec(refused.body.error.message)!;
    expect(await bench.hf.batches.get(id)).toMatchObject({ state: "cancelled" });

    const keyed = await api.postText(`${path}&key=again`, broken, NDJSON);
    expect(keyed.body.error.message).toContain("send all of it again under the same key");
    const mended = await api.postText(`${path}&key=again`, lines(items), NDJSON);
    expect(mended).toMatchObject({ status: 200, body: { created: false } });
    expect(await bench.hf.batches.get(mended.body.id)).toMatchObject({ closed: true, total: 2_500 });
    // And once more, when it is complete.
    expect(await api.postText(`${path}&key=again`, lines(items), NDJSON)).toMatchObject({
      status: 200,
      body: { id: mended.body.id, created: false, added: 0 },
    });
  });

  test.each<[string, object, number, string]>([
    ["an unknown kind", { kind: "nothing", items: [] }, 422, 'does not know the batch kind "nothing"'],
    ["a kind of job", { kind: "greet", items: [] }, 422, "is a kind of job"],
    ["no kind", { items: [] }, 422, "The body has no kind."],
    ["items that are no list", { kind: "idle", items: {} }, 422, "items is {}."],
    ["an item that does not fit", { kind: "articles.import", items: [{ url: 1 }] }, 422, "Item 1: "],
    ["an unknown field", { kind: "idle", itmes: [] }, 422, 'unknown field "itmes"'],
    ["a wrong total", { kind: "idle", items: [], total: -1 }, 422, "total is -1."],
    ["more than its total", { kind: "idle", items: [1, 2], total: 1 }, 409, "was declared with 1 items"],
    ["a wrong priority", { kind: "idle", items: [], priority: 101 }, 422, "priority is 101."],
    ["a wrong owner", { kind: "idle", items: [], owner: "../x" }, 422, 'owner is "../x".'],
    ["a follow-up of no known kind", { kind: "idle", items: [], onDone: { kind: "x" } }, 422, 'the kind "x"'],
  ])("refused: %s", async (_, body, status, message) => {
    const answer = await api.post("/api/v1/batches", body);
    expect([answer.status, answer.body.error?.message]).toEqual([status, expect.stringContaining(message)]);
  });

  test("an empty batch is done at once; the kinds say which are batch kinds", async () => {
    const id = await create({ kind: "idle", items: [] });
    expect((await api.get(`/api/v1/batches/${id}`)).body).toMatchObject({ state: "done", total: 0 });
    const { kinds } = (await api.get("/api/v1/kinds")).body;
    const found = (name: string) => kinds.find(({ kind }: { kind: string }) => kind === name);
    expect(found("greet").batch).toBeNull();
    expect(found("articles.import")).toMatchObject({
      batch: { concurrency: 3, outcomes: { saved: {}, "consent-wall": { countsAs: "saved", warning: true } } },
      schema: { properties: { url: { type: "string" } } },
    });
    expect((await api.post("/api/v1/jobs", { kind: "idle" })).status).toBe(422);
  });
});
