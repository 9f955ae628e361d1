// After close() nothing of Holdfast keeps a process alive: no timer, no thread, no connection. A child process that works
// some jobs and closes ends, though nobody ends it.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createMigratedDatabase } from "../support/database.ts";
import { copyInitialised } from "../support/initialised.ts";
import { TIERS } from "../support/open-test.ts";
import { killChildren, spawnChild } from "../support/processes.ts";
import { quickFolder } from "../support/quick-folder.ts";

/** What it takes is milliseconds; a timer or a connection that was left would be there for ten seconds and more. */
const SOON_MS = 5_000;

let remove: () => Promise<void>;
afterEach(async () => {
  await killChildren();
  await remove();
});

test.each(TIERS)("%s: a process that ran jobs and closed ends by itself", async (tier) => {
  let url: string;
  if (tier === "server") {
    const database = await createMigratedDatabase();
    remove = () => database.drop();
    url = database.url;
  } else {
    const home = quickFolder("holdfast-test-");
    remove = () => rm(home, { recursive: true, force: true });
    url = `embedded:${join(home, "data")}`;
    await copyInitialised(join(home, "data"));
  }
  const child = spawnChild("open-and-close.mjs", { name: tier, url, schema: "holdfast" });
  const { states } = await child.until("worked");
  expect(states).toEqual(Array.from({ length: 6 }, () => "done"));
  const closed = await child.until("closed");
  const late = new Promise((resolve) => setTimeout(resolve, SOON_MS, "still there").unref());
  expect(await Promise.race([child.exited, late]), JSON.stringify(closed["left"])).toEqual({ code: 0, signal: null });
  expect(child.errors).toBe("");
});
