// Tokens: made, shown once, stored as a hash, checked on every route by role and scope, ended by revoking or expiring.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AnyContract } from "#src/http/contract.js";
import { CONTRACTS } from "#src/http/contracts.js";
import { makeHandler, serve } from "#src/http/index.js";
import type { NewToken } from "#src/client/tokens.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, KINDS, serveApi, TOKEN } from "./api.ts";

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { token: TOKEN });
  });
  afterAll(() => api.close());

  test("a token is made, opens, is listed without its secret, is revoked, and opens no more", async () => {
    const made = await api.post("/api/v1/tokens", { name: "Ada", role: "operator", expires: "30d" });
    expect(made.status).toBe(201);
    const { token, id } = made.body as { token: string; id: string };
    expect(token).toMatch(/^hf_[0-9a-f]{32}_[\w-]{43}$/);
    expect((await api.get("/api/v1/jobs", bearer(token))).status).toBe(200);

    const { body } = await api.get("/api/v1/tokens");
    const listed = body.tokens.find((one: { id: string }) => one.id === id);
    expect(listed).toMatchObject({ name: "Ada", role: "operator", recipient: null, owner: null, revokedAt: null });
    expect(Date.parse(listed.expiresAt) - Date.parse(listed.createdAt)).toBe(30 * 86_400_000);
    expect(JSON.stringify(body)).not.toContain(token.slice(-43));

    expect((await api.post(`/api/v1/tokens/${id}/revoke`)).body).toEqual({ id, revoked: true });
    const refused = await api.get("/api/v1/jobs", bearer(token));
    expect(refused.status).toBe(401);
    expect(JSON.stringify(refused.body)).not.toContain(token.slice(-43));
    // Twice is once, and does not move the time.
    const first = (await bench.hf.tokens.list()).find((one) => one.id === id)?.revokedAt;
    expect((await api.post(`/api/v1/tokens/${id}/revoke`)).status).toBe(200);
    expect((await bench.hf.tokens.list()).find((one) => one.id === id)?.revokedAt).toEqual(first);
    expect((await api.post(`/api/v1/tokens/${nobody}/revoke`)).status).toBe(404);
  });

  test("the database holds no secret", async () => {
    const { token } = await bench.hf.tokens.create({ name: "secretive" });
    const { rows } = await bench.db.query<{ row: string }>(
      `select row_to_json(t)::text as row from ${bench.store.schema}.access_tokens t`,
    );
    const secret = token.slice(-43);
    const stored = rows.map(({ row }) => row).join("\n");
    expect(stored).toContain("secretive");
    expect(stored).not.toContain(secret);
    expect(stored).not.toContain(Buffer.from(secret).toString("hex"));
    expect(stored).not.toContain(Buffer.from(secret, "base64url").toString("hex"));
  });

  test("one second before it expires it opens, one second after it does not", async () => {
    const { token } = await bench.hf.tokens.create({ name: "short", expires: "1h" });
    await bench.hf.clock.advance("3599s");
    expect(await bench.hf.tokens.check(token)).toMatchObject({ name: "short" });
    await bench.hf.clock.advance("2s");
    expect(await bench.hf.tokens.check(token)).toBeUndefined();
    expect((await api.get("/api/v1/jobs", bearer(token))).status).toBe(401);
  });

  test("when it was last used is known, to the minute", async () => {
    const { token, id } = await bench.hf.tokens.create({ name: "used" });
    const usedAt = async () => (await bench.hf.tokens.list()).find((one) => one.id === id)?.lastUsedAt;
    expect(await usedAt()).toBeNull();
    await api.get("/api/v1/jobs", bearer(token));
    await expect.poll(usedAt).toBeInstanceOf(Date);
    const first = await usedAt();
    await api.get("/api/v1/jobs", bearer(token));
    expect(await usedAt()).toEqual(first);
  });

  test("guesses: another's secret, a changed letter, a right id with nothing, other forms", async () => {
    const [one, two] = [await bench.hf.tokens.create({ name: "1" }), await bench.hf.tokens.create({ name: "2" })];
    const id = one.token.slice(0, 36);
    const last = one.token.at(-5) === "A" ? "B" : "A";
    for (const guess of [
      `${id}${two.token.slice(36)}`,
      `${one.token.slice(0, -5)}${last}${one.token.slice(-4)}`,
      `${id}${"A".repeat(43)}`,
      id,
      one.token.toUpperCase(),
      `${one.token}x`,
      `hf_${"0".repeat(32)}_${one.token.slice(36)}`,
      "hf_%27%20or%201=1",
    ]) {
      expect(await bench.hf.tokens.check(guess), guess).toBeUndefined();
      expect((await api.get("/api/v1/jobs", bearer(guess))).status, guess).toBe(401);
    }
  });

  test.each<[string, NewToken, string]>([
    ["no name", { name: "" }, 'name is ""'],
    ["a name with a NUL", { name: "a\0b" }, "name is"],
    ["no such role", { name: "x", role: "root" as "admin" }, 'role is "root".'],
    ["two scopes", { name: "x", recipient: "a", owner: "b" }, "both a recipient and an owner"],
    ["an admin with a scope", { name: "x", role: "admin", recipient: "a" }, "cannot be bound"],
    ["an expiry without a unit", { name: "x", expires: "5" as "5s" }, 'expires is "5"'],
    ["an unknown option", { name: "x", recipent: "a" } as NewToken, 'Did you mean "recipient"?'],
  ])("refused: %s", async (_, options, message) => {
    await expect(bench.hf.tokens.create(options)).rejects.toSatisfy((error: Error & { hint: string }) =>
      `${error.message} ${error.hint}`.includes(message),
    );
    const { status, body } = await api.post("/api/v1/tokens", options);
    expect(status).toBe(422);
    expect(`${body.error.message} ${body.error.hint}`).toContain(message);
  });
});

describe("every route, with every role and every scope", () => {
  const bench = useHoldfast("server");
  let api: Api;
  const tokens = new Map<string, string>();
  beforeAll(async () => {
    api = await serveApi(bench.hf);
    for (const [name, options] of Object.entries({
      viewer: { role: "viewer" },
      operator: { role: "operator" },
      admin: { role: "admin" },
      recipient: { role: "operator", recipient: "ws-1" },
      owner: { role: "operator", owner: "user-1" },
    } as const)) {
      tokens.set(name, (await bench.hf.tokens.create({ name, ...options })).token);
    }
  });
  afterAll(() => api.close());

  const RANKS = ["viewer", "operator", "admin"];
  const routes = Object.entries<AnyContract>(CONTRACTS).map(([name, contract]) => ({ name, contract }));

  test.each(routes)("$name", async ({ contract }) => {
    const ask = async (headers: Record<string, string>, recipient = "ws-1"): Promise<number> => {
      const path = contract.path.replace(":recipient", recipient).replace(/:\w+/g, "x");
      const abort = new AbortController();
      const response = await fetch(`${api.server.url}${path}`, {
        method: contract.method,
        headers,
        signal: abort.signal,
      });
      abort.abort();
      return response.status;
    };
    const passes = (status: number) => status !== 401 && status !== 403;
    const isPublic = contract.access === "public";
    expect(passes(await ask({})), "without a token").toBe(isPublic);
    expect(passes(await ask(bearer("wrong"))), "with a wrong token").toBe(isPublic);
    for (const role of RANKS) {
      const may = isPublic || RANKS.indexOf(role) >= RANKS.indexOf(contract.access);
      const status = await ask(bearer(tokens.get(role)!));
      expect(passes(status), role).toBe(may);
      if (!may) expect(status).toBe(403);
    }
    const least = RANKS.indexOf("operator") >= RANKS.indexOf(contract.access);
    const bound = bearer(tokens.get("recipient")!);
    expect(passes(await ask(bound)), "its own recipient").toBe(isPublic || (contract.scope === "recipient" && least));
    expect(passes(await ask(bound, "ws-2")), "another recipient").toBe(isPublic);
    expect(passes(await ask(bearer(tokens.get("owner")!))), "an owner").toBe(
      isPublic || (contract.scope === "owner" && least),
    );
  });

  test("a method that a path does not know, and a path that nobody knows, tell nothing without a token", async () => {
    for (const path of ["/api/v1/jobs", "/nothing", "/api/v1/tokens/x/revoke"]) {
      const response = await fetch(`${api.server.url}${path}`, { method: "DELETE" });
      expect(response.status).toBe(401);
      expect(await response.text()).not.toContain("Use ");
    }
  });

  test("a viewer sees payloads with secrets masked; an operator sees them", async () => {
    const payload = {
      user: "ada",
      password: "p1",
      nested: [{ api_key: "k1", Authorization: "b1", ok: 1 }],
      token: null,
    };
    const { body } = await api.post("/api/v1/jobs", { kind: "anything", payload });
    const path = `/api/v1/jobs/${body.id as string}`;
    const seen = await api.get(path, bearer(tokens.get("viewer")!));
    expect(seen.body.payload).toEqual({
      user: "ada",
      password: "***",
      nested: [{ api_key: "***", Authorization: "***", ok: 1 }],
      token: null,
    });
    expect((await api.get(path, bearer(tokens.get("operator")!))).body.payload).toEqual(payload);
  });
});

describe("closed by default", () => {
  const server = useHoldfast("server");
  const embedded = useHoldfast("embedded");

  test("the server tier does not start without a token, not even on loopback; one that is stored is enough", async () => {
    await expect(serve({ hf: server.hf, kinds: KINDS, port: 0 })).rejects.toThrow("there is no token");
    await server.hf.tokens.create({ name: "only for somebody", recipient: "ws-1" });
    await expect(serve({ hf: server.hf, kinds: KINDS, port: 0 })).rejects.toThrow("there is no token");
    const { token, id } = await server.hf.tokens.create({ name: "first" });
    const started = await serve({ hf: server.hf, kinds: KINDS, port: 0, host: "0.0.0.0" });
    try {
      const url = `http://127.0.0.1:${started.port}/api/v1/jobs`;
      expect((await fetch(url)).status).toBe(401);
      expect((await fetch(url, { headers: bearer(token) })).status).toBe(200);
    } finally {
      await started.close();
    }
    await server.hf.tokens.revoke(id);
    await expect(serve({ hf: server.hf, kinds: KINDS, port: 0 })).rejects.toThrow("there is no token");
  });

  test("a mounted handler on the server tier lets nobody in who has no token", async () => {
    const handler = makeHandler({ hf: server.hf, kinds: KINDS });
    expect((await handler(new Request("http://localhost/api/v1/jobs"))).status).toBe(401);
    expect(() => makeHandler({ hf: server.hf, kinds: KINDS, anonymous: true })).toThrow("anonymous");
  });

  test("the embedded tier is open on loopback, until there is a token; a wrong token is refused even so", async () => {
    const open = await serve({ hf: embedded.hf, kinds: KINDS, port: 0 });
    expect((await fetch(`${open.url}/api/v1/jobs`)).status).toBe(200);
    expect((await fetch(`${open.url}/api/v1/jobs`, { headers: bearer("wrong") })).status).toBe(401);
    await open.close();
    expect(() => makeHandler({ hf: embedded.hf, kinds: KINDS, allowedHosts: ["jobs.example.com"] })).toThrow(
      "has no token",
    );
    await embedded.hf.tokens.create({ name: "first" });
    const closed = await serve({ hf: embedded.hf, kinds: KINDS, port: 0 });
    expect((await fetch(`${closed.url}/api/v1/jobs`)).status).toBe(401);
    await closed.close();
  });

  test("authorize() decides first; where it does not know, the tokens do", async () => {
    const handler = makeHandler({
      hf: server.hf,
      kinds: KINDS,
      authorize: (request) => {
        const user = request.headers.get("x-user");
        return user === null ? null : { name: user, role: user === "ada" ? "operator" : "viewer" };
      },
    });
    const ask = (headers: Record<string, string>) =>
      handler(new Request("http://localhost/api/v1/jobs/x/cancel", { method: "POST", headers }));
    expect((await ask({})).status).toBe(401);
    expect((await ask({ "x-user": "bob" })).status).toBe(403);
    // The id is wrong, and that is what it is told.
    expect((await ask({ "x-user": "ada" })).status).toBe(400);
  });
});
