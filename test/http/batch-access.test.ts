// Who may reach which batch: tokens bound to an owner, roles, bodies that are too large, too slow or not what they say.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AnyContract } from "#src/http/contract.js";
import { batchContracts } from "#src/http/contracts/batches.js";
import { useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";
import { BATCH_KINDS, importer, lines, NDJSON, urls } from "./batch-kinds.ts";

const bench = useHoldfast("server");
let api: Api;
const tokens: Record<string, Record<string, string>> = {};
beforeAll(async () => {
  api = await serveApi(bench.hf, { kinds: BATCH_KINDS });
  await bench.hf.work([importer]);
  for (const [name, options] of Object.entries({
    ada: { role: "operator", owner: "ada" },
    eve: { role: "operator", owner: "eve" },
    adaLooks: { role: "viewer", owner: "ada" },
    viewer: { role: "viewer" },
  } as const)) {
    tokens[name] = { authorization: `Bearer ${(await bench.hf.tokens.create({ name, ...options })).token}` };
  }
});
afterAll(() => api.close());

const post = (path: string, body: unknown, who: string) => api.post(path, body, tokens[who]);

describe("an owner's token", () => {
  test("makes its owner's batches and sees no others", async () => {
    const made = await post("/api/v1/batches", { kind: "idle", items: [1] }, "ada");
    expect(made.status).toBe(201);
    expect(await bench.hf.batches.get(made.body.id)).toMatchObject({ owner: "ada" });
    await post("/api/v1/batches", { kind: "idle", items: [1] }, "eve");
    await api.post("/api/v1/batches", { kind: "idle", items: [1] });
    const owners = async (query: string, who: string) => {
      const { status, body } = await api.get(`/api/v1/batches${query}`, tokens[who]);
      return status === 200 ? [...new Set(body.batches.map(({ owner }: { owner: string | null }) => owner))] : status;
    };
    expect(await owners("", "ada")).toEqual(["ada"]);
    expect(await owners("?owner=ada", "ada")).toEqual(["ada"]);
    expect(await owners("?owner=eve", "ada")).toBe(403);
    expect(new Set((await owners("", "viewer")) as string[])).toEqual(new Set([null, "eve", "ada"]));
  });

  test.each([
    ["another owner", { owner: "eve" }],
    ["a concurrency", { concurrency: 1_000 }],
    ["attempts", { attempts: 100 }],
    ["a priority", { priority: 100 }],
    ["a follow-up", { onDone: { kind: "greet" } }],
  ])("cannot choose %s", async (_, more) => {
    const { status, body } = await post("/api/v1/batches", { kind: "idle", items: [], ...more }, "ada");
    expect([status, body.error?.code]).toEqual([403, "HOLDFAST_HTTP_FORBIDDEN"]);
  });

  test("nor in the query, with lines", async () => {
    for (const query of ["owner=eve", "concurrency=1000", "attempts=100"]) {
      const headers = { ...NDJSON, ...tokens["ada"] };
      expect((await api.postText(`/api/v1/batches?kind=idle&${query}`, "1", headers)).status, query).toBe(403);
    }
  });

  const routes = Object.entries<AnyContract>(batchContracts).filter(([, { path }]) => path.includes(":id"));

  test.each(routes)("%s: somebody else's batch is what none is, and stays as it was", async (_, contract) => {
    const items = contract.path.endsWith("retry-failed") ? urls("bad") : urls("a");
    const { id } = await bench.hf.batches.create(importer, items, { owner: "ada", open: true });
    const before = await bench.hf.batches.get(id);
    const ask = async (batch: string, who: string) => {
      const path = contract.path.replace(":id", batch).replace(":seq", "1");
      const sent = contract.body === null ? null : JSON.stringify({ items: urls("evil") });
      const response = await fetch(`${api.server.url}${path}`, {
        method: contract.method,
        headers: { "content-type": "application/json", ...tokens[who] },
        body: contract.path.endsWith("ack") ? "{}" : sent,
      });
      return { status: response.status, text: (await response.text()).replaceAll(batch, "ID") };
    };
    const foreign = await ask(id, "eve");
    expect(foreign).toEqual(await ask("01a1e299-0e62-7000-b7d8-b9cc8b876cb7", "eve"));
    expect(foreign.status).toBe(contract.method === "DELETE" ? 200 : 404);
    expect(foreign.text).not.toContain("articles.import");
    expect(await bench.hf.batches.get(id)).toMatchObject({
      state: expect.stringMatching(/queued|running/),
      added: before!.added,
      closed: false,
    });
    // And the owner gets through: 404 would mean that the test asks for nothing.
    expect((await ask(id, "ada")).status).not.toBe(404);
  });

  test("keys are its owner's: the same key of two owners is two batches", async () => {
    const create = async (who: string) =>
      (await post("/api/v1/batches", { kind: "idle", items: [who], key: "mine", open: true }, who)).body.id;
    const [ada, eve] = [await create("ada"), await create("eve")];
    expect(ada).not.toBe(eve);
    expect(await create("ada")).toBe(ada);
    expect(await bench.hf.batches.get(ada)).toMatchObject({ owner: "ada", key: "mine", added: 1 });
    expect(await bench.hf.batches.get(eve)).toMatchObject({ owner: "eve", key: "mine", added: 1 });
  });
});

test("a viewer sees secrets masked, in items, fields and exports; an operator sees them", async () => {
  const { id } = await bench.hf.batches.create(importer, [{ url: "a", password: "p4ss" }], {
    owner: "ada",
    fields: { apiKey: "k3y" },
  });
  const texts = async (who: Record<string, string> | undefined) => {
    const paths = ["", "/items", "/items/1", "/export.ndjson", "/export.csv"];
    const answers = paths.map((path) => fetch(`${api.server.url}/api/v1/batches/${id}${path}`, { headers: who ?? {} }));
    return await Promise.all(answers.map(async (answer) => await (await answer).text()));
  };
  for (const who of ["viewer", "adaLooks"]) {
    for (const text of await texts(tokens[who])) expect(text).not.toMatch(/p4ss|k3y/);
  }
  const [batch, ...rest] = await texts(tokens["ada"]);
  expect(batch).toContain("k3y");
  for (const text of rest) expect(text).toContain("p4ss");
});

describe("bodies", () => {
  const path = "/api/v1/batches?kind=idle&owner=bodies";

  test("JSON of more than 10 MiB is 413; lines may be longer together, not each", async () => {
    const big = "x".repeat(10 * 1_048_576);
    expect((await api.post("/api/v1/batches", { kind: "idle", items: [big] })).status).toBe(413);
    const long = await api.postText(path, `1\n"${big}"`, NDJSON);
    expect([long.status, long.body.error.message]).toEqual([413, expect.stringContaining("Line 2 is longer")]);
    const part = "y".repeat(1_048_576);
    const taken = await api.postText(path, lines(Array.from({ length: 12 }, () => part)), NDJSON);
    expect([taken.status, taken.body.added]).toEqual([201, 12]);
    await bench.hf.batches.cancel(taken.body.id);
  });

  test.each([
    ["no type", undefined, 415],
    ["a form", "application/x-www-form-urlencoded", 415],
    ["another character set", "application/x-ndjson; charset=latin1", 415],
    ["lines by another name", "application/jsonl", 201],
    ["lines, said at length", "application/x-ndjson; charset=utf-8", 201],
  ])("%s", async (_, type, status) => {
    const headers = { ...tokens["ada"], ...(type !== undefined && { "content-type": type }) };
    const sent = await fetch(`${api.server.url}/api/v1/batches?kind=idle`, {
      method: "POST",
      headers,
      body: new TextEncoder().encode("1\n2"),
    });
    expect(sent.status).toBe(status);
  });

  test("a sender that goes away in the middle leaves no batch that runs", async () => {
    const abort = new AbortController();
    async function* slowly() {
      yield Buffer.from(`${lines(Array.from({ length: 1_500 }, (_, n) => n))}\n`);
      await new Promise((resolve) => setTimeout(resolve, 300));
      abort.abort();
      yield Buffer.from("1\n");
    }
    const sent = fetch(`${api.server.url}${path}-gone`, {
      method: "POST",
      headers: {
        ...NDJSON,
        authorization: `Bearer ${(await bench.hf.tokens.create({ name: "x", role: "operator" })).token}`,
      },
      body: slowly(),
      duplex: "half",
      signal: abort.signal,
    });
    await expect(sent).rejects.toThrow();
    await expect
      .poll(async () => (await bench.hf.batches.list({ owner: "bodies-gone" })).batches.map(({ state }) => state), {
        timeout: 10_000,
      })
      .toEqual(["cancelled"]);
  });

  test("a wrong line at the start of a long body is answered, though the sender goes on writing", async () => {
    async function* endless() {
      yield Buffer.from("not json\n");
      for (let n = 0; n < 400; n += 1) yield Buffer.alloc(65_536, "1\n");
    }
    const response = await fetch(`${api.server.url}${path}`, {
      method: "POST",
      headers: { ...NDJSON, ...tokens["ada"] },
      body: endless(),
      duplex: "half",
    });
    expect(response.status).toBe(403);
    const again = await fetch(`${api.server.url}/api/v1/batches?kind=idle`, {
      method: "POST",
      headers: { ...NDJSON, ...tokens["ada"] },
      body: endless(),
      duplex: "half",
    });
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining("Line 1 is not JSON")]);
  });
});
