// holdfast queues, workers and janitor: a running server seen and worked on from another process.
import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, makeFolder, run, start, type Running } from "./holdfast.ts";

let server: Running;
beforeAll(async () => {
  server = await start(["dev"], { cwd: await makeFolder(), env: { HOLDFAST_PORT: "0", HOLDFAST_DATA: "data" } });
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

test("a chore that is none: the names of those that are, exit code 2", async () => {
  const { code, stderr, stdout } = await holdfast("janitor", "run", "sweep");
  expect(code).toBe(2);
  expect(stderr).toContain('There is no chore "sweep".');
  expect(stderr).toContain("purge-audit");
  expect(stdout).toBe("");
});
