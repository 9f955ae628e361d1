// A whole round with `holdfast dev` on the samples: what it says, and the client commands against it.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { cleanUp, makeFolder, run, type Running, start } from "./holdfast.ts";

let dev: Running;
let cwd: string;
let database: TestDatabase;
const token = "token-of-the-test";
const holdfast = (...args: string[]) => run(args, { cwd, env: { HOLDFAST_URL: dev.ready.url, HOLDFAST_TOKEN: token } });

beforeAll(async () => {
  cwd = await makeFolder();
  database = await createDatabase();
  dev = await start(["dev", "--port", "0"], { cwd, env: { DATABASE_URL: database.url, HOLDFAST_TOKEN: token } });
});
afterAll(async () => {
  await cleanUp();
  await database.drop();
});

const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}\n$/;

describe("enqueue", () => {
  test("--wait: the id on stdout, the result for people on stderr", async () => {
    const { code, stdout, stderr } = await holdfast("enqueue", "sample.hello", '{"name":"Ada"}', "--wait");
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(ID);
    expect(stderr).toContain('{"greeting":"Hello, Ada!"}');
  });

  test("the payload from a file and from stdin", async () => {
    await writeFile(join(cwd, "ada.json"), '{"name":"Ada from a file"}');
    const file = await holdfast("enqueue", "sample.hello", "@ada.json", "--wait", "--json");
    expect(JSON.parse(file.stdout)).toMatchObject({ state: "done", result: { greeting: "Hello, Ada from a file!" } });
    const env = { HOLDFAST_URL: dev.ready.url, HOLDFAST_TOKEN: token };
    const stdin = await run(["enqueue", "sample.hello", "-"], { env, stdin: '{"name":"Ada"}' });
    expect(stdin).toMatchObject({ code: 0, stdout: expect.stringMatching(ID) });
  });

  test("a known key is the same job; another payload under it is exit code 6", async () => {
    const args = ["enqueue", "sample.hello", '{"name":"Ada"}', "--key", "k"];
    const first = await holdfast(...args);
    const second = await holdfast(...args, "--json");
    expect(JSON.parse(second.stdout)).toMatchObject({ id: first.stdout.trim(), created: false, conflict: false });
    expect(second.stderr).toContain('The key "k" was known');
    const other = await holdfast("enqueue", "sample.hello", '{"name":"Bob"}', "--key", "k");
    expect(other).toMatchObject({ code: 6, stdout: first.stdout });
    expect(other.stderr).toContain("the first one stays");
  });

  test("what the server refuses is told with the place, exit code 2", async () => {
    const [payload, kind] = await Promise.all([
      holdfast("enqueue", "sample.hello", "{}"),
      holdfast("enqueue", "sample.helo", "{}"),
    ]);
    expect(payload).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("name: must be a text") });
    expect(kind).toMatchObject({ code: 2, stderr: expect.stringContaining("Known kinds: sample.hello") });
  });

  test("without the token: exit code 1, and where to put it", async () => {
    const { code, stderr } = await run(["jobs"], { env: { HOLDFAST_URL: dev.ready.url } });
    expect(code).toBe(1);
    expect(stderr).toContain("Set HOLDFAST_TOKEN");
  });
});

describe("waiting", () => {
  test("a wait that is too short is exit code 124; a job cancelled meanwhile is exit code 4", async () => {
    const short = await holdfast(
      "enqueue",
      "sample.hello",
      '{"name":"Ada"}',
      "--delay",
      "1h",
      "--wait",
      "--timeout",
      "200ms",
    );
    expect(short.code).toBe(124);
    expect(short.stderr).toContain("is scheduled after 200ms of waiting");
    const id = short.stdout.trim();

    const waiting = holdfast("enqueue", "sample.slow", "--key", "slow", "--wait");
    const slow = await untilListed("sample.slow", "running");
    expect(await holdfast("jobs", "cancel", slow, id)).toMatchObject({
      code: 0,
      stdout: `${slow} is running; its worker was told to stop it.\n${id} is cancelled.\n`,
    });
    expect(await waiting).toMatchObject({ code: 4, stdout: `${slow}\n`, stderr: "Cancelled.\n" });
  });

  async function untilListed(kind: string, state: string): Promise<string> {
    for (;;) {
      const { stdout } = await holdfast("jobs", "list", "--kind", kind, "--state", state, "--json");
      const { jobs } = JSON.parse(stdout) as { jobs: { id: string }[] };
      if (jobs[0]) return jobs[0].id;
    }
  }
});

describe("jobs", () => {
  test("list is a table, show is a page, both are JSON if asked", async () => {
    const { stdout: id } = await holdfast("enqueue", "sample.flaky", "--wait");
    const [list, show, json] = await Promise.all([
      holdfast("jobs", "--kind", "sample.flaky"),
      holdfast("jobs", "show", id.trim()),
      holdfast("jobs", "show", id.trim(), "--json"),
    ]);
    expect(list.stdout.split("\n")[0]).toMatch(/^ID +STATUS +KIND +QUEUE +TRY +CREATED/);
    expect(list.stdout).toContain(id.trim());
    expect(show.stdout).toMatch(/^try +3 of 5$/m);
    expect(show.stdout).toContain("Try 2 was bound to fail");
    expect(JSON.parse(json.stdout)).toMatchObject({ state: "done", attempts: [{ attempt: 1 }, { attempt: 2 }] });
  });

  test("show keeps every digit, and says what caused the last error, and what caused that", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    const error = { name: "Error", message: "no answer", cause: { name: "Error", message: "ECONNREFUSED" } };
    const { rows } = await client.query<{ id: string }>(
      `with made as (select id from holdfast.enqueue('sample.hello', '{"n": 9007199254740993}', delay => '1h'))
       select id from made`,
    );
    const { id } = rows[0]!;
    await client.query("update holdfast.jobs set last_error = $2 where id = $1", [id, JSON.stringify(error)]);
    await client.end();
    const { stdout } = await holdfast("jobs", "show", id);
    expect(stdout).toMatch(/^payload +\{"n": 9007199254740993\}$/m);
    expect(stdout).toMatch(/^last error +Error: no answer\ncaused by +Error: ECONNREFUSED$/m);
  });

  test("exit codes: 5 for nobody, 6 for a state that does not allow it, 2 for what is no id", async () => {
    const { stdout } = await holdfast("enqueue", "sample.hello", '{"name":"Ada"}', "--wait");
    const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";
    const [missing, conflict, wrong] = await Promise.all([
      holdfast("jobs", "show", nobody),
      holdfast("jobs", "retry", stdout.trim()),
      holdfast("jobs", "discard", "x"),
    ]);
    expect(missing).toMatchObject({ code: 5, stderr: expect.stringContaining(`There is no job ${nobody}.`) });
    expect(conflict).toMatchObject({ code: 6, stderr: expect.stringContaining("is done and cannot be retried") });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('The job id is "x".') });
  });
});

test("it says where the data is, what that promises, and how to try it", () => {
  expect(dev.ready).toMatchObject({
    data: database.url,
    tier: "server",
    kinds: ["sample.hello", "sample.slow", "sample.flaky", "sample.check"],
  });
  expect(dev.ready.try[0]).toBe(`npx holdfast enqueue sample.hello '{"name":"Ada"}' --wait --url ${dev.ready.url}`);
  expect(dev.ready.try[1]).toContain('-H "authorization: Bearer $HOLDFAST_TOKEN"');
  expect(dev.stderr).not.toContain(token);
});
