// The package as a stranger gets it: packed, installed into the project that `holdfast init` made, and run there from its
// own command.
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, makeFolder, run as holdfast, startFrom } from "./holdfast.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const npm = process.platform === "win32" ? "npm.cmd" : "npm";
/** npm may have to fetch packages, and the first embedded start takes seconds. */
const PATIENTLY_MS = 300_000;

let folder: string;
beforeAll(async () => {
  const home = await makeFolder();
  await run(npm, ["pack", "--ignore-scripts", "--pack-destination", home], { cwd: root });
  const [tarball = ""] = await readdir(home);
  const made = await holdfast(["init", "stranger"], { cwd: home });
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^holdfast\.config\.ts$/m) });
  folder = join(home, "stranger");
  await run(npm, ["install", join(home, tarball), "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
  });
}, PATIENTLY_MS);
afterAll(cleanUp);

test(
  "what `holdfast init` made: its test passes, its types fit, its job runs, and nothing is overwritten",
  async () => {
    const bin = join(folder, "node_modules", ".bin", "holdfast");
    expect(JSON.parse(await readFile(join(folder, "package.json"), "utf8"))).toMatchObject({ name: "stranger" });
    const [tested] = await Promise.all([
      run(npm, ["test"], { cwd: folder }),
      run(npm, ["run", "types"], { cwd: folder }),
      run("git", ["init", "-q", "."], { cwd: folder }),
    ]);
    expect(tested.stdout).toMatch(/# pass 2\n# fail 0/);
    const { stdout: unknown } = await run("git", ["status", "--short", "-uall"], { cwd: folder });
    expect(unknown).not.toContain("node_modules");

    const main = join(folder, "node_modules", "holdfast", "dist", "cli", "main.js");
    const server = await startFrom(main, ["dev"], { cwd: folder, env: { HOLDFAST_PORT: "0" } });
    expect(server.ready).toMatchObject({ kinds: ["greet"], tier: "embedded" });
    const { stdout } = await run(bin, ["enqueue", "greet", '{"name":"Ada"}', "--wait", "--json"], { cwd: folder });
    expect(JSON.parse(stdout)).toMatchObject({ state: "done", result: { greeting: "Hello, Ada!" } });
    // What it says to try can be tried as it stands.
    const tried = await run("sh", ["-c", server.ready.try[0]!], { cwd: folder });
    expect(tried.stderr).toContain('{"greeting":"Hello, Ada!"}');
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(0);

    const before = await readFile(join(folder, "jobs", "greet.ts"), "utf8");
    await writeFile(join(folder, "jobs", "greet.ts"), `${before}// mine`);
    const again = await run(bin, ["init"], { cwd: folder }).catch((error: unknown) => error);
    expect(again).toMatchObject({ code: 6, stdout: "", stderr: expect.stringContaining("jobs/greet.ts") });
    expect(await readFile(join(folder, "jobs", "greet.ts"), "utf8")).toBe(`${before}// mine`);
    // In a project that is there already.
    const project = join(folder, "theirs");
    const manifest = '{ "name": "theirs", "dependencies": { "holdfast": "*" } }';
    await mkdir(project);
    await writeFile(join(project, "package.json"), manifest);
    const added = await run(bin, ["init"], { cwd: project });
    expect(added.stdout.split("\n")).toContain("holdfast.config.ts");
    expect(added.stderr).toMatch(/npm install zod\n +npm install --save-dev .*jiti/);
    expect(await readFile(join(project, "package.json"), "utf8")).toBe(manifest);
    const dry = await run(bin, ["init", "other", "--dry-run"], { cwd: folder });
    expect(dry.stdout.trim().split("\n")).toContain("compose.yaml");
    expect(await readdir(folder)).not.toContain("other");
  },
  PATIENTLY_MS,
);

test(
  "dev loads holdfast.config.ts, runs its jobs, serves its app; what it throws is understood",
  async () => {
    await writeFile(
      join(folder, "jobs.ts"),
      `import { defineJob, Fatal } from "holdfast";
       export const add = defineJob<{ a: number; b: number }>("add", {
         run(job) {
           if (!Number.isFinite(job.payload.a)) throw new Fatal("not a number");
           return job.payload.a + job.payload.b;
         },
       });`,
    );
    await writeFile(
      join(folder, "holdfast.config.ts"),
      `import { defineApp, defineConfig } from "holdfast";
       import { add } from "./jobs";
       const hello = defineApp({
         name: "hello",
         routes: [{ method: "GET", path: "/hello", auth: "public", handle: (): object => ({ hello: "stranger" }) }],
       });
       export default defineConfig({ apps: [hello], jobs: [add], concurrency: 3 });`,
    );
    const main = join(folder, "node_modules", "holdfast", "dist", "cli", "main.js");
    const server = await startFrom(main, ["dev"], { cwd: folder, env: { HOLDFAST_PORT: "0" } });
    expect(server.ready).toMatchObject({ kinds: ["add"], apps: ["hello"], tier: "embedded" });
    const { url } = server.ready;
    expect(await (await fetch(`${url}/hello`)).json()).toEqual({ hello: "stranger" });
    const asked = async (...args: string[]) => {
      const bin = join(folder, "node_modules", ".bin", "holdfast");
      const { stdout } = await run(bin, [...args, "--url", url, "--json"], { cwd: folder }).catch(
        (error: unknown) => error as { stdout: string },
      );
      return JSON.parse(stdout) as object;
    };
    expect(await asked("enqueue", "add", '{"a":1,"b":2}', "--wait")).toMatchObject({ state: "done", result: 3 });
    // Its Fatal is our Fatal: dead at once, on the first of five tries.
    expect(await asked("enqueue", "add", '{"a":null,"b":2}', "--wait")).toMatchObject({
      state: "dead",
      attempt: 1,
      lastError: { name: "Fatal", reason: "fatal" },
    });
    const document = (await (await fetch(`${url}/api/v1/openapi.json`)).json()) as { openapi: string };
    expect(document.openapi).toMatch(/^3\.1\./);
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(0);
  },
  PATIENTLY_MS,
);

test("the doors open with plain import, and nothing of the tests or sources is in the package", async () => {
  const code =
    'const names = await Promise.all(["holdfast", "holdfast/http", "holdfast/testing", "holdfast/guarded-fetch"].map((name) => import(name)));' +
    "console.log(JSON.stringify(names.map((names) => Object.keys(names))));";
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: folder });
  const [main, http, testing] = JSON.parse(stdout) as string[][];
  expect(main).toEqual(expect.arrayContaining(["open", "defineJob", "defineApp", "defineConfig", "defineChore"]));
  expect(http).toEqual(expect.arrayContaining(["makeHandler", "serve", "CONTRACTS", "openApiDocument"]));
  expect(testing).toContain("openTest");
  const installed = await readdir(join(folder, "node_modules", "holdfast"));
  expect(installed).not.toContain("src");
  expect(installed).not.toContain("test");
});
