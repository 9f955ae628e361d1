// The audit log: what people did, refused or not, with the name of their token; not what programs do all day.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi, TOKEN } from "./api.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { token: TOKEN });
  });
  afterAll(() => api.close());

  const latest = async () => (await api.get("/api/v1/audit?limit=1")).body.entries[0];

  test("who did what to what, and how it ended", async () => {
    const { token } = await bench.hf.tokens.create({ name: "Ada", role: "operator" });
    const asAda = { authorization: `Bearer ${token}` };
    const { body } = await api.post("/api/v1/jobs", { kind: "anything", delay: "1h" });
    const cancel = `/api/v1/jobs/${body.id}/cancel`;
    expect((await api.get("/api/v1/audit")).body).toEqual({ entries: [], next: null });

    await api.post(cancel, undefined, asAda);
    expect(await latest()).toMatchObject({ caller: "Ada", action: "cancelJob", target: body.id, status: 200 });
    await api.post(cancel, undefined, asAda);
    const target = `/jobs/${body.id}/cancel`;
    expect(await latest()).toMatchObject({ caller: "Ada", action: "cancelJob", target, status: 409 });
    await api.post("/api/v1/janitor/run?chore=purge-audit", undefined, asAda);
    expect(await latest()).toMatchObject({
      action: "runChores",
      target: "/janitor/run?chore=purge-audit",
      status: 403,
    });
    const made = await api.post("/api/v1/tokens", { name: "secretive" });
    expect(await latest()).toMatchObject({
      caller: "HOLDFAST_TOKEN",
      action: "createToken",
      target: made.body.id,
      status: 201,
    });
    expect(JSON.stringify((await api.get("/api/v1/audit")).body)).not.toContain(made.body.token.slice(-43));
  });

  test("whoever does not come in leaves nothing behind", async () => {
    const before = await latest();
    await api.post("/api/v1/tokens", { name: "x" }, { authorization: "Bearer wrong" });
    await api.get("/api/v1/jobs");
    expect(await latest()).toEqual(before);
  });

  test("page by page, each once", async () => {
    const all = (await api.get("/api/v1/audit")).body.entries as object[];
    expect(all.length).toBeGreaterThanOrEqual(4);
    const seen: object[] = [];
    let cursor = "";
    do {
      const { body } = await api.get(`/api/v1/audit?limit=2&cursor=${cursor}`);
      seen.push(...(body.entries as object[]));
      cursor = (body.next as string | null) ?? "";
    } while (cursor !== "");
    expect(seen).toEqual(all);
    expect((await api.get("/api/v1/audit?cursor=x")).status).toBe(400);
  });

  test("an entry of 90 days goes, one of less stays", async () => {
    const count = async () => (await bench.hf.audit.list({ limit: 500 })).entries.length;
    const before = await count();
    expect(before).toBeGreaterThan(0);
    await bench.hf.clock.advance("89d");
    await bench.hf.janitor.run("purge-audit");
    expect(await count()).toBe(before);
    await bench.hf.audit.add({ caller: "late", action: "cancelJob", target: "x", status: 200 });
    await bench.hf.clock.advance("25h");
    await bench.hf.janitor.run("purge-audit");
    expect((await bench.hf.audit.list()).entries).toMatchObject([{ caller: "late" }]);
  });

  test("an action whose entry cannot be written is answered all the same, and told in the log", async () => {
    const failures: string[] = [];
    const audit = { ...bench.hf.audit, add: () => Promise.reject(new Error("disk full")) };
    const other = await serveApi({ ...bench.hf, audit }, { token: TOKEN, onError: (_, where) => failures.push(where) });
    const { body } = await other.post("/api/v1/jobs", { kind: "anything", delay: "1h" });
    expect((await other.post(`/api/v1/jobs/${body.id}/cancel`)).status).toBe(200);
    expect(failures).toEqual(["audit of cancelJob"]);
    await other.close();
  });
});
