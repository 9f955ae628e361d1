// holdfast queues, workers and janitor: a running server seen and worked on from another process.
import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, makeUsedFolder, run, start, type Running } from "./holdfast.ts";

let server: Running;
beforeAll(async () => {
  server = await start(["dev"], {
    cwd: await makeUsedFolder("data"),
    env: { HOLDFAST_PORT: "0", HOLDFAST_DATA: "data" },
  });
}, 180_000);
afterAll(async () => {
  server.kill("SIGTERM");
  await server.ended;
  await cleanUp();
});

const holdfast = (...args: string[]) => run([...args, "--url", server.ready.url]);

test("workers: who is there, as a table and as JSON", async () => {
  const table = await holdfast("workers");
  expect(table.code, table.stderr).toBe(0);
  expect(table.stdout).toMatch(/^WORKER +RUNNING +HEARD OF +NEXT LEASE ENDS +KINDS\n\S+:\d+ +\d\/10 +.*sample\.hello/);
  const { stdout } = await holdfast("workers", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ workers: [{ concurrency: 10 }], orphans: [] });
});

test("workers: one is drained by its name and resumed by its id; one that is not there is exit code 5", async () => {
  const { stdout } = await holdfast("workers", "--json");
  const { workers } = JSON.parse(stdout) as { workers: { id: string; name: string }[] };
  const { id, name } = workers[0]!;
  const drained = await holdfast("workers", "drain", name);
  expect([drained.code, drained.stdout]).toEqual([0, `${name} takes no more jobs.\n`]);
  expect((await holdfast("workers")).stdout).toMatch(/draining, asked by local\n$/);
  expect((await holdfast("workers", "resume", id)).stdout).toBe(`${name} takes jobs again.\n`);
  expect(await holdfast("workers", "drain", "nobody")).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("There is no worker nobody."),
  });
});

test("queues: paused, listed as such, resumed", async () => {
  expect((await holdfast("queues", "pause", "mail")).stdout).toBe("mail is paused.\n");
  expect((await holdfast("queues", "pause", "mail")).stdout).toBe("mail was paused already.\n");
  const { stdout } = await holdfast("queues");
  expect(stdout).toMatch(/^QUEUE +READY +SCHEDULED +RETRYING +RUNNING +DEAD +PAUSED +OLDEST/);
  expect(stdout).toMatch(/^mail .* paused by local$/m);
  expect((await holdfast("queues", "resume", "mail")).stdout).toBe("mail goes on.\n");
  expect(JSON.parse((await holdfast("queues", "resume", "mail", "--json")).stdout)).toMatchObject({ changed: false });
  expect((await holdfast("queues", "pause", "a b")).code).toBe(2);
});

test("janitor: run, preview, history", async () => {
  const all = await holdfast("janitor", "run", "--json");
  expect(all.code, all.stderr).toBe(0);
  const { results } = JSON.parse(all.stdout) as { results: { chore: string }[] };
  const { chore } = results[0]!;
  const one = await holdfast("janitor", "run", chore);
  expect(one.stdout).toMatch(/^CHORE +TOOK +ROWS/);
  expect(one.stdout).toContain(chore);
  expect((await holdfast("janitor", "preview")).stdout).toMatch(/^CHORE +WOULD REMOVE/);
  expect((await holdfast("janitor")).code).toBe(0);
  expect(JSON.parse((await holdfast("janitor", "history", "--json")).stdout)).toHaveProperty("runs");
});

test("stats: what ran, by queue and outcome; nothing is a sentence", async () => {
  const none = await holdfast("stats", "--queue", "nowhere");
  expect(none).toMatchObject({ code: 0, stdout: "", stderr: "Nothing ran in the last 1h.\n" });
  const job = await holdfast("enqueue", "sample.hello", '{"name":"Ada"}', "--wait", "--ndjson");
  expect(job.code, job.stderr).toBe(0);
  expect(job.stdout.trim().split("\n")).toHaveLength(1);
  await expect
    .poll(async () => (await holdfast("janitor", "run", "add-run-counts"), (await holdfast("stats")).stdout), {
      timeout: 20_000,
    })
    .toMatch(/^QUEUE +OUTCOME +RUNS +WAITED \(AVERAGE\) +RAN \(AVERAGE\)\ndefault +done +\d+ /);
  const [row] = (await holdfast("stats", "--ndjson", "--last", "2h")).stdout.trim().split("\n");
  expect(JSON.parse(row!)).toMatchObject({ queue: "default", outcome: "done", runs: expect.any(Number) });
  expect((await holdfast("stats", "--last", "long")).code).toBe(2);
});

test("--ndjson: one object per line, wherever there is --json", async () => {
  const lines = async (...args: string[]): Promise<object[]> => {
    const { code, stdout, stderr } = await holdfast(...args, "--ndjson");
    expect(code, stderr).toBe(0);
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as object);
  };
  const [jobs, workers, previews, inboxes] = await Promise.all([
    lines("jobs", "list"),
    lines("workers"),
    lines("janitor", "preview"),
    lines("inbox", "stats"),
  ]);
  expect(jobs[0]).toHaveProperty("status");
  expect(workers[0]).toHaveProperty("concurrency");
  expect(previews[0]).toHaveProperty("chore");
  expect(inboxes).toEqual([]);
});

test("errors, dead, actions: what fails in groups, redriven at a rate after a question, put away, listed", async () => {
  const api = async (path: string, body?: object): Promise<unknown> => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return await (await fetch(`${server.ready.url}/api/v1/${path}`, body && init)).json();
  };
  for (let n = 0; n < 3; n += 1) await api("jobs", { kind: "sample.flaky", attempts: 1 });
  const count = async () => ((await api("jobs/count?status=dead")) as { count: number }).count;
  await expect.poll(count).toBe(3);
  await holdfast("janitor", "run", "add-error-counts");

  const [errors, dead, refused, none, wrong] = await Promise.all([
    holdfast("errors"),
    holdfast("dead"),
    holdfast("dead", "redrive"),
    holdfast("dead", "redrive", "--kind", "nobody"),
    holdfast("dead", "redrive", "--rate", "fast"),
  ]);
  expect(errors.stdout).toMatch(/^1H +24H +7D +DEAD .*\n3 +3 +3 +3 +sample\.flaky +\w+ +\S+ +Error: Try 1 was bound/);
  expect(dead.stdout).toMatch(/^JOBS +KIND +QUEUE +FINGERPRINT.*\n3 +sample\.flaky +default +\w+ /);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/Redrive 3 dead jobs\?.*\n.*--yes/)]);
  expect([none.code, none.stderr]).toEqual([0, "No dead job fits; nothing was done.\n"]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("200/m")]);

  const redriven = await holdfast("dead", "redrive", "--error", "bound to fail", "--rate", "100/s", "--yes", "--wait");
  expect(redriven.code, redriven.stderr).toBe(0);
  expect(redriven.stderr).toMatch(/done: 3 of 3 done/);
  const id = redriven.stdout.trim();
  await expect.poll(count).toBe(3);
  const discarded = await holdfast("dead", "discard", "--kind", "sample.flaky", "--yes", "--wait", "--json");
  expect(JSON.parse(discarded.stdout)).toMatchObject({ state: "done", verb: "discard", done: 3 });
  const [actions, shown, stopped, empty] = await Promise.all([
    holdfast("actions"),
    holdfast("actions", "show", id),
    holdfast("actions", "stop", id),
    holdfast("dead"),
  ]);
  expect(actions.stdout).toMatch(
    new RegExp(`^ID +ASKED FOR +BY +WHAT +STATE\\n.*discard.*\\n${id} .*done: 3 of 3 done`),
  );
  expect(shown.stdout).toMatch(/^retry .*\ndone: 3 of 3 done\n$/);
  expect(stopped.code).toBe(6);
  expect([empty.stdout, empty.stderr]).toEqual(["", "No job is dead.\n"]);
});

test("a chore that is none: the names of those that are, exit code 2", async () => {
  const { code, stderr, stdout } = await holdfast("janitor", "run", "sweep");
  expect(code).toBe(2);
  expect(stderr).toContain('There is no chore "sweep".');
  expect(stderr).toContain("purge-audit");
  expect(stdout).toBe("");
});

// Last: its failures would be among those that are counted above.
test("jobs watch: a line for each change until it has ended; exit code 4 if it did not go well", async () => {
  const enqueue = async (...args: string[]): Promise<string> => (await holdfast("enqueue", ...args)).stdout.trim();
  const [flaky, waits] = await Promise.all([enqueue("sample.flaky"), enqueue("sample.flaky", "--delay", "1h")]);
  const watched = await holdfast("jobs", "watch", flaky);
  expect(watched.code, watched.stderr).toBe(0);
  expect(watched.stdout).toMatch(/^retrying.*: Error: Try \d was bound to fail$/m);
  expect(watched.stdout).toMatch(/^Done on try 3 in .*: \{"succeededOnTry":3\}\n$/m);
  expect(await holdfast("jobs", "watch", waits, "--timeout", "200ms")).toMatchObject({
    code: 124,
    stdout: "scheduled\n",
    stderr: expect.stringContaining("is scheduled after 200ms of waiting"),
  });
  await holdfast("jobs", "cancel", waits);
  const ended = await holdfast("jobs", "watch", waits, "--ndjson");
  expect(ended.code).toBe(4);
  expect(JSON.parse(ended.stdout)).toMatchObject({ id: waits, state: "cancelled" });
});
