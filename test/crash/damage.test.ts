// Storms look for damage in the files of PostgreSQL when they are over. Here some is done, to be found.
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findDamage } from "../support/damage.ts";
import { startPostgres } from "../support/postgres-server.mjs";

const PAGE = 8_192;
let server: Awaited<ReturnType<typeof startPostgres>>;
let sql: Client;
const connect = async (): Promise<void> => {
  sql = new Client({ connectionString: server.url() });
  sql.on("error", () => {});
  await sql.connect();
};
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  await connect();
  await sql.query(
    "create table thing (n int primary key); insert into thing select generate_series(1, 20000); checkpoint",
  );
});
afterAll(async () => {
  await sql.end();
  await server.remove();
});
const find = (): Promise<{ looked: number; damage: string[] }> =>
  findDamage({ query: async (text, values) => (await sql.query(text, values)) as never });

async function overwrite(relation: string, at: number): Promise<void> {
  const { rows } = await sql.query<{ path: string }>("select pg_relation_filepath($1) as path", [relation]);
  await sql.end();
  await server.stop("immediate");
  const file = openSync(join(server.data, rows[0]!.path), "r+");
  writeSync(file, Buffer.alloc(64, 7), 0, 64, at);
  closeSync(file);
  await server.start();
  await connect();
}

test("a database that is whole is found so, and a row and an entry of an index that were written over are found", async () => {
  const whole = await find();
  expect(whole.damage).toEqual([]);
  expect(whole.looked).toBeGreaterThan(200);
  await overwrite("thing_pkey", 5 * PAGE);
  expect((await find()).damage).toEqual([expect.stringMatching(/^index thing_pkey: /)]);
  // The rows of a page are at its end.
  await overwrite("thing", 4 * PAGE - 64);
  expect((await find()).damage).toContainEqual(expect.stringMatching(/^table thing: /));
});
