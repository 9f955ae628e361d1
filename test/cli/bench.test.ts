// holdfast bench, as somebody calls it who wants to know what a database can do.
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { cleanUp, makeFolder, run, spawnHoldfast } from "./holdfast.ts";

afterAll(cleanUp);

const STEPS = [
  "enqueue, one caller",
  "enqueue, 128 callers",
  "enqueueMany, 1,000 a call",
  "work off what waits",
  "enqueue and work at once",
  "from enqueue to start, idle, p50",
  "from enqueue to start, idle, p99",
];

interface Report {
  environment: Record<string, string>;
  figures: { what: string; value: number; unit: string }[];
  jobs: number;
  wrong: number;
}

describe("on a server", () => {
  let database: TestDatabase;
  beforeAll(async () => (database = await createDatabase()));
  afterAll(() => database.drop());

  async function schemas(): Promise<string[]> {
    const client = new Client(database.url);
    await client.connect();
    const { rows } = await client.query<{ nspname: string }>(
      "select nspname from pg_namespace where nspname like 'holdfast%'",
    );
    await client.end();
    return rows.map(({ nspname }) => nspname);
  }

  test("it measures every step, runs each job once, and leaves nothing behind", async () => {
    const { code, stdout, stderr } = await run(["bench", "--seconds", "0.2", "--json"], {
      env: { DATABASE_URL: database.url },
    });
    expect(stderr).toContain("Measuring: enqueue, one caller ...");
    expect(code).toBe(0);
    const report = JSON.parse(stdout) as Report;
    expect(report.figures.map(({ what }) => what)).toEqual(STEPS);
    expect(report.figures.every(({ value }) => value > 0)).toBe(true);
    expect(report).toMatchObject({ wrong: 0, environment: { database: expect.stringMatching(/^PostgreSQL \d/) } });
    expect(report.jobs).toBeGreaterThan(2_000);
    expect(await schemas()).toEqual([]);
  });

  test("Ctrl-C ends it early, and it cleans up all the same", async () => {
    const bench = spawnHoldfast(["bench", "--seconds", "300"], { env: { DATABASE_URL: database.url } });
    await bench.says("Measuring: enqueue, one caller");
    bench.kill("SIGINT");
    expect(await bench.ended).toMatchObject({ code: 130, stdout: expect.stringContaining("each ran once") });
    expect(await schemas()).toEqual([]);
  });
});

test("without a server it measures a new embedded database, not the one in the folder", async () => {
  const cwd = await makeFolder();
  const { code, stdout } = await run(["bench", "--seconds", "0.1"], { cwd });
  expect(code).toBe(0);
  expect(stdout).toMatch(/embedded PostgreSQL \d+\.\d+, fsync \w+/);
  for (const step of STEPS) expect(stdout).toContain(step);
  expect(await run(["jobs", "list"], { cwd })).toMatchObject({ code: 69 });
});

test("a time that is none is refused", async () => {
  expect(await run(["bench", "--seconds", "soon"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--seconds is "soon"'),
  });
});
