// COPY through the seam: the server tier has it, and keeps the promises of a query.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Db } from "#src/db/db.js";
import { openPostgres } from "#src/db/postgres.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { caught } from "../support/make.ts";

describe("lines that are copied in", () => {
  let database: TestDatabase;
  let db: Db;
  const copy = (parts: Iterable<string>, timeoutMs?: number): Promise<void> =>
    db.copyIn!("copy t from stdin", parts, timeoutMs === undefined ? undefined : { timeoutMs });
  const stored = async (): Promise<unknown[]> => (await db.query<{ n: number }>("select n from t order by n")).rows;

  beforeAll(async () => {
    database = await createDatabase();
    db = await openPostgres({ url: database.url, poolSize: 1 });
    await db.query("create table t (n integer primary key)");
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  test("arrive whole, in whatever pieces they come", async () => {
    await copy(["1\n2", "2\n", "", "3\n"]);
    expect(await stored()).toEqual([{ n: 1 }, { n: 3 }, { n: 22 }]);
  });

  test("of which the server refuses one store nothing, and the connection goes on", async () => {
    expect(await caught(copy(["100\n", "no number\n", "101\n"]))).toMatchObject({ code: "22P02" });
    expect(await caught(copy(["100\n", "1\n"]))).toMatchObject({ code: "23505" });
    expect(await stored()).toHaveLength(3);
  });

  test("that cannot be made store nothing, and why is the error", async () => {
    function* broken(): Generator<string> {
      yield "200\n";
      throw new RangeError("cannot be made");
    }
    expect(await caught(copy(broken()))).toMatchObject({ name: "RangeError", message: "cannot be made" });
    expect(await stored()).toHaveLength(3);
  });

  test("are refused before they are asked for, if the table is not there", async () => {
    expect(await caught(db.copyIn!("copy nowhere from stdin", ["1\n"]))).toMatchObject({ code: "42P01" });
  });

  test("that wait too long for a lock fail in time", async () => {
    const other = await openPostgres({ url: database.url });
    await other.transaction(async (tx) => {
      await tx.query("lock table t in access exclusive mode");
      expect(await caught(copy(["300\n"], 300))).toMatchObject({ code: "HOLDFAST_DATABASE_UNAVAILABLE" });
    });
    await other.close();
    expect(await stored()).toHaveLength(3);
  });
});
