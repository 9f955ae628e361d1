// The storm in small: 150 operations. `npm run storm -w apps/api-catalog` is the full one.
import { expect, test } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { storm } from "../storm/storm.mjs";

test("150 operations of GitHub's API, a bad embedder, two kills: each has one vector, none is embedded without a reason", async () => {
  const database = await createDatabase();
  try {
    const result = await storm({ database: database.url, operations: 150 });
    expect(result.kills).toBe(2);
    expect(result.operations).toBeGreaterThanOrEqual(150);
    // Otherwise the embedder was too good.
    expect(result.failed).toBeGreaterThan(0);
    expect(result.searches).toBeGreaterThan(3);
  } finally {
    await database.drop();
  }
}, 120_000);
