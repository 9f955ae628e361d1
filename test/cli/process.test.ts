// The life of a server process: its folder, its port, signals, and errors that nobody caught.
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { cleanUp, makeFolder, run, start } from "./holdfast.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(async () => {
  await cleanUp();
  await database.drop();
});

const FREE = { HOLDFAST_PORT: "0" };
/** The server tier wants one. */
const TOKEN = { HOLDFAST_TOKEN: "a-token-for-tests" };
/** A fresh embedded database takes seconds, on a busy machine many of them. */
const FOR_EMBEDDED_MS = 180_000;

async function withConfig(jobs: string): Promise<string> {
  const cwd = await makeFolder();
  await writeFile(
    join(cwd, "holdfast.config.mjs"),
    `import { defineJob } from "holdfast";
     const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
     export default { jobs: [${jobs}] };`,
  );
  return cwd;
}

describe("the embedded folder", () => {
  test(
    "a second process is told who has it; afterwards the data is found again",
    async () => {
      const cwd = await makeFolder();
      const first = await start(["dev"], { cwd, env: FREE });
      expect(first.ready).toMatchObject({ tier: "embedded", data: join(cwd, ".holdfast") });
      expect(first.ready.promise).toContain("Survives the death of its process, not of the machine");
      const { stdout: id } = await run([
        "enqueue",
        "sample.hello",
        '{"name":"Ada"}',
        "--wait",
        "--url",
        first.ready.url,
      ]);

      const second = await run(["dev"], { cwd, env: { HOLDFAST_PORT: new URL(first.ready.url).port } });
      expect(second.code).toBe(75);
      expect(second.stderr).toContain(`in use by process ${first.pid} (holdfast dev)`);
      expect(second.stderr).toContain("Stop that process, use its HTTP API instead");

      const port = new URL(first.ready.url).port;
      const third = await run(["dev", "--data", "other"], { cwd, env: { HOLDFAST_PORT: port } });
      expect(third.code).toBe(1);
      expect(third.stderr).toContain(`Port ${port} on 127.0.0.1 is in use by another process.`);
      expect(existsSync(join(cwd, "other"))).toBe(false);

      first.kill("SIGINT");
      expect((await first.ended).code).toBe(0);
      const again = await start(["dev"], { cwd, env: FREE });
      expect((await run(["jobs", "show", id.trim(), "--url", again.ready.url])).stdout).toContain("Hello, Ada!");
      again.kill("SIGTERM");
      expect((await again.ended).code).toBe(0);
    },
    FOR_EMBEDDED_MS,
  );
});

describe("signals", () => {
  test("the first waits for what runs, and says for what; HTTP answers meanwhile", async () => {
    const cwd = await withConfig(`defineJob("nap", { run: () => sleep(1500) })`);
    const server = await start(["start", "-v"], { cwd, env: { ...FREE, ...TOKEN, DATABASE_URL: database.url } });
    const { stdout: id } = await run(["enqueue", "nap", "--url", server.ready.url], { env: TOKEN });
    await untilRunning(server.ready.url, id.trim());
    server.kill("SIGTERM");
    await server.says("Waiting up to 25s for 1 running job: nap");
    expect((await fetch(`${server.ready.url}/livez`)).status).toBe(200);
    expect(await (await fetch(`${server.ready.url}/readyz`)).json()).toMatchObject({ status: "stopping" });
    const { code, stderr } = await server.ended;
    expect(code).toBe(0);
    expect(stderr).toContain("nap done");
    expect(stderr).toContain("Stopped.");
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("a second %s ends it at once", async (signal, expected) => {
    const cwd = await withConfig(`defineJob("stubborn", { run: () => sleep(60_000) })`);
    const server = await start(["start"], { cwd, env: { ...FREE, ...TOKEN, DATABASE_URL: database.url } });
    const { stdout: id } = await run(["enqueue", "stubborn", "--url", server.ready.url], { env: TOKEN });
    await untilRunning(server.ready.url, id.trim());
    server.kill(signal);
    await server.says("Waiting");
    // Two within 300 ms count as one: npm hands on what the terminal already sent.
    await new Promise((resolve) => setTimeout(resolve, 400));
    server.kill(signal);
    expect((await server.ended).code).toBe(expected);
  });
});

describe("errors that nobody caught", () => {
  test("the process ends with 1; the job runs again at the next start, uncharged", async () => {
    const cwd = await withConfig(
      `defineJob("poison", { lease: "1s", run: () => { setTimeout(() => { throw new TypeError("nobody caught me"); }, 10); return sleep(60_000); } })`,
    );
    const env = { ...FREE, ...TOKEN, DATABASE_URL: database.url };
    const server = await start(["start"], { cwd, env });
    const { stdout: id } = await run(["enqueue", "poison", "--url", server.ready.url], { env: TOKEN });
    const { code, stderr } = await server.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("Nobody caught an error: the process ends.");
    expect(stderr).toContain("TypeError: nobody caught me");
    await writeFile(
      join(cwd, "holdfast.config.mjs"),
      `import { defineJob } from "holdfast"; export default { jobs: [defineJob("poison", { lease: "1s", run: (job) => job.attempt })] };`,
    );
    const again = await start(["start"], { cwd, env });
    const job = await untilDone(again.ready.url, id.trim());
    expect(job).toMatchObject({ state: "done", result: 1 });
    again.kill("SIGTERM");
    await again.ended;
  });
});

describe("a handler that hangs", () => {
  test("the job is timed out, the process says so and kills itself; its other job runs elsewhere, uncharged", async () => {
    const others = `defineJob("bystander", { lease: "1s", run: () => sleep(60_000) })`;
    const hang = `defineJob("hang", { lease: "1s", timeout: "1s", attempts: 1, run: async () => { await sleep(100); for (;;); } })`;
    const cwd = await withConfig(`${hang}, ${others}`);
    const env = { ...FREE, ...TOKEN, DATABASE_URL: database.url };
    const server = await start(["start"], { cwd, env });
    const bystander = (await run(["enqueue", "bystander", "--url", server.ready.url], { env: TOKEN })).stdout.trim();
    await untilRunning(server.ready.url, bystander);
    const hanging = (await run(["enqueue", "hang", "--url", server.ready.url], { env: TOKEN })).stdout.trim();
    const { code, stderr } = await server.ended;
    expect(code).toBe(null);
    expect(stderr).toContain("(ended by SIGKILL)");
    const line = stderr.split("\n").find((text) => text.includes("The process hangs"))!;
    expect(JSON.parse(line)).toMatchObject({
      level: "error",
      message: expect.stringMatching(new RegExp(`settled as such: hang ${hanging}\\.$`)),
    });
    await writeFile(
      join(cwd, "holdfast.config.mjs"),
      `import { defineJob } from "holdfast"; export default { jobs: [defineJob("bystander", { lease: "1s", run: (job) => job.attempt })] };`,
    );
    const again = await start(["start"], { cwd, env });
    expect(await untilDone(again.ready.url, bystander)).toMatchObject({ state: "done", result: 1 });
    expect(await read(again.ready.url, hanging)).toMatchObject({ state: "dead", lastError: { reason: "timeout" } });
    again.kill("SIGTERM");
    await again.ended;
  });
});

async function read(url: string, id: string) {
  return (await (
    await fetch(`${url}/api/v1/jobs/${id}`, { headers: { authorization: `Bearer ${TOKEN.HOLDFAST_TOKEN}` } })
  ).json()) as { state: string; result: unknown };
}

async function untilRunning(url: string, id: string): Promise<void> {
  while ((await read(url, id)).state !== "running") await new Promise((resolve) => setTimeout(resolve, 20));
}

async function untilDone(url: string, id: string) {
  for (;;) {
    const job = await read(url, id);
    if (job.state === "done" || job.state === "dead") return job;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
