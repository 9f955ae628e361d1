// The Dockerfile, carried out without Docker, for a project that `holdfast init` made; then what the compose file and the
// manifests start in it, as a user who owns nothing, on a real PostgreSQL: the migration, the server, a worker, the health
// check, and SIGTERM to the very process that the image starts. What stays unchecked is the engine, and the base image.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../support/postgres-server.mjs";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { run as holdfast } from "../cli/holdfast.ts";
import { carryOut, type Image } from "./carry-out.ts";
import { folder, read, root } from "./files.ts";

const PATIENTLY_MS = 240_000;
const TOKEN = "0123456789abcdef0123456789abcdef";
const run = promisify(execFile);
const children = new Set<ChildProcess>();
/** Where this test may: as somebody who is not root. */
const somebody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

let home: string;
let image: Image;
let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
  home = mkdtempSync(join(tmpdir(), "holdfast-image-"));
  chmodSync(home, 0o755);
  const project = join(home, "project");
  expect(await holdfast(["init", "project"], { cwd: home })).toMatchObject({ code: 0 });
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
  // The registry's name for what is not published yet: the tarball, beside the lock file.
  execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", project], { cwd: root });
  const tarball = readdirSync(project).find((name) => name.endsWith(".tgz"))!;
  execFileSync("npm", ["install", `./${tarball}`, "--package-lock-only", ...quiet], { cwd: project });
  cpSync(folder, join(project, "deploy"), { recursive: true });
  writeFileSync(join(project, ".env"), "HOLDFAST_TOKEN=a-secret\n");
  writeFileSync(
    join(project, "jobs", "slow.ts"),
    `import { defineJob } from "holdfast";
     export const slow = defineJob("slow", { run: () => new Promise((resolve) => setTimeout(resolve, 1500, "finished")) });`,
  );
  const config = join(project, "holdfast.config.ts");
  writeFileSync(
    config,
    readFileSync(config, "utf8").replace("jobs: [greet]", "jobs: [greet, slow]") +
      'import { slow } from "./jobs/slow.ts";',
  );
  const dockerfile = read("Dockerfile").replace("package-lock.json ./", `package-lock.json ${tarball} ./`);
  image = carryOut(dockerfile, read("Dockerfile.dockerignore"), project, home);
  execFileSync("chmod", ["-R", "a+rX", home]);
}, PATIENTLY_MS);
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await database.drop();
  rmSync(home, { recursive: true, force: true });
});

test("the image has the project and its packages, no secrets, no tools for development", () => {
  expect(readdirSync(image.workdir).sort()).toEqual(
    expect.arrayContaining(["holdfast.config.ts", "jobs", "node_modules", "package.json"]),
  );
  for (const name of [".env", "deploy", "test", ".holdfast", "node_modules/typescript"])
    expect([name, existsSync(join(image.workdir, name))]).toEqual([name, false]);
  expect(image).toMatchObject({ user: "node", stopSignal: "SIGTERM", env: { NODE_ENV: "production" } });
});

/** As the image starts it: no shell and no npm between. */
function start(args: readonly string[], more: Record<string, string>) {
  const [program = "", ...words] = [...image.entrypoint, ...args];
  const env = { PATH: process.env["PATH"]!, ...image.env, DATABASE_URL: database.url, HOLDFAST_TOKEN: TOKEN, ...more };
  const child = spawn(program === "node" ? process.execPath : program, words, { cwd: image.workdir, env, ...somebody });
  children.add(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, env, ended, said: () => said };
}

async function isHealthy(env: Record<string, string>): Promise<boolean> {
  const [program = "", ...words] = image.healthcheck;
  const code = run(program, words, { env, ...somebody });
  return await code.then(
    () => true,
    () => false,
  );
}

async function becomesHealthy({ env, said }: ReturnType<typeof start>): Promise<void> {
  await expect.poll(() => isHealthy(env), { timeout: 30_000, message: said() }).toBe(true);
}

test(
  "migrate, start and worker run as somebody else, are healthy, do a job, and stop when they are told",
  { timeout: PATIENTLY_MS },
  async () => {
    const migration = start(["migrate"], {});
    expect([await migration.ended, migration.said()]).toEqual([0, expect.stringContaining("went from version 0")]);

    const [port, healthPort] = [await freePort(), await freePort()];
    const server = start(image.cmd, { HOLDFAST_PORT: String(port) });
    expect(await isHealthy({ ...server.env, HOLDFAST_PORT: "1" })).toBe(false);
    await becomesHealthy(server);
    const worker = start(["worker"], { HOLDFAST_HEALTH_PORT: String(healthPort) });
    await becomesHealthy(worker);

    const url = `http://127.0.0.1:${port}`;
    const client = { env: { HOLDFAST_URL: url, HOLDFAST_TOKEN: TOKEN } };
    const done = await holdfast(["enqueue", "greet", '{"name":"Ada"}', "--wait", "--json"], client);
    expect(JSON.parse(done.stdout)).toMatchObject({ state: "done", result: { greeting: "Hello, Ada!" } });
    const authorization = `Bearer ${TOKEN}`;
    for (const place of [port, healthPort]) {
      const metrics = `http://127.0.0.1:${place}/metrics`;
      expect((await fetch(metrics)).status).toBe(401);
      expect(await (await fetch(metrics, { headers: { authorization } })).text()).toContain(
        "holdfast_queue_oldest_ready_age_seconds",
      );
    }

    // The worker goes first, so that the job is the server's when it is told to stop.
    worker.child.kill(image.stopSignal as NodeJS.Signals);
    expect([await worker.ended, worker.said()]).toEqual([0, expect.stringContaining("Stopped.")]);
    const { stdout: id } = await holdfast(["enqueue", "slow"], client);
    const job = async () => (await fetch(`${url}/api/v1/jobs/${id.trim()}`, { headers: { authorization } })).json();
    await expect.poll(job).toMatchObject({ state: "running" });
    server.child.kill(image.stopSignal as NodeJS.Signals);
    expect([await server.ended, server.said()]).toEqual([
      0,
      expect.stringContaining("Waiting up to 25s for 1 running job"),
    ]);

    const again = start(image.cmd, { HOLDFAST_PORT: String(port) });
    await becomesHealthy(again);
    expect(await job()).toMatchObject({ state: "done", attempt: 1, result: "finished" });
    again.child.kill("SIGTERM");
    expect(await again.ended).toBe(0);
  },
);
