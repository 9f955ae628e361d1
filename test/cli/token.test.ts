// holdfast token: made on the database before any server runs, used against a server, revoked through it.
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

describe("on PostgreSQL", () => {
  test("no token, no server; with the first one there is, and it lets in who has it", async () => {
    const cwd = await makeFolder();
    const env = { DATABASE_URL: database.url, HOLDFAST_PORT: "0" };
    const refused = await run(["start"], { cwd, env });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("there is no token");
    expect(refused.stderr).toContain("holdfast token create");

    const made = await run(["token", "create", "--name", "me", "--role", "operator"], { cwd, env });
    expect(made.code, made.stderr).toBe(0);
    const token = made.stdout.trim();
    expect(token).toMatch(/^hf_\w{32}_[\w-]{43}$/);
    expect(made.stderr).toContain("operator, id ");

    const server = await start(["start"], { cwd, env });
    const enqueue = (extra: Record<string, string>) =>
      run(["enqueue", "sample.hello", '{"name":"Ada"}', "--wait", "--url", server.ready.url], { cwd, env: extra });
    const without = await enqueue({});
    expect(without.code).toBe(1);
    expect(without.stderr).toContain("HOLDFAST_TOKEN");
    expect((await enqueue({ HOLDFAST_TOKEN: token })).code).toBe(0);

    const { stdout } = await run(["token", "list", "--json"], { cwd, env });
    const { tokens } = JSON.parse(stdout) as { tokens: { id: string; name: string; lastUsedAt: string | null }[] };
    expect(tokens).toHaveLength(1);
    expect(tokens[0]).toMatchObject({ name: "me", lastUsedAt: expect.any(String) });
    const listed = await run(["token"], { cwd, env });
    expect(listed.stdout).toMatch(/^ID +NAME +ROLE +SCOPE +STATE +LAST USED\n\S+ +me +operator /);

    expect((await run(["token", "revoke", tokens[0]!.id], { cwd, env })).stdout).toContain("is revoked");
    expect((await enqueue({ HOLDFAST_TOKEN: token })).code).toBe(1);
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(0);
    // Neither the server's log nor any command has shown the secret; only create has.
    expect(server.stderr + stdout + listed.stdout).not.toContain(token.slice(-43));
  });

  test.each([
    [["token", "create", "--role", "root"], 2, '--role is "root".'],
    [["token", "create", "--expires", "5"], 2, "expires is"],
    [["token", "create", "--recipient", "a", "--owner", "b"], 2, "both a recipient and an owner"],
    [["token", "revoke", "x"], 2, 'The token\'s id is "x".'],
    [["token", "revoke", "01a1e299-0e62-7000-b7d8-b9cc8b876cb7"], 5, "There is no token"],
    [["token", "mint"], 2, ""],
  ])("%j", async (args, code, message) => {
    const output = await run(args, { env: { DATABASE_URL: database.url } });
    expect(output.code, output.stderr).toBe(code);
    expect(output.stderr).toContain(message);
    expect(output.stdout).toBe("");
  });
});

test("while a server holds the embedded folder, tokens are made through it; it asks for one from its next start on", async () => {
  const cwd = await makeFolder();
  const env = { HOLDFAST_PORT: "0" };
  const server = await start(["dev"], { cwd, env });
  const { port } = new URL(server.ready.url);
  const made = await run(["token", "create", "--role", "admin", "--json"], { cwd, env: { HOLDFAST_PORT: port } });
  expect(made.code, made.stderr).toBe(0);
  const { token, id } = JSON.parse(made.stdout) as { token: string; id: string };
  const jobs = `${server.ready.url}/api/v1/jobs`;
  expect((await fetch(jobs)).status).toBe(200);
  expect((await fetch(jobs, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  server.kill("SIGTERM");
  await server.ended;

  const again = await start(["dev"], { cwd, env });
  expect((await fetch(`${again.ready.url}/api/v1/jobs`)).status).toBe(401);
  const { port: newPort } = new URL(again.ready.url);
  const through = { HOLDFAST_PORT: newPort, HOLDFAST_TOKEN: token };
  expect((await run(["token", "revoke", id], { cwd, env: through })).stdout).toContain("is revoked");
  expect((await run(["token", "list"], { cwd, env: through })).code).toBe(1);
  again.kill("SIGTERM");
  await again.ended;
});
