// What the command line says to wrong input, before it does anything: sentences that name the thing, and exit code 2.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { cleanUp, makeFolder, run } from "./holdfast.ts";

afterAll(cleanUp);

describe("help", () => {
  test("without a command, the commands and examples", async () => {
    const { code, stdout } = await run([]);
    expect(code).toBe(0);
    for (const name of ["dev", "start", "worker", "migrate", "enqueue", "jobs", "config"]) {
      expect(stdout).toMatch(new RegExp(`^  ${name}`, "m"));
    }
    expect(stdout).toContain("Examples:");
  });

  test("--version and --help succeed; a mistyped command is suggested", async () => {
    const [version, help, typo] = await Promise.all([run(["--version"]), run(["enqueue", "--help"]), run(["enqeue"])]);
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    expect(help.stdout).toContain("@file");
    expect(typo.code).toBe(2);
    expect(typo.stderr).toContain("Did you mean enqueue?");
  });
});

describe("the environment", () => {
  test.each<[Record<string, string>, string]>([
    [{ HOLDFAST_PORT: "seventy" }, 'HOLDFAST_PORT is "seventy".'],
    [{ HOLDFAST_PORT: "70000" }, 'HOLDFAST_PORT is "70000".'],
    [{ HOLDFAST_HOST: "http://localhost" }, 'HOLDFAST_HOST is "http://localhost", which is not a host.'],
    [{ HOLDFAST_HOST: "localhost:7070" }, "HOLDFAST_PORT"],
    [{ HOLDFAST_SCHEMA: "pg_x" }, 'HOLDFAST_SCHEMA is "pg_x", which cannot name a schema.'],
    [{ HOLDFAST_TOKEN: "two words" }, "HOLDFAST_TOKEN holds a space"],
    [{ HOLDFAST_URL: "localhost:7070" }, 'HOLDFAST_URL is "localhost:7070".'],
    [{ DATABASE_URL: "mysql://root:hunter2@db/x" }, "DATABASE_URL is not a database URL."],
    [{ HOLDFAST_DATABASE_URL: "hunter2" }, "HOLDFAST_DATABASE_URL is not a database URL."],
    [{ NODE_ENV: "production" }, "NODE_ENV is production, and no database is configured."],
    [{ HOLDFAST_HOST: "0.0.0.0" }, "can be reached by other machines, and there is no token."],
  ])("%o", async (env, message) => {
    const { code, stderr, stdout } = await run(["start"], { env, cwd: await makeFolder() });
    expect(code).toBe(2);
    const said = JSON.parse(stderr.trim().split("\n").at(-1)!) as { level: string; message: string; hint: string };
    expect(said.level).toBe("error");
    expect(`${said.message} ${said.hint}`).toContain(message);
    expect(said.hint).not.toBe("");
    expect(stdout + stderr).not.toContain("hunter2");
  });

  test("flags are checked by the same rules", async () => {
    for (const [flag, value] of [
      ["--port", "x"],
      ["--concurrency", "0"],
      ["--grace", "25"],
      ["--log", "xml"],
    ] as const) {
      const { code, stderr } = await run(["dev", flag, value]);
      expect(code).toBe(2);
      expect(stderr).toContain(flag);
    }
  });
});

describe("the configuration file", () => {
  async function load(text: string, name = "holdfast.config.ts") {
    const cwd = await makeFolder();
    await writeFile(join(cwd, name), text);
    return run(["config"], { cwd });
  }

  test.each([
    ["export default { jobz: [] };", 'holdfast.config.ts has the unknown option "jobz".', 'Did you mean "jobs"?'],
    ["export default { jobs: {} };", "holdfast.config.ts has jobs that are not a list.", ""],
    ["export default { jobs: [{}] };", "holdfast.config.ts has no job kind at jobs[0].", "defineJob()"],
    ["export const jobs = [];", "does not export a configuration.", "export default"],
    ["export default {", "holdfast.config.ts cannot be loaded", ""],
    ['throw new Error("my mistake");', "holdfast.config.ts cannot be loaded: my mistake", "holdfast.config.ts:1"],
    ["export default { port: 'x' };", 'port in holdfast.config.ts is "x".', "from 1 to 65535"],
    [
      'import { defineJob } from "holdfast"; export default { jobs: [defineJob("a b", { run() {} })] };',
      'The job kind is "a b".',
      "letters, digits",
    ],
    [
      'import { defineJob } from "holdfast"; const a = defineJob("a", { run() {} }); export default { jobs: [a, a] };',
      'lists the kind "a" twice.',
      "",
    ],
  ])("%s", async (text, message, hint) => {
    const { code, stderr } = await load(text);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });

  test("one that was named but is not there, and two of them", async () => {
    const cwd = await makeFolder();
    const missing = await run(["config", "--config", "other.ts"], { cwd });
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("other.ts is not there") });
    await writeFile(join(cwd, "holdfast.config.json"), "{}");
    await writeFile(join(cwd, "holdfast.config.mjs"), "export default {}");
    const several = await run(["config"], { cwd });
    expect(several.stderr).toContain("several configuration files here: holdfast.config.mjs, holdfast.config.json");
  });
});

describe("config", () => {
  test("shows every value with its source, and no secret", async () => {
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
    const { code, stdout } = await run(["config", "--json", "--host", "localhost"], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).not.toContain("hunter");
    const { configFile, settings } = JSON.parse(stdout) as {
      configFile: string;
      settings: Record<string, { value: unknown; source: string }>;
    };
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
    const text = await run(["config"], { cwd, env });
    expect(text.stdout).toMatch(/^port +7001 +HOLDFAST_PORT$/m);
    expect(text.stdout).not.toContain("hunter");
  });
});

describe("enqueue", () => {
  test.each([
    [["greet", "{name:Ada}"], "The payload is not JSON"],
    [["greet", "@nowhere.json"], "The file nowhere.json cannot be read: it is not there."],
    [["greet", '{"id":9007199254740993}'], "9007199254740993, which JavaScript cannot keep exactly."],
    [["greet", "{}", "--priority", "high"], '--priority is "high".'],
    [["greet", "{}", "--timeout", "5s"], "--timeout is given without --wait."],
    [["greet", "{}", "--wait", "--timeout", "5"], "--timeout"],
    [["greet", "{}", "--url", "nowhere"], '--url is "nowhere".'],
    [[], "missing required argument 'kind'"],
  ])("%o", async (args, message) => {
    const { code, stdout, stderr } = await run(["enqueue", ...args], { cwd: await makeFolder() });
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain(message);
  });

  test("stdin that is not JSON", async () => {
    const { code, stderr } = await run(["enqueue", "greet", "-"], { stdin: "oops" });
    expect(code).toBe(2);
    expect(stderr).toContain("What came from stdin is not JSON");
  });

  test("where no server is: what to do, and exit code 69", async () => {
    const { code, stdout, stderr } = await run(["enqueue", "greet", "{}", "--url", "http://127.0.0.1:9"]);
    expect(code).toBe(69);
    expect(stdout).toBe("");
    expect(stderr).toContain("No server answers at http://127.0.0.1:9.");
    expect(stderr).toContain("npx holdfast dev");
  });
});
