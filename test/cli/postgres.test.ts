// The command line on a real PostgreSQL: unreachable, migrated by hand, and served by two processes.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { cleanUp, makeFolder, run, start } from "./holdfast.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(async () => {
  await cleanUp();
  await database.drop();
});

describe("a database that cannot be had", () => {
  test("unreachable: the host is named, the password is not, exit code 69", async () => {
    for (const command of ["start", "worker", "migrate"]) {
      const env = { DATABASE_URL: "postgres://me:hunter2@127.0.0.1:9/app", HOLDFAST_PORT: "0" };
      const { code, stderr, stdout } = await run([command], { env, cwd: await makeFolder() });
      expect(code, command).toBe(69);
      expect(stderr).toContain("PostgreSQL at 127.0.0.1:9/app cannot be reached");
      expect(stdout + stderr).not.toContain("hunter2");
    }
  });

  test("a database that does not exist: PostgreSQL's own words, and what to do", async () => {
    const env = { DATABASE_URL: database.url.replace(database.name, "hf_nowhere"), HOLDFAST_PORT: "0" };
    const { code, stderr } = await run(["start"], { env, cwd: await makeFolder() });
    expect(code).toBe(69);
    expect(stderr).toContain('database \\"hf_nowhere\\" does not exist');
    expect(stderr).toContain("Create the database first");
  });
});

test("migrate --grants prints what a role needs, and changes nothing; a duty that is none is refused", async () => {
  const env = { DATABASE_URL: "postgres://nobody@127.0.0.1:9/app", HOLDFAST_SCHEMA: "jobs" };
  const { code, stdout, stderr } = await run(["migrate", "--grants", 'o"dd', "--duty", "view"], { env });
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('grant select on all tables in schema "jobs" to "o""dd";');
  expect(stdout).not.toContain("insert");
  expect((await run(["migrate", "--grants", "x", "--duty", "rule"], { env })).code).toBe(2);
  expect(await run(["migrate", "--grants", ""], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("role"),
  });
});

describe("migrate", () => {
  const env = () => ({ DATABASE_URL: database.url, HOLDFAST_SCHEMA: "by command" });

  test("says what it did; a second time there is nothing to do; --status agrees", async () => {
    const before = await run(["migrate", "--status"], { env: env() });
    expect(before).toMatchObject({ code: 1, stdout: 'The database has no Holdfast schema "by command".\n' });
    const first = await run(["migrate"], { env: env() });
    expect(first.code, first.stderr).toBe(0);
    expect(first.stdout).toMatch(/^Schema "by command" went from version 0 to \d+\.\n$/);
    expect(first.stderr).toContain("Applied ");
    expect((await run(["migrate"], { env: env() })).stdout).toContain("was already up to date");
    expect(await run(["migrate", "--status"], { env: env() })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("is up to date"),
    });
  });

  test("with migrate: false in the file nothing but `holdfast migrate` changes the schema", async () => {
    const cwd = await makeFolder();
    await writeFile(join(cwd, "holdfast.config.json"), '{ "migrate": false, "poolSize": 3, "callTimeout": "4s" }');
    const here = { cwd, env: { DATABASE_URL: database.url, HOLDFAST_SCHEMA: "one step" } };
    for (const command of [
      ["worker", "--once"],
      ["token", "list"],
    ]) {
      const { code, stderr } = await run(command, here);
      expect([code, stderr]).toEqual([1, expect.stringContaining("no Holdfast schema")]);
    }
    expect((await run(["migrate", "--status"], here)).code).toBe(1);
    expect((await run(["migrate"], here)).code).toBe(0);
    expect((await run(["worker", "--once"], here)).code).toBe(0);
    expect((await run(["config"], here)).stdout).toMatch(/^migrate +false +holdfast\.config\.json$/m);
  });

  test("--print needs no database, and what it prints makes a schema that is up to date", async () => {
    const schema = { HOLDFAST_SCHEMA: 'by "hand"' };
    const printed = await run(["migrate", "--print"], { env: { ...schema, DATABASE_URL: "postgres://127.0.0.1:9/x" } });
    expect(printed.code).toBe(0);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(printed.stdout);
    await client.end();
    const status = await run(["migrate", "--status"], { env: { ...schema, DATABASE_URL: database.url } });
    expect(status.stdout).toContain("is up to date");
  });
});

test("start and worker share the work; both stop cleanly", async () => {
  const env = {
    DATABASE_URL: database.url,
    HOLDFAST_PORT: "0",
    HOLDFAST_TOKEN: "a-token-for-tests",
    NODE_ENV: "production",
  };
  const cwd = await makeFolder();
  const server = await start(["start"], { cwd, env });
  const worker = await start(["worker", "--health-port", "0"], { cwd, env });
  expect(server.ready).toMatchObject({ tier: "server" });
  // It answers those who look after it, and nobody else.
  const answers = ["/livez", "/readyz", "/healthz", "/metrics", "/api/v1/jobs", "/"].map(
    async (path) => (await fetch(`${worker.ready.url}${path}`)).status,
  );
  expect(await Promise.all(answers)).toEqual([200, 200, 200, 401, 401, 401]);
  const known = { headers: { authorization: `Bearer ${env.HOLDFAST_TOKEN}` } };
  expect((await fetch(`${worker.ready.url}/metrics`, known)).status).toBe(200);
  expect((await fetch(`${worker.ready.url}/api/v1/jobs`, known)).status).toBe(404);
  const { code, stderr } = await run(
    ["enqueue", "sample.hello", '{"name":"Ada"}', "--wait", "--url", server.ready.url],
    { env: { HOLDFAST_TOKEN: env.HOLDFAST_TOKEN } },
  );
  expect(code, stderr).toBe(0);
  worker.kill("SIGTERM");
  server.kill("SIGTERM");
  expect((await worker.ended).code).toBe(0);
  expect((await server.ended).code).toBe(0);
});
