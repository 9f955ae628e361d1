// holdfast doctor in a child process, on databases that are well and on some that somebody hurt: what it says, what to do,
// and its exit code.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkNode } from "#src/cli/check-node.js";
import { readHeldSnapshots } from "#src/store/doctor/server-facts.js";
import { openTest, partsOf, type TestHoldfast } from "#src/testing/open-test.js";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { makeKind } from "../support/make.ts";
import { cleanUp, makeFolder, run, start } from "./holdfast.ts";

interface Found {
  check: string;
  status: "ok" | "warning" | "problem";
  message: string;
  fix: string | null;
  repair: { id: string; what: string } | null;
}

afterAll(cleanUp);

describe("on a server", () => {
  let database: TestDatabase;
  let hf: TestHoldfast;
  let client: Client;
  beforeAll(async () => {
    database = await createDatabase();
    hf = await openTest({ database: database.url });
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await hf.close();
    await database.drop();
  });

  async function doctor(
    ...flags: string[]
  ): Promise<{ code: number | null; findings: Found[]; of(check: string): Found }> {
    const cwd = await makeFolder();
    const { code, stdout, stderr } = await run(["doctor", "--json", ...flags], {
      cwd,
      env: { DATABASE_URL: database.url },
    });
    expect(stderr).toBe("");
    const { findings } = JSON.parse(stdout) as { findings: Found[] };
    return { code, findings, of: (check) => findings.find((found) => found.check === check && found.status !== "ok")! };
  }

  test("that is well: every check is there, and the exit code is 0", async () => {
    const worker = await hf.work([makeKind()]);
    await hf.janitor.run();
    const { code, findings } = await doctor();
    // The tests' own server does not wait for the disk, and Node may be old.
    const wrong = findings.filter(({ status, check }) => status === "problem" && check !== "durability");
    expect(wrong).toEqual([]);
    expect(findings.filter(({ message }) => message.includes("could not be checked"))).toEqual([]);
    expect([0, 3]).toContain(code);
    expect(new Set(findings.map(({ check }) => check))).toEqual(
      new Set(
        "node config database version durability autovacuum connections clock notifications rights old-snapshots dead-rows schema history workers failures dead crashes janitor inboxes loops paused kinds".split(
          " ",
        ),
      ),
    );
    expect(findings.find(({ check }) => check === "notifications")!.message).toMatch(/^arrive after [\d.]+ ms$/);
    await worker.stop();
  });

  test("settings that lose what was acknowledged, and tables that nobody vacuums", async () => {
    await client.query(`alter database "${database.name}" set synchronous_commit = off`);
    await client.query("alter table holdfast.jobs set (autovacuum_enabled = off)");
    const { code, of } = await doctor();
    expect(code).toBe(3);
    expect(of("durability")).toMatchObject({
      status: "problem",
      fix: expect.stringContaining("synchronous_commit = on"),
    });
    expect(of("autovacuum")).toMatchObject({ message: "autovacuum leaves jobs alone." });
    await client.query(of("autovacuum").fix!);
    await client.query(`alter database "${database.name}" reset synchronous_commit`);
    expect((await doctor()).of("autovacuum")).toBeUndefined();
  });

  test("an index that somebody dropped, and one that is invalid: the fix mends it", async () => {
    await client.query("drop index holdfast.jobs_claimable");
    await client.query("create index broken on holdfast.jobs (queue)");
    await client.query("update pg_index set indisvalid = false where indexrelid = 'holdfast.broken'::regclass");
    const { code, findings } = await doctor();
    expect(code).toBe(3);
    const wrong = findings.filter(({ check, status }) => check === "schema" && status === "problem");
    expect(wrong.map(({ message }) => message.split(":")[0])).toEqual([
      "The index jobs_claimable is missing",
      "The index broken is invalid",
    ]);
    for (const { fix } of wrong) await client.query(fix!);
    expect((await doctor()).findings.find(({ check }) => check === "schema")).toMatchObject({ status: "ok" });
    await client.query("drop index holdfast.broken");
  });

  test("work that nobody does, a chore that fails, dead jobs, a paused queue, a job that ends its process", async () => {
    const kind = makeKind({ queue: "mail" });
    await hf.enqueue(kind, 1, { runAt: new Date(Date.now() - 60_000) });
    await client.query(
      "update holdfast.chores set failures = 4, error = 'disk full', next_at = now() + interval '1 hour' where name = 'drop-days'",
    );
    await hf.queues.pause("held", { by: "ada" });
    await client.query(
      `insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload, hold, crash_count)
       values (gen_random_uuid(), now(), now(), 5, 0, 'poison', 'mail', '{}', 2, 1)`,
    );
    const { code, of } = await doctor();
    expect(code).toBe(3);
    expect(of("workers")).toMatchObject({
      status: "problem",
      message: "Queue mail has no worker.",
      fix: `Nobody works on ${kind.kind}: start a worker that has this kind. holdfast worker`,
    });
    expect(of("janitor")).toMatchObject({ message: "Chore drop-days failed 4 times in a row: disk full." });
    expect(of("paused")).toMatchObject({
      status: "warning",
      message: "Queue held is paused by ada.",
      fix: expect.stringContaining("holdfast queues resume held"),
    });
    // The overview says the same: there is one set of rules.
    const { verdict, problems } = await hf.problems();
    expect(verdict).toContain("queue mail has no worker; chore drop-days failed 4 times in a row: disk full");
    expect(problems.map((found) => found.code)).toEqual(["no-worker", "crashes", "chore-failing", "paused"]);
    expect(of("crashes")).toMatchObject({
      message: "1 job of poison ran in a process that died; one of them ran alone then, 1 time.",
    });
    await client.query("delete from holdfast.jobs");
    await client.query("update holdfast.chores set failures = 0, error = null");
    await hf.queues.resume("held");
  });

  test("--fix: shows what it would do, wants to be told, does it, and looks again; nothing else is touched", async () => {
    const cwd = await makeFolder();
    const env = { DATABASE_URL: database.url };
    await client.query("drop index holdfast.jobs_claimable");
    await client.query("create index broken on holdfast.jobs (queue)");
    await client.query("update pg_index set indisvalid = false where indexrelid = 'holdfast.broken'::regclass");
    await client.query("alter table holdfast.jobs set (autovacuum_enabled = off)");
    await client.query(
      "update holdfast.chores set failures = 4, error = 'disk full', next_at = now() + interval '1 hour' where name = 'drop-days'",
    );
    await hf.queues.pause("held", { by: "ada" });
    const shown = await run(["doctor"], { cwd, env });
    expect([shown.code, shown.stderr]).toEqual([
      3,
      expect.stringContaining("4 of them can be mended: holdfast doctor --fix"),
    ]);

    const asked = await run(["doctor", "--fix"], { cwd, env });
    expect(asked).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("Give --yes") });
    for (const what of [
      "creates the index jobs_claimable",
      "builds the index broken anew",
      "runs the chore drop-days",
    ]) {
      expect(asked.stderr).toContain(what);
    }
    const still = await client.query("select 1 from pg_class where relname = 'jobs_claimable'");
    expect(still.rowCount).toBe(0);
    expect(await run(["doctor", "--yes"], { cwd, env })).toMatchObject({ code: 2 });

    const mended = await run(["doctor", "--fix", "--yes", "--json"], { cwd, env });
    const { findings, repaired } = JSON.parse(mended.stdout) as { findings: Found[]; repaired: { repair: string }[] };
    expect(repaired.map(({ repair }) => repair).toSorted(), mended.stderr).toEqual([
      "autovacuum jobs",
      "create-index jobs_claimable",
      "rebuild-index broken",
      "run-chore drop-days",
    ]);
    const wrong = findings.filter(
      ({ check, status }) => ["schema", "autovacuum", "janitor"].includes(check) && status === "problem",
    );
    expect(wrong).toEqual([]);
    // What somebody decided stays.
    expect(findings.find(({ check }) => check === "paused")).toMatchObject({ status: "warning", repair: null });
    expect(await run(["doctor", "--fix"], { cwd, env })).toMatchObject({
      stderr: expect.stringContaining("nothing that can be mended from here"),
    });
    await client.query("drop index holdfast.broken");
    await hf.queues.resume("held");
    for (const wrongId of [
      "drop-table jobs",
      "create-index nothing",
      "vacuum jobs; drop table jobs",
      "run-chore nothing",
    ]) {
      await expect(hf.repair(wrongId), wrongId).rejects.toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    }
  });

  test("who holds an old snapshot is named", async () => {
    const holder = new Client({ connectionString: database.url, application_name: "a report" });
    await holder.connect();
    await holder.query("begin isolation level repeatable read; select 1 from pg_class limit 1");
    const { store } = partsOf(hf);
    expect(await readHeldSnapshots(store, 300_000)).toEqual([]);
    expect(await readHeldSnapshots(store, 0)).toContainEqual({
      what: "session",
      name: expect.stringMatching(/^a report \(pid \d+, idle in transaction\)$/),
      forMs: expect.any(Number),
    });
    await holder.end();
  });

  test("a recipient that does not move, and clocks that differ", async () => {
    await hf.inbox("ws-17").put(new Uint8Array(3), { name: "photo.jpg" });
    await hf.clock.advance("1h");
    const { of } = await doctor();
    expect(of("inboxes")).toMatchObject({ status: "problem", message: "Inbox ws-17 has never polled." });
    expect(of("clock")).toMatchObject({
      status: "warning",
      message: expect.stringMatching(
        /^this host and the database differ by (59m|1h).*a runAt that is computed here is off/,
      ),
      fix: expect.stringContaining("NTP"),
    });
    await hf.clock.rewind("1h");
    expect((await doctor()).of("clock")).toBeUndefined();
  });

  test("a role that has not every right: what its owner is to run", async () => {
    const role = `hf_looker_${process.pid}`;
    await client.query(`create role ${role} login password 'looker'`);
    const url = new URL(database.url);
    url.username = role;
    url.password = "looker";
    const { stdout: grants } = await run(["migrate", "--grants", role, "--duty", "view"], {
      cwd: await makeFolder(),
      env: { DATABASE_URL: database.url },
    });
    await client.query(grants);
    const { stdout } = await run(["doctor", "--json"], { cwd: await makeFolder(), env: { DATABASE_URL: url.href } });
    const { findings } = JSON.parse(stdout) as { findings: Found[] };
    expect(findings.find(({ check }) => check === "rights")).toMatchObject({
      status: "warning",
      message: expect.stringMatching(/^This role has not every right that a worker needs \(/),
      fix: expect.stringContaining("holdfast migrate --grants ROLE"),
    });
    await client.query(`drop owned by ${role}; drop role ${role}`);
  });

  test("kinds whose settings do not fit each other", async () => {
    const cwd = await makeFolder();
    await writeFile(
      join(cwd, "holdfast.config.mjs"),
      `import { defineJob } from "holdfast";
       export default { jobs: [defineJob("late", { lease: "1m", timeout: "30s", run() {} })] };`,
    );
    const { stdout } = await run(["doctor", "--json"], { cwd, env: { DATABASE_URL: database.url } });
    const { findings } = JSON.parse(stdout) as { findings: Found[] };
    expect(findings.find(({ check }) => check === "kinds")).toMatchObject({
      status: "warning",
      message: expect.stringContaining('late: timeout is "30s" and lease is "1m"'),
      fix: 'Set lease to "30s" or less, or timeout to "1m" or more.',
    });
  });

  test("a schema that is not there, or old: what to run; a database that is away: exit code 3 too", async () => {
    const cwd = await makeFolder();
    const none = await run(["doctor", "--schema", "nowhere"], { cwd, env: { DATABASE_URL: database.url } });
    expect(none.code).toBe(3);
    expect(none.stdout).toMatch(/✗ schema +The database has no Holdfast schema "nowhere"\./);
    expect(none.stdout).toContain("holdfast migrate");
    const away = await run(["doctor", "--ndjson"], {
      cwd,
      env: { DATABASE_URL: "postgres://me:hunter2@127.0.0.1:9/app" },
    });
    expect(away.code).toBe(3);
    const last = JSON.parse(away.stdout.trim().split("\n").at(-1)!) as Found;
    expect(last).toMatchObject({
      check: "database",
      status: "problem",
      message: expect.stringContaining("cannot be reached"),
    });
    expect(away.stdout + away.stderr).not.toContain("hunter2");
  });
});

test("a configuration with a key that is none", async () => {
  const cwd = await makeFolder();
  await writeFile(join(cwd, "holdfast.config.mjs"), "export default { concurency: 3 };");
  const typo = await run(["doctor"], { cwd });
  expect(typo.code).toBe(3);
  expect(typo.stdout).toMatch(/✗ config +.*concurency.*\n.*→.*concurrency/);
});

test("an embedded database: none yet; one that a server has is looked at through the server", async () => {
  const cwd = await makeFolder();
  const none = await run(["doctor"], { cwd });
  expect(none).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("There is no embedded database in ./.holdfast yet."),
  });
  expect((await run(["doctor", "--strict"], { cwd })).code).toBe(3);
  await mkdir(join(cwd, "data"));
  const env = { HOLDFAST_PORT: "0", HOLDFAST_DATA: "data" };
  const server = await start(["dev"], { cwd, env });
  const well = await run(["doctor", "--json", "--url", server.ready.url], { cwd, env });
  const { findings } = JSON.parse(well.stdout) as { findings: Found[] };
  expect(findings.filter(({ status }) => status === "problem")).toEqual([]);
  expect(well.code).toBe(0);
  expect(findings.map(({ message }) => message)).toContain(`a server has it, and answers at ${server.ready.url}`);
  expect(findings.find(({ check }) => check === "workers")).toMatchObject({ status: "ok" });
  // Through the server it also mends.
  const nothing = await run(["doctor", "--fix", "--yes", "--url", server.ready.url], { cwd, env });
  expect([nothing.code, nothing.stderr]).toEqual([0, expect.stringContaining("nothing that can be mended")]);
  const repair = (id: string) =>
    fetch(`${server.ready.url}/api/v1/doctor/repair`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ repair: id }),
    });
  expect(await (await repair("run-chores")).json()).toMatchObject({
    done: expect.stringMatching(/^\d+ chores ran\.$/),
  });
  expect((await repair("drop everything")).status).toBe(422);
  const elsewhere = await run(["doctor", "--url", "http://127.0.0.1:9"], { cwd, env });
  expect(elsewhere.code).toBe(3);
  expect(elsewhere.stdout).toMatch(/✗ database +.*No server answers/);
  server.kill("SIGTERM");
  await server.ended;
  const alone = await run(["doctor"], { cwd, env });
  expect(alone.stdout).toMatch(/✓ durability +embedded: survives the death of the process/);
}, 120_000);

test("Node: too old, past its end, and well", () => {
  const today = new Date("2026-11-16");
  expect(checkNode("20.18.0", today)).toMatchObject({ status: "problem" });
  expect(checkNode("20.19.0", today)).toMatchObject({
    status: "warning",
    message: expect.stringContaining("2026-04-30"),
  });
  expect(checkNode("20.19.0", new Date("2026-04-01"))).toMatchObject({ status: "ok" });
  expect(checkNode("24.1.0", today)).toMatchObject({ status: "ok" });
});
