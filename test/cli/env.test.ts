// The environment and the flags: what is read from where, what wins, and sentences that name the wrong one.
import { describe, expect, test } from "vitest";
import { readEnv } from "#src/cli/env.js";
import { explain } from "#src/cli/exit-codes.js";
import { maskUrl } from "#src/cli/mask.js";
import { openOptions, refuseAccidentalEmbedded, resolveSettings, type ServerFlags } from "#src/cli/settings.js";

function problemOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    return explain(error);
  }
  throw new Error("it was not refused");
}

const settingsOf = (flags: ServerFlags, env: Record<string, string> = {}, config: object | null = null) =>
  resolveSettings(flags, readEnv(env), config && { name: "holdfast.config.ts", path: "/x/holdfast.config.ts", config });

describe("a wrong variable is named, its value is shown unless it may be a secret, exit code 2", () => {
  test.each<[Record<string, string>, string]>([
    [{ HOLDFAST_PORT: "seventy" }, 'HOLDFAST_PORT is "seventy".'],
    [{ HOLDFAST_PORT: "65536" }, 'HOLDFAST_PORT is "65536".'],
    [{ HOLDFAST_PORT: "-1" }, 'HOLDFAST_PORT is "-1".'],
    [{ HOLDFAST_HOST: "http://localhost" }, 'HOLDFAST_HOST is "http://localhost", which is not a host.'],
    [{ HOLDFAST_HOST: "localhost:7070" }, 'HOLDFAST_HOST is "localhost:7070", which is not a host.'],
    [{ HOLDFAST_SCHEMA: "pg_x" }, 'HOLDFAST_SCHEMA is "pg_x", which cannot name a schema.'],
    [{ HOLDFAST_TOKEN: "two hunter2" }, "HOLDFAST_TOKEN holds a space or a character that is not ASCII"],
    [{ HOLDFAST_URL: "localhost:7070" }, 'HOLDFAST_URL is "localhost:7070".'],
    [{ QUEUE_DONE_RETENTION: "0" }, 'QUEUE_DONE_RETENTION is "0", which is not a duration.'],
    [{ QUEUE_DONE_RETENTION: "-1h" }, 'QUEUE_DONE_RETENTION is "-1h", which is not a duration.'],
    [{ QUEUE_STUCK_TIMEOUT: "0s" }, 'QUEUE_STUCK_TIMEOUT is "0s".'],
    [{ QUEUE_JANITOR_INTERVAL: "forever" }, 'QUEUE_JANITOR_INTERVAL is "forever", which is not a duration.'],
    [{ DATABASE_URL: "mysql://root:hunter2@db/x" }, "DATABASE_URL is not a database URL."],
    [{ HOLDFAST_DATABASE_URL: "hunter2" }, "HOLDFAST_DATABASE_URL is not a database URL."],
  ])("%o", (env, message) => {
    const problem = problemOf(() => readEnv(env));
    expect(problem.exitCode).toBe(2);
    expect(problem.message).toContain(message);
    expect(problem.hint).toBeTruthy();
    expect(JSON.stringify(problem)).not.toContain("hunter2");
  });

  test("durations as others write them are understood", () => {
    const env = { QUEUE_DONE_RETENTION: "168h", QUEUE_STUCK_TIMEOUT: "1h30m", QUEUE_JANITOR_INTERVAL: "1h" };
    expect(settingsOf({}, env)).toMatchObject({
      keepDone: { value: "168h", source: "QUEUE_DONE_RETENTION" },
      lease: { value: "5400000ms", source: "QUEUE_STUCK_TIMEOUT" },
      purgeEvery: { value: "1h", source: "QUEUE_JANITOR_INTERVAL" },
    });
    expect(settingsOf({}, { QUEUE_DONE_RETENTION: "forever" }).keepDone.value).toBe("forever");
    expect(settingsOf({}, { QUEUE_DONE_RETENTION: "0s" }).keepDone.value).toBe("0s");
    expect(settingsOf({}, {}, { keepDone: "24h" }).keepDone).toEqual({ value: "24h", source: "holdfast.config.ts" });
  });

  test("the edges are fine", () => {
    const env = readEnv({ HOLDFAST_PORT: "0", HOLDFAST_HOST: "::1", HOLDFAST_URL: "https://jobs.example.com/x/" });
    expect(env).toMatchObject({
      port: { value: 0 },
      host: { value: "::1" },
      url: { value: "https://jobs.example.com/x" },
    });
    expect(readEnv({ HOLDFAST_PORT: "65535" }).port?.value).toBe(65_535);
    expect(readEnv({ HOLDFAST_PORT: " ", DATABASE_URL: "" })).toMatchObject({ port: undefined, database: undefined });
  });
});

describe("what wins", () => {
  test("flag, environment, file, default", () => {
    const all = { port: "1" };
    const env = { HOLDFAST_PORT: "2" };
    const file = { port: 3 };
    expect(settingsOf(all, env, file).port).toEqual({ value: 1, source: "--port" });
    expect(settingsOf({}, env, file).port).toEqual({ value: 2, source: "HOLDFAST_PORT" });
    expect(settingsOf({}, {}, file).port).toEqual({ value: 3, source: "holdfast.config.ts" });
    expect(settingsOf({}).port).toEqual({ value: 7070, source: "default" });
  });

  test("what the file says about the database's use reaches open()", () => {
    const file = { migrate: false, poolSize: 40, callTimeout: "3s" };
    expect(openOptions(settingsOf({}, {}, file))).toMatchObject(file);
    expect(openOptions(settingsOf({}))).toMatchObject({ migrate: true, poolSize: 10, callTimeout: "10s" });
  });

  test("HOLDFAST_DATABASE_URL wins over DATABASE_URL, and --embedded over both", () => {
    const env = { DATABASE_URL: "postgres://a/b", HOLDFAST_DATABASE_URL: "postgres://c/d" };
    expect(settingsOf({}, env).database).toEqual({ value: "postgres://c/d", source: "HOLDFAST_DATABASE_URL" });
    expect(settingsOf({ embedded: true }, env).database).toEqual({ value: "embedded:", source: "--embedded" });
  });

  test.each<[ServerFlags, object | null, string]>([
    [{ port: "x" }, null, '--port is "x".'],
    [{ concurrency: "0" }, null, '--concurrency is "0".'],
    [{ grace: "25" }, null, "--grace is"],
    [{ schema: "" }, null, "--schema is"],
    [{}, { port: "x" }, 'port in holdfast.config.ts is "x".'],
    [{}, { concurrency: 0 }, 'concurrency in holdfast.config.ts is "0".'],
    [{}, { database: "oracle:" }, "database in holdfast.config.ts is not a database URL."],
  ])("flags and the file are checked by the same rules: %o %o", (flags, file, message) => {
    const problem = problemOf(() => settingsOf(flags, {}, file));
    expect(problem.exitCode).toBe(2);
    expect(problem.message).toContain(message);
  });
});

test("in production the embedded database must be asked for by name", () => {
  const problem = problemOf(() => refuseAccidentalEmbedded(settingsOf({}), true));
  expect(problem.message).toBe("NODE_ENV is production, and no database is configured.");
  expect(problem.hint).toContain("--embedded");
  refuseAccidentalEmbedded(settingsOf({}), false);
  refuseAccidentalEmbedded(settingsOf({ embedded: true }), true);
  refuseAccidentalEmbedded(settingsOf({}, { DATABASE_URL: "embedded:./data" }), true);
  refuseAccidentalEmbedded(settingsOf({}, { DATABASE_URL: "postgres://a/b" }), true);
});

test("a database URL is shown without any password in it", () => {
  expect(maskUrl("postgres://me:hunter2@db.example:5432/app")).toBe("postgres://me:***@db.example:5432/app");
  expect(maskUrl("postgres://me@db/app?password=hunter2&sslkey=hunter2&x=1")).not.toContain("hunter2");
  expect(maskUrl("postgres://me:hunter2#@%/")).not.toContain("hunter2");
  expect(maskUrl("memory:")).toBe("memory:");
});
