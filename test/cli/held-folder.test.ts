// Commands in a folder whose embedded database a running server has: nobody tells them where it is, and each talks to it
// over HTTP. What cannot be done over HTTP says so, with a code.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  cleanUp,
  makeFolder,
  makeUsedFolder,
  type Output,
  run,
  type Running,
  spawnHoldfast,
  start,
} from "./holdfast.ts";

let cwd: string;
let server: Running;
beforeAll(async () => {
  cwd = await makeUsedFolder();
  // A port that no command could guess.
  server = await start(["dev"], { cwd, env: { HOLDFAST_PORT: "0" } });
}, 180_000);
afterAll(cleanUp);

const holdfast = (...args: string[]): Promise<Output> => run(args, { cwd });
const nobody = "01a1e299-0e62-7000-b7d8-b9cc8b876cb7";

test.concurrent.each<[string, string[], RegExp]>([
  ["enqueue", ["enqueue", "sample.hello", '{"name":"Ada"}', "--wait", "--json"], /"greeting": "Hello, Ada!"/],
  ["jobs", ["jobs", "list"], /There are no such jobs|^ID +STATUS/],
  ["batches", ["batches", "create", "sample.check", "--wait"], /0 of 0/],
  ["queues", ["queues", "pause", "mail"], /^mail is paused/],
  ["workers", ["workers"], /^WORKER +RUNNING/],
  ["stats", ["stats", "--json"], /"runs":/],
  ["janitor", ["janitor", "run", "remove-dead-workers"], /remove-dead-workers +\d+ms/],
  ["inbox", ["inbox", "put", "ws-17", "-"], /^[0-9a-f-]{36}\n/],
  ["token", ["token", "create", "--name", "me"], /^hf_/],
  ["doctor", ["doctor"], /✓ database +a server has it, and answers at http:\/\/127\.0\.0\.1:\d+/],
  ["config", ["config"], /^url +http:\/\/127\.0\.0\.1:\d+ +the server that has \.\/\.holdfast$/m],
])("%s", async (_, args, says) => {
  const { code, stdout, stderr } = await run(args, { cwd, stdin: args[0] === "inbox" ? "bytes" : "" });
  expect(code, stderr).toBe(0);
  expect(`${stdout}${stderr}`).toMatch(says);
});

test("what is not there is the server's answer, not a failure to find it", async () => {
  expect(await holdfast("jobs", "show", nobody)).toMatchObject({ code: 5, stderr: expect.stringContaining(nobody) });
});

test.each<[string[], string]>([
  [["migrate"], "Migrating works on the database itself, and cannot be done over HTTP. (HOLDFAST_FOLDER_LOCKED)"],
  [["migrate", "--status"], "(HOLDFAST_FOLDER_LOCKED)"],
  [["dev", "--port", "0"], "It serves HTTP at http://127.0.0.1:"],
])("%j cannot go over HTTP: exit code 75", async (args, text) => {
  const { code, stdout, stderr } = await holdfast(...args);
  expect([code, stdout, stderr]).toEqual([75, "", expect.stringContaining(text)]);
});

test("an app's command that opens the database says so as well", async () => {
  const app = await makeFolder();
  await writeFile(
    join(app, "holdfast.config.mjs"),
    `import { defineApp } from "holdfast";
     const commands = [
       { name: "shop count", summary: "counts", run: async ({ open }) => void (await open()) },
       { name: "shop where", summary: "says where", run: ({ server, print }) => print(server.url) },
     ];
     export default { data: ${JSON.stringify(join(cwd, ".holdfast"))}, apps: [defineApp({ name: "shop", commands })] };`,
  );
  const [count, where, jobs] = await Promise.all(
    [["shop", "count"], ["shop", "where"], ["queues"]].map((args) => run(args, { cwd: app })),
  );
  expect([count!.code, count!.stderr]).toEqual([
    75,
    expect.stringMatching(/The command "count" works on the database itself.* \(HOLDFAST_FOLDER_LOCKED\)/),
  ]);
  // The configuration file says which folder it is.
  expect(where).toMatchObject({ code: 0, stdout: `${server.ready.url}\n` });
  expect(jobs).toMatchObject({ code: 0 });
});

test(
  "a holder that serves no HTTP is named, exit code 75; what somebody names is asked",
  { timeout: 60_000 },
  async () => {
    const own = await makeFolder();
    await writeFile(
      join(own, "holds.mjs"),
      `import { open } from ${JSON.stringify(new URL("../../dist/index.js", import.meta.url).href)};
     const hf = await open();
     process.stderr.write("holds");
     setInterval(() => hf, 1000);`,
    );
    const holder = spawnHoldfast([], { cwd: own }, join(own, "holds.mjs"));
    await holder.says("holds");
    const [found, named] = await Promise.all([
      run(["jobs"], { cwd: own }),
      run(["jobs"], { cwd: own, env: { HOLDFAST_URL: server.ready.url } }),
    ]);
    expect(found.code).toBe(75);
    expect(found.stderr).toMatch(
      new RegExp(`in use by process ${holder.pid} .*serves no HTTP.*HOLDFAST_FOLDER_LOCKED`),
    );
    expect(named.code, named.stderr).toBe(0);
    holder.kill("SIGKILL");
    await holder.ended;
    // Nobody has it any more: the default address.
    const gone = await run(["jobs"], { cwd: own, env: { HOLDFAST_PORT: "1" } });
    expect([gone.code, gone.stderr]).toEqual([69, expect.stringContaining("No server answers at http://127.0.0.1:1.")]);
  },
);
