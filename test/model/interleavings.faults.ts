// Three actors in each of the 1,680 orders of three steps each, for each variant. Two of the actors are alike, unless one of
// them cancels: then 840 of the orders are mirror images of others, and are run all the same.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { saveResult } from "../support/history/save-result.ts";
import { tryAllOrders, VARIANTS } from "./interleavings.ts";
import { openSimServer, type SimDatabase } from "./simulation/database.ts";

const START_MS = Date.UTC(2030, 0, 1, 12);
let place: TestDatabase;
let database: SimDatabase;
let interleavings = 0;
let distinct = 0;
const startedAt = performance.now();
beforeAll(async () => {
  place = await createDatabase();
  database = await openSimServer(START_MS, place.url);
});
afterAll(async () => {
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  if (interleavings === 1_680 * VARIANTS.length) {
    await saveResult("interleavings", 0, { seconds, interleavings, distinct, violations: [] });
  }
  await database.close();
  await place.drop();
});

test.each(VARIANTS)(
  "three actors claim, expire and settle one job (%s) in each of the 1,680 orders",
  async (variant) => {
    const tried = await tryAllOrders(database, START_MS, variant, 3);
    expect(tried).toEqual({ orders: 1_680, distinct: variant === "cancelled" ? 1_680 : 840 });
    interleavings += tried.orders;
    distinct += tried.distinct;
  },
);
