// A worker process that was told to stop ends by itself: nothing that Holdfast opened keeps it alive, its threads included.
// Storms count one that does not as a violation; here that is seen to be found out.
import { afterEach, expect, test } from "vitest";
import { createMigratedDatabase, type TestDatabase } from "../support/database.ts";
import { killChildren, startChild } from "../support/processes.ts";

let database: TestDatabase;
afterEach(async () => {
  await killChildren();
  await database.drop();
});

test.each([
  ["ends by itself", {}, 0, /^$/],
  ["that something else keeps alive says by what", { leak: true }, 73, /still alive after 5 s: .*Timeout/],
])("a worker of storms that was stopped %s", async (_, more, code, says) => {
  database = await createMigratedDatabase();
  const config = { name: "w", url: database.url, logUrls: [database.url], schema: "holdfast" };
  const child = await startChild("storm-worker.mjs", { ...config, ...more });
  child.kill("SIGTERM");
  expect(await child.exited).toEqual({ code, signal: null });
  expect(child.errors).toMatch(says);
});
