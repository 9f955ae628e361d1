// What a browser has to load stays small, nothing of it comes from elsewhere, and the routes it calls are those there are.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CONTRACTS } from "#src/http/contracts.js";
import { ROUTES } from "../../dashboard/src/api/routes.ts";
import { toFilter, toQuery, withToken } from "../../dashboard/src/filter.ts";

const folder = new URL("../../dist/dashboard/", import.meta.url).pathname;

test("at most 80 KB, packed", () => {
  const packed = readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith(".gz"));
  expect(packed.length).toBeGreaterThan(2);
  const bytes = packed.reduce((sum, name) => sum + statSync(join(folder, String(name))).size, 0);
  expect(bytes).toBeLessThanOrEqual(80_000);
});

test("the page names only its own files", () => {
  expect(readFileSync(join(folder, "index.html"), "utf8")).not.toMatch(/(src|href)="(https?:)?\/\//);
});

test("every route it calls is a contract", () => {
  for (const [name, route] of Object.entries(ROUTES)) {
    const contract = CONTRACTS[name as keyof typeof CONTRACTS];
    expect(`${contract.method} ${contract.path}`).toBe(route);
  }
});

test("the filter's words are the query's", () => {
  const { query, wrong } = toQuery('status:dead,stuck kind:a.b attempts:>2 age:<1h payload.user.id:42 "no route"');
  expect(wrong).toEqual([]);
  expect(query).toEqual({
    status: "dead,stuck",
    kind: "a.b",
    leastAttempts: "3",
    youngerThan: "1h",
    payload: '{"user.id":"42"}',
    error: "no route",
  });
  expect(toFilter(query)).toMatchObject({ status: ["dead", "stuck"], leastAttempts: 3, payload: { "user.id": "42" } });
  expect(toQuery("attempts:many age:old colour:red").wrong).toHaveLength(3);
  expect(withToken('status:done error:"a b"', "status", "dead")).toBe('status:dead error:"a b"');
});
