// What the command line says to wrong input, before it does anything: sentences that name the thing, and exit codes.
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { cleanUp, makeFolder, run } from "./holdfast.ts";

afterAll(cleanUp);

test("help: without a command; --version; a mistyped command is suggested", async () => {
  const [none, version, help, typo] = await Promise.all([
    run([]),
    run(["--version"]),
    run(["enqueue", "--help"]),
    run(["enqeue"]),
  ]);
  expect(none).toMatchObject({ code: 0, stdout: expect.stringContaining("Examples:") });
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining("@file") });
  expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean enqueue?") });
});

/** Writes the address of each module that is loaded, on a line. */
const TELL = `import { register } from "node:module"; register("data:text/javascript,${encodeURIComponent(
  `export async function resolve(name, context, next) {
    const found = await next(name, context);
    process._rawDebug(found.url);
    return found;
  }`,
)}");`;

test("a command that only says something loads neither the database nor the server", async () => {
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(TELL)}` };
  const { code, stderr } = await run(["--version"], { env });
  const loaded = stderr.split("\n");
  expect([code, loaded.some((url) => url.endsWith("/dist/cli/main.js"))]).toEqual([0, true]);
  const packages = loaded.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]);
  expect([...new Set(packages)].filter((name) => name !== undefined)).toEqual(["commander"]);
  expect(loaded.filter((url) => /\/dist\/(open|client\/client|http\/handler)\.js$/.test(url))).toEqual([]);
});

test.each<[string[], string]>([
  [["jobs", "wach", "x"], "unknown command 'wach'\n(Did you mean watch?)"],
  [["queues", "puase", "mail"], "(Did you mean pause?)"],
  [["config", "prnt"], "(Did you mean print?)"],
  [["inbox", "pul", "ws-17"], "(Did you mean one of pull, put?)"],
  [["jobs", "list", "--knd", "mail.send"], "(Did you mean --kind?)"],
  [["jobs", "list", "more"], "too many arguments"],
])("a slip of the pen in %j is named, with what was meant; nothing on stdout", async (args, text) => {
  const { code, stdout, stderr } = await run(args, { env: { HOLDFAST_URL: "http://127.0.0.1:9" } });
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(text)]);
});

test("the help of a group says what it is for, and lists what it can do", async () => {
  const { code, stdout } = await run(["dead", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/Dead jobs by what killed them; redrive them, or put them away\.\n[^]*redrive \[options\]/);
});

test("completion: a script for each shell, and what may come next", async () => {
  for (const shell of ["bash", "zsh", "fish", "powershell"]) {
    const { code, stdout } = await run(["completion", shell]);
    expect(code).toBe(0);
    expect(stdout).toContain("holdfast __complete");
  }
  expect(await run(["completion", "tcsh"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("bash, zsh, fish or powershell"),
  });
  const next = async (...words: string[]) => (await run(["__complete", ...words])).stdout.split("\n").slice(0, -1);
  expect(await next("j")).toEqual(["janitor", "jobs"]);
  expect(await next("jobs", "")).toEqual(expect.arrayContaining(["cancel", "list", "retry"]));
  // As PowerShell says that nothing is there yet.
  expect(await next("jobs", "''")).toEqual(await next("jobs", ""));
  expect(await next("jobs", "list", "--s")).toEqual(["--state", "--status"]);
  expect(await next("jobs", "list", "--")).toContain("--ndjson");
  expect(await next("migrate", "--duty", "")).toEqual(["work", "enqueue", "view"]);
  expect(await next("jobs", "list", "--state", "")).toEqual([]);
});

test("in bash, the script completes", async ({ skip }) => {
  const { stdout: script } = await run(["completion", "bash"]);
  const cwd = await makeFolder();
  const main = new URL("../../dist/cli/main.js", import.meta.url).pathname;
  await writeFile(join(cwd, "holdfast"), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 });
  const ask = `${script}\nCOMP_WORDS=(holdfast queues pa); COMP_CWORD=2; _holdfast; echo "\${COMPREPLY[@]}"`;
  const { status, stdout, error } = spawnSync("bash", ["-c", ask], {
    env: { ...process.env, PATH: `${cwd}:${process.env["PATH"]}` },
  });
  if (error) skip("bash is not installed");
  expect(status).toBe(0);
  expect(stdout.toString().trim()).toBe("pause");
});

test("a server that cannot start says why in one line, as JSON away from a terminal", async () => {
  const cwd = await makeFolder();
  const [port, open, log] = await Promise.all([
    run(["dev"], { cwd, env: { HOLDFAST_PORT: "seventy" } }),
    run(["start"], { cwd, env: { HOLDFAST_HOST: "0.0.0.0", HOLDFAST_PORT: "0" } }),
    run(["dev", "--log", "xml"], { cwd }),
  ]);
  expect(port.code).toBe(2);
  expect(JSON.parse(port.stderr)).toMatchObject({ level: "error", message: 'HOLDFAST_PORT is "seventy".' });
  expect(open.code).toBe(2);
  expect(JSON.parse(open.stderr)).toMatchObject({
    message: "The host 0.0.0.0 can be reached by other machines, and there is no token.",
    hint: expect.stringContaining("HOLDFAST_TOKEN"),
  });
  expect(log).toMatchObject({ code: 2, stderr: expect.stringContaining('--log is "xml".') });
});

test("config shows every value with its source, and no secret", async () => {
  const cwd = await makeFolder();
  await writeFile(
    join(cwd, "holdfast.config.ts"),
    `import { defineJob } from "holdfast";
     interface Mail { to: string }
     const send = defineJob<Mail>("mail.send", { run: (job) => job.payload.to });
     export default async () => ({ jobs: [send], concurrency: 3, port: 7000, schema: "jobs" });`,
  );
  const env = {
    DATABASE_URL: "postgres://me:hunter2@db.example/app?sslpassword=hunter3",
    HOLDFAST_TOKEN: "hunter4-hunter4",
    HOLDFAST_PORT: "7001",
  };
  const [json, text] = await Promise.all([
    run(["config", "--json", "--host", "localhost"], { cwd, env }),
    run(["config"], { cwd, env }),
  ]);
  expect(json.code).toBe(0);
  expect(json.stdout + text.stdout).not.toContain("hunter");
  const { configFile, settings } = JSON.parse(json.stdout) as { configFile: string; settings: unknown };
  expect(configFile).toBe("holdfast.config.ts");
  expect(settings).toMatchObject({
    database: { value: "postgres://me:***@db.example/app?sslpassword=***", source: "DATABASE_URL" },
    port: { value: 7001, source: "HOLDFAST_PORT" },
    host: { value: "localhost", source: "--host" },
    schema: { value: "jobs", source: "holdfast.config.ts" },
    concurrency: { value: 3, source: "holdfast.config.ts" },
    token: { source: "HOLDFAST_TOKEN" },
    data: { value: "./.holdfast", source: "default" },
    jobs: { value: ["mail.send"], source: "holdfast.config.ts" },
  });
  expect(text.stdout).toMatch(/^port +7001 +HOLDFAST_PORT$/m);
});

test("a wrong option in a defineJob() of the configuration file is told with its own hint", async () => {
  const cwd = await makeFolder();
  const text = 'import { defineJob } from "holdfast"; export default { jobs: [defineJob("a b", { run() {} })] };';
  await writeFile(join(cwd, "holdfast.config.mjs"), text);
  const { code, stderr } = await run(["config"], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('holdfast.config.mjs cannot be loaded: The job kind is "a b".');
  expect(stderr).toContain("Use 1 to 128 letters, digits");
});

describe("enqueue", () => {
  test.each([
    [["greet", "{name:Ada}"], "The payload is not JSON"],
    [["greet", "@nowhere.json"], "The file nowhere.json cannot be read: it is not there."],
    [["greet", '{"id":9007199254740993}'], "9007199254740993, which JavaScript cannot keep exactly."],
    [["greet", "{}", "--priority", "high"], '--priority is "high".'],
    [["greet", "{}", "--timeout", "5s"], "--timeout is given without --wait."],
    [[], "missing required argument 'kind'"],
    [["greet", "-"], "What came from stdin is not JSON"],
  ])("%o", async (args, message) => {
    const { code, stdout, stderr } = await run(["enqueue", ...args], { cwd: await makeFolder(), stdin: "oops" });
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain(message);
  });

  test("where no server is: what to do, and exit code 69", async () => {
    const { code, stdout, stderr } = await run(["enqueue", "greet", "{}", "--url", "http://127.0.0.1:9"]);
    expect(code).toBe(69);
    expect(stdout).toBe("");
    expect(stderr).toContain("No server answers at http://127.0.0.1:9.");
    expect(stderr).toContain("npx holdfast dev");
  });
});
