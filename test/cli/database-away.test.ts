// A running server loses its database and gets it back: what commands say meanwhile, and that nothing has to be done.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { cleanUp, makeFolder, type Output, run, type Running, start } from "./holdfast.ts";

const TOKEN = { HOLDFAST_TOKEN: "a-token-for-tests" };
let database: TestDatabase;
let network: TcpProxy;
let server: Running;
let cwd: string;
beforeAll(async () => {
  database = await createDatabase();
  network = await startTcpProxy(database.url);
  cwd = await makeFolder();
  const env = { ...TOKEN, HOLDFAST_PORT: "0", DATABASE_URL: network.through(database.url) };
  server = await start(["start"], { cwd, env });
});
afterAll(async () => {
  await cleanUp();
  await network.close();
  await database.drop();
});

const holdfast = (...args: string[]): Promise<Output> =>
  run(args, { cwd, env: { ...TOKEN, HOLDFAST_URL: server.ready.url } });

test("away: exit code 75 from a server without its database, 69 without the server, 3 from the doctor; back: all is well", async () => {
  const waiting = holdfast("enqueue", "sample.slow", "--wait", "--timeout", "25s");
  await expect.poll(async () => (await holdfast("jobs", "--state", "running")).stdout).toContain("sample.slow");
  await network.refuse(true);
  network.cut();
  const commands = [["jobs"], ["queues"], ["batches"], ["workers"], ["enqueue", "sample.slow"], ["inbox", "stats"]];
  const away = await Promise.all(commands.map((args) => holdfast(...args)));
  for (const [index, { code, stdout, stderr }] of away.entries()) {
    expect([code, stdout], `${commands[index]!.join(" ")}: ${stderr}`).toEqual([75, ""]);
    expect(stderr).toMatch(/^Error: .*(cannot be reached|did not confirm).*\(HOLDFAST_DATABASE_UNAVAILABLE\)\n {2}\S/);
  }
  const doctor = await run(["doctor"], { cwd, env: { DATABASE_URL: network.through(database.url) } });
  expect(doctor.code).toBe(3);
  expect(doctor.stdout).toMatch(/✗ database +.*cannot be reached/);
  expect((await fetch(`${server.ready.url}/readyz`)).status).toBe(503);

  await network.refuse(false);
  await expect.poll(async () => (await holdfast("jobs")).code, { timeout: 15_000 }).toBe(0);
  // The wait went on over the gap; the job did too, or ran again: nobody had to do anything.
  expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
  server.kill("SIGTERM");
  await server.ended;
  const gone = await holdfast("jobs");
  expect([gone.code, gone.stderr]).toEqual([69, expect.stringContaining(`No server answers at ${server.ready.url}.`)]);
}, 60_000);
