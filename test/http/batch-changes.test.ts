// The feed of changes over HTTP: paged, streamed from where a reader was, an owner's own only; and commands of clients.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi, TOKEN } from "./api.ts";
import { BATCH_KINDS, idle, importer, urls } from "./batch-kinds.ts";

interface Told {
  id: string;
  event: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  data: any;
}

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  const tokens: Record<string, Record<string, string>> = {};
  beforeAll(async () => {
    api = await serveApi(bench.hf, { kinds: BATCH_KINDS, token: TOKEN });
    await bench.hf.work([importer]);
    for (const owner of ["ada", "eve"]) {
      const { token } = await bench.hf.tokens.create({ name: owner, role: "operator", owner });
      tokens[owner] = { authorization: `Bearer ${token}` };
    }
  });
  afterAll(() => api.close());

  const feed = async (query: string, who?: string) =>
    (await api.get(`/api/v1/batches/changes?${query}`, who === undefined ? {} : tokens[who])).body;
  const endOf = async () => (await feed("limit=500")).next as string;

  /** What the stream tells until `enough` says so. */
  async function listen(path: string, headers: Record<string, string>, enough: (told: Told[]) => boolean) {
    const abort = new AbortController();
    const response = await fetch(`${api.server.url}${path}`, { headers, signal: abort.signal });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const told: Told[] = [];
    let text = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      const blocks = text.split("\n\n");
      text = blocks.pop()!;
      for (const block of blocks) {
        const [, id, event, data] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(block) ?? [];
        if (id !== undefined) told.push({ id, event: event!, data: JSON.parse(data!) });
      }
      if (enough(told)) break;
    }
    abort.abort();
    return told;
  }

  test("paged, with what they are about as it is now; an owner's own only", async () => {
    const since = await endOf();
    const mine = await bench.hf.batches.create(importer, urls("a", "bad"), { owner: "ada" });
    await bench.hf.batches.create(idle, [1], { owner: "eve" });
    await bench.hf.batches.wait(mine.id, { timeout: "20s" });
    const all = await feed(`since=${since}&limit=500`);
    expect(new Set(all.changes.map(({ owner }: { owner: string }) => owner))).toEqual(new Set(["ada", "eve"]));
    const own = await feed(`since=${since}&limit=500`, "ada");
    expect(new Set(own.changes.map(({ batchId }: { batchId: string }) => batchId))).toEqual(new Set([mine.id]));
    expect(own.changes[0].what).toBe("created");
    expect(own.batches).toMatchObject([{ id: mine.id, state: "done", counts: { saved: 1, error: 1 } }]);
    expect(own.items[mine.id].map(({ state }: { state: string }) => state)).toEqual(["saved", "error"]);
    expect(own).toMatchObject({ more: false, reset: false });
    // Page by page it is the same.
    const seqs: string[] = [];
    for (let at = since, more = true; more;) {
      const page = await feed(`since=${at}&limit=1`, "ada");
      seqs.push(...page.changes.map(({ seq }: { seq: string }) => seq));
      ({ next: at, more } = page);
    }
    expect(seqs).toEqual(own.changes.map(({ seq }: { seq: string }) => seq));
    expect((await api.get("/api/v1/batches/changes?owner=eve", tokens["ada"])).status).toBe(403);
    expect((await api.get("/api/v1/batches/changes?since=x")).status).toBe(400);
    expect((await api.get("/api/v1/batches/changes/stream?since=x")).status).toBe(400);
    // Otherwise every look at the feed would fail at this reader, and those behind it would hear nothing.
    expect((await api.get("/api/v1/batches/changes/stream?owner=a%20b")).status).toBe(400);
  });

  test("streamed: what comes is told in order, and a reader that comes back misses nothing", async () => {
    const since = await endOf();
    const { id } = await bench.hf.batches.create(importer, urls("a", "b", "c"), { owner: "ada" });
    const path = "/api/v1/batches/changes/stream";
    const isDone = (told: Told[]) =>
      told.some(({ data }) => data.batches?.some((batch: { state: string }) => batch.state === "done"));
    const told = await listen(`${path}?since=${since}`, tokens["ada"]!, isDone);
    expect(told[0]).toMatchObject({ event: "hello", id: since, data: { since } });
    const seqs = told.flatMap(({ data }) => (data.changes ?? []).map(({ seq }: { seq: string }) => seq));
    const own = await feed(`since=${since}&limit=500`, "ada");
    expect(seqs).toEqual(own.changes.map(({ seq }: { seq: string }) => seq));

    // Away, while something happens; and then back.
    const place = told.at(-1)!.id;
    await bench.hf.batches.create(idle, [1], { owner: "ada", key: "meanwhile" });
    const again = await listen(path, { ...tokens["ada"], "last-event-id": place }, (heard) => heard.length >= 2);
    expect(again[1]!.data).toMatchObject({
      changes: [{ what: "created" }, { what: "added" }],
      batches: [{ key: "meanwhile" }],
    });
    expect(again[1]!.data.batches.every(({ id: other }: { id: string }) => other !== id)).toBe(true);
  });

  test("streamed: another owner's changes are not told", async () => {
    const heard = listen("/api/v1/batches/changes/stream", tokens["eve"]!, (told) => told.length >= 2);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await bench.hf.batches.create(idle, [1], { owner: "ada" });
    await bench.hf.batches.create(idle, [1], { owner: "eve", key: "mine" });
    const [hello, first] = await heard;
    expect(hello!.event).toBe("hello");
    expect(first!.data.batches.map(({ owner }: { owner: string }) => owner)).toEqual(["eve"]);
    expect((await api.get("/api/v1/batches/changes/stream?owner=ada", tokens["eve"])).status).toBe(403);
  });

  test("commands: applied once and in order, for the owner of the token; nonsense is refused or 422", async () => {
    const send = (body: object, who = "ada") => api.post("/api/v1/batches/commands", body, tokens[who]);
    const create = { n: 1, type: "create", kind: "idle", items: [1, 2], key: "by-command" };
    const first = await send({ client: "phone", commands: [create] });
    expect(first.body).toMatchObject({ applied: 1, results: [{ n: 1, status: "applied" }] });
    const batch = first.body.results[0].batch as string;
    expect(await bench.hf.batches.get(batch)).toMatchObject({ owner: "ada", total: 2 });
    const more = await send({
      client: "phone",
      commands: [create, { n: 2, type: "pause", batch }, { n: 3, type: "set", batch, fields: { title: "Monday" } }],
    });
    expect(more.body.results.map(({ status }: { status: string }) => status)).toEqual(["known", "applied", "applied"]);
    expect(await bench.hf.batches.get(batch)).toMatchObject({ state: "paused", fields: { title: "Monday" } });

    const foreign = await send({ client: "phone", commands: [{ n: 1, type: "cancel", batch }] }, "eve");
    expect(foreign.body.results).toMatchObject([{ status: "refused", error: { code: "HOLDFAST_NOT_FOUND" } }]);
    expect(await bench.hf.batches.get(batch)).toMatchObject({ state: "paused" });
    expect((await send({ client: "phone", owner: "ada", commands: [] }, "eve")).status).toBe(403);
    expect((await send({ client: "phone", commands: [{ n: 9, type: "pause", batch }] })).status).toBe(409);
    for (const wrong of [
      { n: 4, type: "explode", batch },
      { n: 4, type: "pause" },
      { n: "4", type: "pause", batch },
      5,
    ]) {
      expect((await send({ client: "phone", commands: [wrong] })).status, JSON.stringify(wrong)).toBe(422);
    }
    const noOwner = await api.post("/api/v1/batches/commands", { client: "x", commands: [] });
    expect([noOwner.status, noOwner.body.error.message]).toEqual([422, "The body has no owner."]);
  });
});
