// The storm in small: a made document of 150 operations. `npm run storm -w apps/api-catalog` is the full one.
import { expect, test } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { storm } from "../storm/storm.mjs";

const THINGS = [
  "repository",
  "issue",
  "gist",
  "pull request",
  "label",
  "release",
  "team",
  "secret",
  "runner",
  "rate limit",
];
const VERBS = ["list", "get", "create", "update", "delete", "merge", "lock", "transfer", "archive", "search", "star"];

/** Operations with words that questions can be asked about. */
function makeDocument(count: number): string {
  const paths: Record<string, object> = {
    "/emojis": { get: { operationId: "emojis", summary: "Get emojis", responses: { 200: { description: "ok" } } } },
  };
  for (let n = 1; n < count; n += 1) {
    const [thing, verb] = [THINGS[n % THINGS.length]!, VERBS[n % VERBS.length]!];
    const operation = {
      operationId: `${verb}-${n}`,
      summary: `${verb} a ${thing}`,
      description: `Number ${n}: ${verb}s one ${thing} that belongs to an organization.`,
      responses: { 200: { description: "ok" } },
    };
    paths[`/${thing.replace(" ", "-")}/${n}`] = { post: operation };
  }
  return JSON.stringify({ openapi: "3.0.3", info: { title: "Made", version: "1" }, paths });
}

test("150 operations, a bad embedder, two kills: each has one vector, none is embedded without a reason", async () => {
  const database = await createDatabase();
  try {
    const result = await storm({ database: database.url, document: makeDocument(150) });
    expect(result.kills).toBe(2);
    expect(result.operations).toBeGreaterThanOrEqual(150);
    // Otherwise the embedder was too good.
    expect(result.failed).toBeGreaterThan(0);
    expect(result.searches).toBeGreaterThan(3);
  } finally {
    await database.drop();
  }
}, 120_000);
