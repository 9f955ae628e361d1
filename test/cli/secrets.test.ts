// No secret in a log line, a message or the settings: database passwords, tokens, payloads.
import { afterAll, beforeAll, expect, test } from "vitest";
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

const TOKEN = "the-server-token-hunter2";

test("a server that says everything says no secret", async () => {
  const cwd = await makeFolder();
  const url = new URL(database.url);
  // The tests' own server asks for none, and takes any.
  if (url.password === "") url.password = "database-hunter2";
  const env = { DATABASE_URL: url.href, HOLDFAST_PORT: "0", HOLDFAST_TOKEN: TOKEN };
  const made = await run(["token", "create", "--role", "operator"], { cwd, env });
  const stored = made.stdout.trim();
  const server = await start(["start", "-v"], { cwd, env });
  const ask = (path: string, init: RequestInit = {}) => fetch(`${server.ready.url}${path}`, init);
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  await ask("/api/v1/jobs", { headers: bearer(`${TOKEN}-wrong`) });
  await ask(`/api/v1/jobs?token=${TOKEN}`, { headers: bearer(stored) });
  await ask("/api/v1/jobs", {
    method: "POST",
    headers: { ...bearer(stored), "content-type": "application/json" },
    body: JSON.stringify({ kind: "sample.flaky", payload: { password: "payload-hunter2" }, attempts: 1 }),
  });
  await server.says("sample.flaky is dead");
  const config = await run(["config"], { cwd, env });
  server.kill("SIGTERM");
  const { stdout, stderr } = await server.ended;
  const said = stdout + stderr + config.stdout + config.stderr + made.stderr;
  expect(said).toContain("sample.flaky is dead");
  for (const secret of [TOKEN, stored.slice(-43), "payload-hunter2", `:${url.password}@`]) {
    expect(said).not.toContain(secret);
  }
});
