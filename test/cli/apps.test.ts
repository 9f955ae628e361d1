// Apps from holdfast.config.ts, in a folder of a stranger: tables, routes, page and commands, with the real command line.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { cleanUp, makeFolder, run, start } from "./holdfast.ts";

let database: TestDatabase;
let cwd: string;
beforeAll(async () => {
  database = await createDatabase();
  cwd = await makeFolder();
  await mkdir(join(cwd, "page"));
  await writeFile(join(cwd, "page", "index.html"), "<!doctype html><title>Guests</title>");
  await writeFile(
    join(cwd, "guests.ts"),
    `import { defineApp, defineChore, defineJob, type Holdfast } from "holdfast";
     interface Guest { name: string }
     export const guests = defineApp({
       name: "guests",
       migrations: [{ name: "001", sql: "create table :schema.guests (name text primary key)" }],
       jobs: (hf: Holdfast) => [
         defineJob<Guest>("guests.welcome", {
           async run(job) {
             await hf.sql.query("insert into :schema.guests values ($1) on conflict do nothing", [job.payload.name]);
             return { welcome: job.payload.name satisfies string };
           },
         }),
       ],
       chores: [defineChore("count-guests", { every: "1h", run() {} })],
       routes: [
         {
           method: "GET",
           path: "/guests",
           auth: "public",
           handle: async ({ hf }) => (await hf.sql.query("select name from :schema.guests")).rows,
         },
       ],
       commands: [
         {
           name: "guests list",
           summary: "who is there",
           arguments: ["[prefix]"],
           options: [["--loud", "in capitals"]],
           async run({ open, args, options, print }) {
             const hf = await open();
             const { rows } = await hf.sql.query<Guest>("select name from :schema.guests where name like $1", [(args[0] ?? "") + "%"]);
             for (const { name } of rows) print(options["loud"] ? name.toUpperCase() : name);
             return rows.length === 0 ? 5 : 0;
           },
         },
         { name: "ping-guests", summary: "says where the server is", run: ({ server, note }) => note(server.url) },
       ],
       page: { title: "Guests", folder: new URL("./page/", import.meta.url) },
       start: ({ log, mode, url }) => {
         log.info("guests start in " + mode, { at: url });
         return () => log.info("guests stop");
       },
     });`,
  );
  await writeFile(
    join(cwd, "holdfast.config.ts"),
    'import { defineConfig } from "holdfast"; import { guests } from "./guests.ts"; export default defineConfig({ apps: [guests] });',
  );
});
afterAll(async () => {
  await cleanUp();
  await database.drop();
});

const env = () => ({ DATABASE_URL: database.url, HOLDFAST_PORT: "0", HOLDFAST_TOKEN: "a-token-for-the-apps-test" });

test("migrate makes the app's tables too, says whether they are there, and prints them", async () => {
  const before = await run(["migrate", "--status"], { cwd, env: env() });
  expect(before.code).toBe(1);
  const first = await run(["migrate"], { cwd, env: env() });
  expect(first.code, first.stderr).toBe(0);
  expect(first.stderr).toContain("Applied 001 of guests");
  expect(await run(["migrate", "--status"], { cwd, env: env() })).toMatchObject({ code: 0 });
  expect((await run(["migrate", "--print"], { cwd, env: env() })).stdout).toContain('create table "holdfast".guests');
});

test("start runs its jobs, serves its routes and its page, starts and stops it; its commands work beside", async () => {
  const server = await start(["start"], { cwd, env: env() });
  expect(server.ready).toMatchObject({ kinds: ["guests.welcome"], apps: ["guests"] });
  await server.says("guests start in start");
  const { url } = server.ready;
  await server.says(`"at":"${url}"`);
  const enqueued = await run(["enqueue", "guests.welcome", '{"name":"ada"}', "--wait", "--url", url], { env: env() });
  expect(enqueued.code, enqueued.stderr).toBe(0);
  expect(await (await fetch(`${url}/guests`)).json()).toEqual([{ name: "ada" }]);
  expect(await (await fetch(`${url}/apps/guests/`)).text()).toContain("<title>Guests</title>");

  expect(await run(["guests", "list", "a", "--loud"], { cwd, env: env() })).toMatchObject({ code: 0, stdout: "ADA\n" });
  expect(await run(["guests", "list", "z"], { cwd, env: env() })).toMatchObject({ code: 5, stdout: "" });
  // What strangers wrote does not move somebody's cursor.
  const eve = JSON.stringify({ name: "eve\u001b[2J" });
  await run(["enqueue", "guests.welcome", eve, "--wait", "--url", url], { env: env() });
  expect((await run(["guests", "list", "e"], { cwd, env: env() })).stdout).toBe("eve\uFFFD[2J\n");
  const pinged = await run(["ping-guests"], { cwd, env: { ...env(), HOLDFAST_URL: url } });
  expect(pinged).toMatchObject({ code: 0, stdout: "", stderr: `${url}\n` });
  expect((await run(["guests", "--help"], { cwd, env: env() })).stdout).toContain("who is there");
  expect((await run(["guess"], { cwd, env: env() })).code).toBe(2);

  server.kill("SIGTERM");
  const { code, stderr } = await server.ended;
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("guests stop");
  const config = await run(["config", "--json"], { cwd, env: env() });
  expect(JSON.parse(config.stdout)).toMatchObject({
    settings: { apps: { value: ["guests"], source: "holdfast.config.ts" } },
  });
});
