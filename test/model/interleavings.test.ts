// Two actors in every order; three, which are 1,680 orders for each variant, in `npm run test:faults`.
import { afterAll, beforeAll, expect, test } from "vitest";
import { tryAllOrders, VARIANTS } from "./interleavings.ts";
import { openSimMemory, type SimDatabase } from "./simulation/database.ts";

const START_MS = Date.UTC(2030, 0, 1, 12);
let database: SimDatabase;
beforeAll(async () => {
  database = await openSimMemory(START_MS);
});
afterAll(() => database.close());

test.each(VARIANTS)("two actors claim, expire and settle one job (%s) in each of the 20 orders", async (variant) => {
  expect(await tryAllOrders(database, START_MS, variant, 2)).toEqual({ orders: 20, distinct: 20 });
});
