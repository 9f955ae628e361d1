// The security matrix: every route against hosts, origins and hostile text; what GET may not do; nothing that is sent
// makes a 500. Roles and scopes are in tokens.test.ts, slow and broken clients in slow.test.ts, apps in test/apps.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AnyContract, isMedia } from "#src/http/contract.js";
import { CONTRACTS } from "#src/http/contracts.js";
import { makeHandler } from "#src/http/index.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, authorization, KINDS, rawRequest, serveApi, TOKEN } from "./api.ts";
import { seedFrom } from "../support/random.ts";

// One for the file: what is tried again is the same run. fast-check names it when something fails.
const seed = seedFrom(process.env["FUZZ_SEED"]);

const routes = Object.entries<AnyContract>(CONTRACTS).map(([name, contract]) => ({ name, contract }));
const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";
const pathOf = ({ path }: AnyContract, value = nobody) => path.replace(/:\w+/g, encodeURIComponent(value));

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  const failures: unknown[] = [];
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { token: TOKEN, onError: (error) => failures.push(error) });
  });
  afterAll(() => api.close());

  test.each(routes)("$name: a host of somebody else is refused before anything else", async ({ contract }) => {
    for (const host of ["evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "127.0.0.1.nip.io", "0.0.0.0"]) {
      const { status, text } = await rawRequest(api.server.port, {
        method: contract.method,
        path: pathOf(contract),
        headers: { host, ...authorization },
      });
      expect(status, host).toBe(403);
      expect(text).toContain("HOLDFAST_HTTP_HOST_REFUSED");
    }
  });

  const changing = routes.filter(({ contract }) => contract.method !== "GET");
  test.each(changing)(
    "$name: a page of another origin changes nothing, with or without a token",
    async ({ contract }) => {
      for (const headers of [
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { origin: "https://evil.example" },
        { origin: "null" },
        { origin: "http://localhost" },
        { "sec-fetch-site": "nonsense", origin: "http://127.0.0.1" },
      ]) {
        for (const token of [{}, authorization]) {
          const { status, text } = await rawRequest(api.server.port, {
            method: contract.method,
            path: pathOf(contract),
            headers: { ...headers, ...token },
          });
          expect(status, JSON.stringify(headers)).toBe(403);
          expect(text).toContain("HOLDFAST_HTTP_ORIGIN_REFUSED");
        }
      }
    },
  );

  test("no GET changes anything: not a row of any table", async () => {
    const { body } = await api.post("/api/v1/jobs", { kind: "anything", delay: "1h" });
    const snapshot = async () => {
      const { rows: tables } = await bench.db.query<{ name: string }>(
        "select relname as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r' order by 1",
        [bench.store.schema],
      );
      const seen: Record<string, unknown> = {};
      for (const { name } of tables) {
        const { rows } = await bench.db.query(`select t::text as row from ${bench.store.schema}.${name} t order by 1`);
        seen[name] = rows;
      }
      return seen;
    };
    const before = await snapshot();
    for (const { contract } of routes) {
      if (contract.method !== "GET" || isMedia(contract.output)) continue;
      await api.get(pathOf(contract, body.id as string));
    }
    expect(await snapshot()).toEqual(before);
  });

  const HOSTILE = [
    "'; drop table holdfast.jobs; --",
    '"; drop schema holdfast cascade; --',
    "$$; select pg_sleep(60); $$",
    "\\'; select 1/0; --",
    ":schema",
    "%",
    "<script>alert(1)</script>",
    "{{7*7}}${7*7}",
    "../../../../etc/passwd",
    "a\r\nset-cookie: x=1",
    "\u202e\u0007\u001b[31m",
    "x".repeat(2_000),
    "\ud800",
    "\0",
  ];

  test.each(routes)("$name: hostile text in its path, its query and its body is only text", async ({ contract }) => {
    if (isMedia(contract.output)) return;
    failures.length = 0;
    const names = Object.keys(contract.query.shape);
    for (const text of HOSTILE) {
      const well = text.toWellFormed();
      const queries = names.map((name) => `${pathOf(contract)}?${name}=${encodeURIComponent(well)}`);
      const fields =
        contract.body !== null && "shape" in contract.body ? Object.keys(contract.body.shape as object) : [];
      const bodies =
        fields.length === 0 ? [null] : fields.map((name) => ({ kind: "anything", name: "x", [name]: text }));
      for (const path of [pathOf(contract, well), ...queries]) {
        for (const body of bodies) {
          const response = await fetch(`${api.server.url}${path}`, {
            method: contract.method,
            headers: { ...authorization, ...(body ? { "content-type": "application/json" } : {}) },
            body: body && JSON.stringify(body),
          });
          const answer = await response.text();
          expect(response.status, `${path} ${JSON.stringify(body)} ${answer}`).toBeLessThan(500);
          expect(response.headers.get("content-type")).toContain("application/json");
          expect(response.headers.get("x-content-type-options")).toBe("nosniff");
          expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
          expect(response.headers.get("set-cookie")).toBeNull();
        }
      }
    }
    expect(failures).toEqual([]);
    // All tables are still there.
    expect((await api.get("/api/v1/jobs?limit=1")).status).toBe(200);
  });

  test("text that was stored comes back as data, never as a page", async () => {
    const payload = { html: "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>": "\u2028" };
    const { body } = await api.post("/api/v1/jobs", { kind: "anything", payload, key: "<svg onload=alert(1)>" });
    const response = await fetch(`${api.server.url}/api/v1/jobs/${body.id}`, {
      headers: { ...authorization, accept: "text/html" },
    });
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(((await response.json()) as { payload: unknown }).payload).toEqual(payload);
  });

  test("whatever is sent, the answer is no fault of the server", async () => {
    failures.length = 0;
    const handler = makeHandler({ hf: bench.hf, kinds: KINDS, token: TOKEN, onError: (error) => failures.push(error) });
    const part = fc.oneof(
      fc.constantFrom("api", "v1", "jobs", "tokens", "janitor", "x", nobody, "..", "%"),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"),
        fc.array(part, { maxLength: 6 }),
        fc.webQueryParameters(),
        fc.oneof(fc.json(), fc.string(), fc.constant('{"kind":"anything","payload":[]}')),
        async (method, parts, query, body) => {
          const path = parts.map(encodeURIComponent).join("/");
          const headers = { ...authorization, "content-type": "application/json" };
          const sent = method === "GET" || method === "HEAD" ? {} : { body };
          const response = await handler(
            new Request(`http://localhost/${path}?${query}`, { method, headers, ...sent }),
          );
          await response.body?.cancel();
          expect(response.status, `${method} /${path}?${query} ${body}`).toBeLessThan(500);
        },
      ),
      { numRuns: 300, seed },
    );
    handler.endStreams();
    expect(failures).toEqual([]);
  });

  test("JSON that is deep, wide or repeats itself is refused or stored, and never hangs", async () => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    for (const payload of [deep, `{${'"a":1,'.repeat(50_000)}"a":2}`, `"${"\\u0041".repeat(100_000)}"`]) {
      const startedAt = performance.now();
      const { status } = await api.postText("/api/v1/jobs", `{"kind":"anything","payload":${payload}}`);
      expect(status).toBeLessThan(500);
      expect(performance.now() - startedAt).toBeLessThan(5_000);
    }
  });
});
