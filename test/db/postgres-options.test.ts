import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { types } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Db } from "#src/db/db.js";
import { openPostgres, type PostgresOptions } from "#src/db/postgres.js";
import { OptionInvalid } from "#src/errors.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { startPostgres } from "../support/postgres-server.mjs";

async function refusal(options: PostgresOptions): Promise<Error> {
  const error: unknown = await openPostgres(options).catch((reason: unknown) => reason);
  if (!(error instanceof OptionInvalid)) throw new Error("It was not refused.", { cause: error });
  return error;
}

describe("what cannot work is refused before anything is connected, and never repeats the password", () => {
  test.each([
    "postgres://app:s3cret#horse@db.example/app",
    "postgres://app:12/s3cret@db.example/app",
    "postgres://app:12?s3cret@db.example/app",
    "postgres://app:s3cret%zz#@db.example/app",
    "postgres://app:s3cret@db.example:notaport/app",
    "postgres://app:s3cret@db.example:99999/app",
    "postgres://app:s3cret@db.example/app?port=s3cret",
    "postgres://app:s3cret@a.example:5432,b.example:99999/app",
    "postgres://app:s3cret@db.example/app?sslrootcert=/nowhere/ca.pem",
    "mysql://app:s3cret@db.example/app",
    "app:s3cret@db.example",
    "",
    "   ",
  ])("%s", async (url) => {
    const error = await refusal({ url });
    // The port is shown: it is a number.
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain("s3cret");
  });

  test("a certificate file that is not there is named", async () => {
    const error = await refusal({ url: "postgres://app@db.example/app?sslrootcert=/nowhere/ca.pem" });
    expect(error.message).toContain("/nowhere/ca.pem");
  });

  test.each<[string, PostgresOptions]>([
    ["nothing", {}],
    ["both", { url: "postgres://a@b/c", connection: { host: "b" } }],
    ["a number for a password", { connection: { host: "b", ...JSON.parse('{ "password": 1234 }') } }],
    ["a host that is no text", { connection: { ...JSON.parse('{ "host": {} }') } }],
    ["port 0", { connection: { host: "b", port: 0 } }],
    ["port 70000", { connection: { host: "b", port: 70_000 } }],
    ["no connections", { url: "postgres://a@b/c", poolSize: 0 }],
    ["half a connection", { url: "postgres://a@b/c", poolSize: 1.5 }],
    ["no time", { url: "postgres://a@b/c", statementTimeoutMs: 0 }],
    ["all the time", { url: "postgres://a@b/c", connectTimeoutMs: Infinity }],
    ["more than a timer takes", { url: "postgres://a@b/c", statementTimeoutMs: 2 ** 31 }],
  ])("%s", async (_, options) => {
    await refusal(options);
  });
});

describe("a connection as configured", () => {
  let database: TestDatabase;
  let db: Db | undefined;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  async function ask(options: PostgresOptions, question: string): Promise<unknown> {
    db = await openPostgres(options);
    try {
      return (await db.query<{ answer: unknown }>(`select ${question} as answer`)).rows[0]?.answer;
    } finally {
      await db.close();
    }
  }

  test("by url and by parts", async () => {
    const { hostname, port, username, password } = new URL(database.url);
    const connection = { host: hostname, port: Number(port), user: username, password, database: database.name };
    expect(await ask({ url: database.url }, "current_database()")).toBe(database.name);
    expect(await ask({ connection }, "current_database()")).toBe(database.name);
  });

  test("its application_name", async () => {
    const question = "current_setting('application_name')";
    expect(await ask({ url: database.url }, question)).toBe("holdfast");
    expect(await ask({ url: database.url, applicationName: "mine" }, question)).toBe("mine");
    expect(await ask({ url: `${database.url}?application_name=theirs` }, question)).toBe("theirs");
  });

  test("pg's own timeout in a url is not used", async () => {
    expect(await ask({ url: `${database.url}?query_timeout=1` }, "pg_sleep(0.05) is not null")).toBe(true);
  });

  test("what the server refuses passes through with its code", async () => {
    const url = new URL(database.url);
    url.pathname = "/not_there_at_all";
    await expect(ask({ url: url.href }, "1")).rejects.toMatchObject({ code: "3D000" });
  });

  test("a password that is wrong, and one that is missing", async () => {
    const server = await startPostgres({ settings: { shared_buffers: "16MB", max_connections: 10 } });
    try {
      const admin = await openPostgres({ url: server.url() });
      await admin.script("create role app login password 's3cret'");
      writeFileSync(
        join(server.folder, "data", "pg_hba.conf"),
        "host all app all scram-sha-256\nhost all all all trust\n",
      );
      await admin.query("select pg_reload_conf()");
      const url = (user: string): string => server.url().replace("postgres@", `${user}@`);
      await expect.poll(() => ask({ url: url("app:wr0ng") }, "1").catch(String)).toMatch(/authentication failed/);
      await admin.close();
      expect(await ask({ url: url("app:s3cret") }, "current_user")).toBe("app");
      const wrong: unknown = await ask({ url: url("app:wr0ng") }, "1").catch((reason: unknown) => reason);
      expect(wrong).toMatchObject({ code: "28P01" });
      expect(inspect(wrong, { depth: 9, showHidden: true })).not.toContain("wr0ng");
      await expect(ask({ url: url("app") }, "1")).rejects.toBeInstanceOf(OptionInvalid);
    } finally {
      await server.remove();
    }
  });

  test("no settings are left in the session, and no prepared statements", async () => {
    db = await openPostgres({ url: database.url, poolSize: 1 });
    await db.query("select $1::int", [1]);
    await db.transaction((tx) => tx.query("select $1::int", [1]));
    const { rows } = await db.query(
      `select (select count(*) from pg_prepared_statements where name <> '') as prepared,
              (select count(*) from pg_settings where source = 'session') as settings,
              (select string_agg(name, ',' order by name) from pg_settings where source = 'client') as startup`,
    );
    expect(rows).toEqual([{ prepared: "0", settings: "0", startup: "DateStyle,application_name,client_encoding" }]);
    await db.close();
  });

  test("pg's global parsers, which others change, do not matter", async () => {
    const before = types.getTypeParser(types.builtins.INT8);
    types.setTypeParser(types.builtins.INT8, () => "spoilt");
    try {
      expect(await ask({ url: database.url }, "1::int8")).toBe("1");
    } finally {
      types.setTypeParser(types.builtins.INT8, before);
    }
  });

  test("whatever the role's settings do to dates, bytes and zones", async () => {
    db = await openPostgres({ url: database.url, poolSize: 1 });
    const bytes = Buffer.from([0, 1, 39, 92, 127, 128, 255, 65]);
    await db.transaction(async (tx) => {
      await tx.query("set local bytea_output = 'escape'");
      await tx.query("set local timezone = 'Asia/Kathmandu'");
      const { rows } = await tx.query<{ b: Buffer; t: Date; old: Date }>(
        `select $1::bytea as b, '2026-11-16 03:35:32.5+00'::timestamptz as t, '1900-01-01 00:00:00+00'::timestamptz as old`,
        [bytes],
      );
      expect(rows[0]?.b.equals(bytes)).toBe(true);
      expect(rows[0]?.t).toEqual(new Date("2026-11-16T03:35:32.500Z"));
      expect(rows[0]?.old).toEqual(new Date("1900-01-01T00:00:00Z"));
      await tx.query("set local datestyle = 'SQL, DMY'");
      await expect(tx.query("select now()")).rejects.toThrow(/DateStyle ISO/);
    });
    const texts =
      "'2026-11-16'::date::text = $1 as d, '2026-11-16'::date as date, '2026-11-16 01:02:03'::timestamp as stamp";
    expect((await db.query(`select ${texts}`, ["2026-11-16"])).rows).toEqual([
      { d: true, date: "2026-11-16", stamp: "2026-11-16 01:02:03" },
    ]);
    await db.close();
  });
});
