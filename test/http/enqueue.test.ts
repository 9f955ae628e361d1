// POST /api/v1/jobs on the embedded database: what is accepted, and how the rest is refused.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../support/open-test.ts";
import { type Api, serveApi } from "./api.ts";

const bench = useHoldfast("embedded");
let api: Api;
beforeAll(async () => {
  api = await serveApi(bench.hf);
});
afterAll(() => api.close());

const enqueue = (body: unknown) => api.post("/api/v1/jobs", body);

describe("accepting", () => {
  test("a job is created, and can be read", async () => {
    const { status, body } = await enqueue({ kind: "greet", payload: { name: "Ada" }, priority: 7, queue: "mail" });
    expect(status).toBe(201);
    expect(body).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), created: true, conflict: false });
    const read = await api.get(`/api/v1/jobs/${body.id}`);
    expect(read.body).toMatchObject({
      id: body.id,
      kind: "greet",
      queue: "mail",
      state: "pending",
      status: "ready",
      attempt: 0,
      maxAttempts: 5,
      payload: { name: "Ada" },
      result: null,
      progress: null,
      lastError: null,
      startedAt: null,
      finishedAt: null,
      priority: 7,
      key: null,
      group: null,
      attempts: [],
    });
    expect(Date.parse(read.body.createdAt)).toBeGreaterThan(Date.now() - 60_000);
  });

  test("the same key again is the same job; with another payload it is a conflict, and the first stays", async () => {
    const body = { kind: "anything", payload: { n: 1 }, key: "order-17" };
    const first = await enqueue(body);
    const second = await enqueue(body);
    const third = await enqueue({ ...body, payload: { n: 2 } });
    expect([first.status, second.status, third.status]).toEqual([201, 200, 200]);
    expect(second.body).toMatchObject({ id: first.body.id, created: false, conflict: false });
    expect(third.body).toMatchObject({ id: first.body.id, created: false, conflict: true });
    expect((await api.get(`/api/v1/jobs/${first.body.id}`)).body.payload).toEqual({ n: 1 });
  });

  test("runAt, delay, group, coalesce and attempts arrive", async () => {
    const runAt = "2030-01-31T09:00:00+01:00";
    const later = await enqueue({ kind: "anything", runAt, group: "g", attempts: 2 });
    expect((await api.get(`/api/v1/jobs/${later.body.id}`)).body).toMatchObject({
      runAt: "2030-01-31T08:00:00.000Z",
      status: "scheduled",
      group: "g",
      maxAttempts: 2,
      payload: null,
    });
    const delayed = await enqueue({ kind: "anything", delay: "1h", coalesce: "index" });
    const { body } = await api.get(`/api/v1/jobs/${delayed.body.id}`);
    expect(Date.parse(body.runAt) - Date.parse(body.createdAt)).toBe(3_600_000);
    expect(body.coalesce).toBe("index");
  });

  test("fields that are null are fields that were not given", async () => {
    const { status } = await enqueue({ kind: "anything", payload: null, key: null, delay: null, priority: null });
    expect(status).toBe(201);
  });

  test("payloads of every shape come back the same", async () => {
    const payload = JSON.parse('{"__proto__":{"a":1},"": [null, 1.5e-7, "\\u2028 Grüße 👩‍👧"], "n": 9007199254740991}');
    const { body } = await enqueue({ kind: "anything", payload });
    const read = await api.get(`/api/v1/jobs/${body.id}`);
    expect(JSON.stringify(read.body.payload)).toContain('"__proto__":{"a":1}');
    expect(read.body.payload.n).toBe(9007199254740991);
    expect(read.body.payload[""]).toEqual(payload[""]);
  });
});

describe("refusing", () => {
  test("an unknown kind, with the known ones", async () => {
    const { status, body } = await enqueue({ kind: "gret", payload: {} });
    expect(status).toBe(422);
    expect(body.error).toMatchObject({
      code: "HOLDFAST_KIND_UNKNOWN",
      message: 'This server does not know the kind "gret".',
      hint: "Known kinds: greet, anything, hopeless, endless.",
    });
  });

  test("a payload that does not fit, with the place", async () => {
    const { status, body } = await enqueue({ kind: "greet", payload: { name: 5 } });
    expect(status).toBe(422);
    expect(body.error.code).toBe("HOLDFAST_PAYLOAD_INVALID");
    expect(body.error.message).toContain("name: ");
  });

  test.each<[string, object, string, string]>([
    ["no kind", { payload: 1 }, "The body has no kind.", "mail.send"],
    ["a kind that is no text", { kind: 5 }, "kind is 5.", "Give the name of a kind"],
    ["an unknown field", { kind: "greet", prio: 1 }, 'The body has the unknown field "prio".', 'mean "priority"?'],
    ["a field of the wrong type", { kind: "greet", key: 5 }, "key is 5.", 'Give a text: "key": "order-17".'],
    ["a priority as text", { kind: "anything", priority: "5" }, 'priority is "5".', "Give a number"],
    ["a priority out of range", { kind: "anything", priority: 101 }, "priority is 101.", "from -100 to 100"],
    ["half a priority", { kind: "anything", priority: 0.5 }, "priority is 0.5.", "whole number"],
    ["a delay without a unit", { kind: "anything", delay: "5" }, 'delay is "5"', '"30s"'],
    ["a time without a zone", { kind: "anything", runAt: "2030-01-31T08:00:00" }, "runAt is", "with its zone"],
    ["a time that is none", { kind: "anything", runAt: "2030-13-41T08:00:00Z" }, "runAt is", "ISO 8601"],
    [
      "both times",
      { kind: "anything", delay: "1s", runAt: "2030-01-31T08:00:00Z" },
      "The body has both",
      "one of them",
    ],
    ["an empty key", { kind: "anything", key: "" }, "key is 0 characters long.", "1 to 500"],
    ["a queue with a space", { kind: "anything", queue: "a b" }, 'queue is "a b".', "letters, digits"],
    ["no attempts", { kind: "anything", attempts: 0 }, "attempts is 0.", "from 1 to"],
    ["coalesce and key", { kind: "anything", coalesce: "a", key: "b" }, "The body has coalesce together", "Choose one"],
    ["an own option of the library", { kind: "anything", tx: {} }, 'unknown field "tx"', ""],
    ["a prototype", JSON.parse('{"kind":"anything","__proto__":{}}'), 'unknown field "__proto__"', ""],
  ])("%s", async (_, body, message, hint) => {
    const answer = await enqueue(body);
    expect(answer.status).toBe(422);
    expect(answer.body.error.code).toBe("HOLDFAST_OPTION_INVALID");
    expect(answer.body.error.message).toContain(message);
    expect(answer.body.error.hint).toContain(hint);
    expect(answer.body.error.message).not.toContain("enqueue()");
  });

  test.each<[string, string | Uint8Array, number, string, string]>([
    ["broken JSON", '{"kind":', 400, "HOLDFAST_HTTP_REQUEST_UNREADABLE", "The body is not JSON"],
    ["nothing", "", 400, "HOLDFAST_HTTP_REQUEST_UNREADABLE", "The body is empty."],
    [
      "bytes that are not UTF-8",
      new Uint8Array([0x22, 0xff, 0x22]),
      400,
      "HOLDFAST_HTTP_REQUEST_UNREADABLE",
      "not UTF-8",
    ],
    ["a list", "[]", 422, "HOLDFAST_OPTION_INVALID", "The body is not a JSON object."],
    ["null", "null", 422, "HOLDFAST_OPTION_INVALID", "The body is not a JSON object."],
    [
      "an integer that would be rounded",
      '{"kind":"anything","payload":{"id":9007199254740993}}',
      422,
      "HOLDFAST_PAYLOAD_INVALID",
      "9007199254740993",
    ],
    ["a number beyond all", '{"kind":"anything","payload":1e999}', 422, "HOLDFAST_PAYLOAD_INVALID", "is Infinity"],
    [
      "an integer without end",
      `{"kind":"anything","payload":${"9".repeat(500)}}`,
      422,
      "HOLDFAST_PAYLOAD_INVALID",
      "999",
    ],
    ["a NUL character", '{"kind":"anything","payload":"a\\u0000b"}', 422, "HOLDFAST_PAYLOAD_INVALID", "NUL"],
    ["half a surrogate", '{"kind":"anything","payload":"\\ud800"}', 422, "HOLDFAST_PAYLOAD_INVALID", "surrogate"],
  ])("%s", async (_, text, status, code, message) => {
    const answer = await api.postText("/api/v1/jobs", text);
    expect(answer.status).toBe(status);
    expect(answer.body.error.code).toBe(code);
    expect(answer.body.error.message).toContain(message);
  });

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json; charset=latin1",
    "xapplication/json",
  ])("the content type %s", async (type) => {
    const answer = await api.postText("/api/v1/jobs", '{"kind":"anything"}', { "content-type": type });
    expect(answer.status).toBe(415);
    expect(answer.body.error.code).toBe("HOLDFAST_HTTP_TYPE_UNSUPPORTED");
  });

  test("other spellings of the JSON type are fine", async () => {
    for (const type of ["application/json; charset=utf-8", "Application/JSON;charset=UTF8", "application/ld+json"]) {
      const answer = await api.postText("/api/v1/jobs", '{"kind":"anything"}', { "content-type": type });
      expect(answer.status).toBe(201);
    }
  });
});

describe("size", () => {
  const LIMIT = 10 * 1_048_576;
  const around = '{"kind":"anything","payload":""}';

  test("a body of exactly the limit is taken, announced or not", async () => {
    const text = around.replace('""', `"${"x".repeat(LIMIT - around.length)}"`);
    expect((await api.postText("/api/v1/jobs", text)).status).toBe(201);
  });

  test("one byte more is 413, announced or not", async () => {
    const text = around.replace('""', `"${"x".repeat(LIMIT - around.length + 1)}"`);
    const announced = await api.postText("/api/v1/jobs", text);
    expect(announced.status).toBe(413);
    expect(announced.body.error.code).toBe("HOLDFAST_HTTP_BODY_TOO_LARGE");
    const bytes = new TextEncoder().encode(text);
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 1_000_000) controller.enqueue(bytes.slice(at, at + 1_000_000));
        controller.close();
      },
    });
    const unannounced = await fetch(`${api.server.url}/api/v1/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: stream,
      duplex: "half",
    });
    expect(unannounced.status).toBe(413);
    // The server goes on.
    expect((await api.get("/livez")).status).toBe(200);
  });
});
