// Several hosts in one URL: a primary and its standby, who change places.
import { afterAll, beforeAll, expect, test } from "vitest";
import { splitHosts } from "#src/db/postgres-hosts.js";
import { openPostgres } from "#src/db/postgres.js";
import { freePort, startPostgres } from "../support/postgres-server.mjs";
import { soon } from "../support/soon.ts";

type Server = Awaited<ReturnType<typeof startPostgres>>;
let primary: Server;
let standby: Server;
beforeAll(async () => {
  primary = await startPostgres();
  await primary.stop("fast");
  standby = await startPostgres({ standbyOf: { data: primary.data, port: primary.port } });
  await primary.start();
});
afterAll(async () => {
  await primary.remove();
  await standby.remove();
});

const hostOf = (port: number): string => `127.0.0.1:${port}`;
const urlOf = (...ports: number[]): string => `postgres://postgres@${ports.map(hostOf).join(",")}/postgres`;

test("a URL with several hosts is one URL for each", () => {
  expect(splitHosts("postgres://u:p%2Cq@a:1,b,[::1]:3/db?x=1,2")).toEqual([
    "postgres://u:p%2Cq@a:1/db?x=1,2",
    "postgres://u:p%2Cq@b/db?x=1,2",
    "postgres://u:p%2Cq@[::1]:3/db?x=1,2",
  ]);
  expect(splitHosts("postgres://u:p@a:1/db?x=1,2")).toEqual(["postgres://u:p@a:1/db?x=1,2"]);
});

test("calls go to the server that takes writes, wherever it stands in the list, and follow it when it changes", async () => {
  const db = await openPostgres({ url: urlOf(await freePort(), standby.port, primary.port) });
  const ask = async (): Promise<unknown> =>
    (await db.query("select current_setting('port')::integer as port, pg_is_in_recovery() as standby")).rows[0];
  try {
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(
      [1, 2, 3].map(() => ({ port: primary.port, standby: false })),
    );
    await primary.stop("immediate");
    const other = await openPostgres({ url: standby.url() });
    await other.query("select pg_promote(true, 30)");
    await other.close();
    await soon(() => ask().catch(() => undefined)).toEqual({ port: standby.port, standby: false });
    await db.query("create table written (n integer)");
  } finally {
    await db.close();
  }
}, 60_000);

test("no server that takes writes is told with all the addresses", async () => {
  const [one, two] = [await freePort(), await freePort()];
  const db = await openPostgres({ url: urlOf(one, two) });
  await expect(db.query("select 1")).rejects.toThrow(new RegExp(`${hostOf(one)}/postgres, ${hostOf(two)}`));
  await db.close();
});
