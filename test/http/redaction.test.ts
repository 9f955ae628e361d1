// What a kind's `redact` names is seen by nobody over HTTP: in jobs, in items, in exports; but for the owner of a batch.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineBatch, defineJob } from "#src/index.js";
import { redact } from "#src/http/redact.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Answer, type Api, serveApi } from "./api.ts";

const mail = defineJob<{ customer: { email: string; id: number }; cards: { number: string }[] }>("mail", {
  redact: ["customer.email", "cards.number", "text"],
  async run(job) {
    await job.checkpoint({ customer: job.payload.customer }, { name: "seen" });
    return { text: "Dear Ada", customer: job.payload.customer, apiToken: "tok_1" };
  },
});
const persons = defineBatch<{ name: string; n: number }>("persons", {
  redact: ["name"],
  attempts: 1,
  run: (item) => ({ outcome: "done", result: { name: item.payload.name, n: item.payload.n } }),
});
const remark = defineJob<{ email: string }>("remark", { run: () => null });
type Guess = Record<string, string>;

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { kinds: [mail, persons, remark] });
    await bench.hf.work([mail, persons]);
  });
  afterAll(() => api.close());

  const tokenFor = async (role: "viewer" | "operator", owner?: string): Promise<Record<string, string>> => {
    const { token } = await bench.hf.tokens.create({ name: role, role, owner });
    return { authorization: `Bearer ${token}` };
  };

  test("a job: payload, result and checkpoints, as values and as text, for every role", async () => {
    const payload = { customer: { email: "ada@example.com", id: 7 }, cards: [{ number: "4111" }, { number: "4222" }] };
    const { id } = await bench.hf.enqueue(mail, payload);
    await bench.hf.jobs.wait(id, { timeout: "15s" });
    for (const headers of [undefined, await tokenFor("operator"), await tokenFor("viewer")]) {
      const { body } = await api.get(`/api/v1/jobs/${id}`, headers);
      expect(body.payload).toEqual({
        customer: { email: "***", id: 7 },
        cards: [{ number: "***" }, { number: "***" }],
      });
      expect(body.result).toMatchObject({ text: "***", customer: { email: "***", id: 7 } });
      expect(JSON.stringify(body)).not.toMatch(/ada@example|4111|Dear/);
    }
    // Secrets by their name are masked for those who may only look.
    expect((await api.get(`/api/v1/jobs/${id}`, await tokenFor("operator"))).body.result.apiToken).toBe("tok_1");
    expect((await api.get(`/api/v1/jobs/${id}`, await tokenFor("viewer"))).body.result.apiToken).toBe("***");
    // The handler, and whoever has the database, see everything.
    expect(await bench.hf.jobs.get(id)).toMatchObject({ payload });
  });

  test("nobody finds out what is masked by asking for jobs that have it", async () => {
    const card = { number: "4711", token: "tok-9" };
    const payload = { customer: { email: "eve@example.com", id: 8 }, cards: [card] };
    const { id } = await bench.hf.enqueue(mail, payload, { delay: "1h" });
    const { id: other } = await bench.hf.enqueue(remark, { email: "eve@example.com" }, { delay: "1h" });
    const viewer = await tokenFor("viewer");
    const operator = await tokenFor("operator");
    const look = (where: string, guess: Guess, headers: Record<string, string>): Promise<Answer> => {
      const { kind, ...values } = guess;
      const query = { status: "scheduled", ...(kind && { kind }), payload: JSON.stringify(values) };
      return api.get(`/api/v1/jobs${where}?${new URLSearchParams(query).toString()}`, headers);
    };
    // Rightly or wrongly guessed: the answer is the same, for every role, with and without the kind, also in a list.
    const guesses: Guess[] = ["eve@example.com", "nobody@example.com"].flatMap((guess) => [
      { "customer.email": guess },
      { "customer.email": guess, kind: "mail" },
      { "customer.id": "8", "cards.0.number": guess },
      { "cards.-1.number": guess, kind: "mail" },
      { "customer.email.inside": guess },
    ]);
    for (const guess of guesses) {
      for (const headers of [{}, operator, viewer]) {
        for (const where of ["", "/count"]) {
          expect(await look(where, guess, headers), JSON.stringify(guess)).toMatchObject({
            status: 403,
            body: { error: { code: "HOLDFAST_HTTP_FORBIDDEN", message: expect.stringContaining("is masked") } },
          });
        }
      }
      const { kind, ...hidden } = guess;
      const filter = { kind, payload: hidden };
      expect(await api.post("/api/v1/actions", { verb: "cancel", filter }, operator)).toMatchObject({ status: 403 });
    }
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "pending" });
    // What has it inside is not a value: no jobs, whatever is guessed.
    for (const whole of [{ customer: '{"id": 8, "email": "eve@example.com"}' }, { cards: "[]" }]) {
      expect(await look("", whole, operator)).toMatchObject({ status: 200, body: { jobs: [] } });
    }
    // A secret by its name is masked for those who may only look.
    const secret = { "cards.0.token": "tok-9", kind: "mail" };
    expect(await look("", secret, viewer)).toMatchObject({ status: 403 });
    expect((await look("", secret, operator)).body.jobs).toMatchObject([{ id }]);
    // Everything else can be asked for, also a field of the same name elsewhere.
    expect((await look("", { "customer.id": "8" }, viewer)).body.jobs).toMatchObject([{ id }]);
    const elsewhere = { email: "eve@example.com", kind: "remark" };
    expect((await look("", elsewhere, viewer)).body.jobs).toMatchObject([{ id: other }]);
    await bench.hf.jobs.cancel(id);
  });

  test("items, one by one, listed, exported and in the feed; their owner sees them", async () => {
    const { id } = await bench.hf.batches.create(persons, [{ name: "Ada", n: 1 }], { owner: "ws-17" });
    await expect.poll(async () => (await bench.hf.batches.get(id))?.state).toBe("done");
    const paths = ["items", "items/1", "export.ndjson", "export.csv"].map((rest) => `/api/v1/batches/${id}/${rest}`);
    const read = async (path: string, headers: Record<string, string>): Promise<string> =>
      await (await fetch(`${api.server.url}${path}`, { headers })).text();
    const [operator, owner] = [await tokenFor("operator"), await tokenFor("operator", "ws-17")];
    for (const path of [...paths, "/api/v1/batches/changes?since=0"]) {
      expect(await read(path, operator), path).toMatch(/\*\*\*/);
      expect(await read(path, operator), path).not.toContain("Ada");
      expect(await read(path, owner), path).toContain("Ada");
    }
  });
});

test("which job a key stands for, also when the job is gone; a free key is null", async () => {
  const { startApi } = await import("./api.ts");
  const own = await startApi("memory:");
  try {
    const free = await own.get("/api/v1/keys?kind=anything&key=order-17");
    expect(free).toMatchObject({ status: 200, body: { jobId: null, expiresAt: null } });
    const { body: first } = await own.post("/api/v1/jobs", { kind: "anything", key: "order-17", delay: "1h" });
    const taken = await own.get("/api/v1/keys?kind=anything&key=order-17");
    expect(taken.body).toMatchObject({ jobId: first.id, expiresAt: expect.any(String) });
    expect((await own.get("/api/v1/keys?kind=other&key=order-17")).body.jobId).toBeNull();
    expect(await own.get("/api/v1/keys?kind=anything")).toMatchObject({ status: 400 });
  } finally {
    await own.close();
  }
}, 180_000);

test("paths go through lists, and leave everything else alone", () => {
  const paths = ["a.b", "c"];
  expect(redact({ a: [{ b: 1, c: 2 }, { b: null }], c: { d: 1 }, b: 3 }, { secrets: false, paths })).toEqual({
    a: [{ b: "***", c: 2 }, { b: null }],
    c: "***",
    b: 3,
  });
});

test("in a note, which has more around it, paths begin at any depth", () => {
  const note = { value: { a: { b: 1 } }, b: 2 };
  expect(redact(note, { secrets: false, paths: ["a.b"], anywhere: true })).toEqual({
    value: { a: { b: "***" } },
    b: 2,
  });
});

test.each([[["a..b"]], [[""]], ["a"], [[1]]])("redact: %j is refused", (given) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a caller without types may give
  expect(() => defineJob("x", { redact: given as string[], run: () => null })).toThrow(/redact/);
});
