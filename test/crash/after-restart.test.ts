// PostgreSQL comes up again. Nobody could beat while it was away: whoever looks first must give them the time of a lease.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "#src/db/db.js";
import { openPostgres } from "#src/db/postgres.js";
import { expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { makeStore } from "#src/store/sql.js";
import { startPostgres } from "../support/postgres-server.mjs";
import { openScene, type Scene, SCHEMA } from "./scene.ts";

const LEASE_MS = 3_000;
let server: Awaited<ReturnType<typeof startPostgres>>;
let scene: Scene;
beforeAll(async () => {
  server = await startPostgres();
  scene = await openScene(server.url());
});
afterAll(async () => {
  await scene.close().catch(() => {});
  await server.remove();
});

const expire = (db: Db, seenForMs: number) =>
  expireIfOverdue(makeStore(db, SCHEMA), { limit: 10, seenForMs, atOnce: false });

test("an overdue lease does not expire for whoever has not seen the database for its length, nor within it after PostgreSQL came up", async () => {
  const worker = await scene.worker({ name: "one", lease: `${LEASE_MS}ms` });
  const id = await scene.enqueue({ n: 1, ms: 60_000 });
  await worker.until("started", (said) => said["job"] === id);
  worker.kill("SIGKILL");
  // Until its lease is over, and on the disk.
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS + 500));
  const before = await openPostgres({ url: server.url() });
  // They could not reach it either, as far as this one knows.
  expect(await expire(before, LEASE_MS / 2)).toEqual([]);
  await before.close();
  await server.stop("immediate");
  await server.start();
  const db = await openPostgres({ url: server.url() });
  try {
    expect(await expire(db, Infinity)).toEqual([]);
    await expect.poll(() => expire(db, Infinity), { timeout: 4 * LEASE_MS }).toMatchObject([{ id }]);
  } finally {
    await db.close();
  }
}, 60_000);
