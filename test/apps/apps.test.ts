// An app on both tiers: its tables, kinds that use them, a chore, routes with every way to say who may call, a page.
import { mkdtempSync } from "node:fs";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineApp, defineChore, defineJob, prepareApps, startApps } from "#src/index.js";
import { type AppMigration } from "#src/migrate/app-migrations.js";
import { serve, type HttpServer } from "#src/http/index.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const TABLES: AppMigration = {
  name: "001_notes",
  sql: `-- Notes; a semicolon in a comment; and in a text.
create table :schema.notes (id bigint generated always as identity primary key, text text not null default ';');
create function :schema.shout(text text) returns text language plpgsql as $body$
begin
  return upper(text) || '!';
end;
$body$;`,
};
const MORE: AppMigration = { name: "002_seen", sql: "alter table :schema.notes add column seen boolean default false" };

const TOKEN = "a-token-for-the-tests-of-apps";
const bearer = { authorization: `Bearer ${TOKEN}` };

const home = mkdtempSync(join(tmpdir(), "holdfast-page-"));
const folder = join(home, "page");
beforeAll(async () => {
  await mkdir(join(folder, "sub"), { recursive: true });
  await writeFile(join(folder, "index.html"), "<!doctype html><title>Notes</title>");
  await writeFile(join(folder, "sub", "app.js"), "export {};");
  await writeFile(join(folder, ".env"), "SECRET=1");
  await writeFile(join(home, "secret.txt"), "secret");
  await symlink(join(home, "secret.txt"), join(folder, "link.txt"));
});
afterAll(() => rm(home, { recursive: true, force: true }));

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let server: HttpServer;
  let swept = 0;
  const told: string[] = [];
  const asked: string[] = [];

  const notes = defineApp({
    name: "notes",
    migrations: [TABLES, MORE],
    jobs: (hf) => [
      defineJob<{ text: string }>("notes.shout", {
        async run(job) {
          const { rows } = await hf.sql.query<{ loud: string }>("select :schema.shout($1) as loud", [job.payload.text]);
          return await job.transaction(async (tx) => {
            await hf.sql.on(tx).query("update :schema.notes set text = $1", [rows[0]!.loud]);
            return rows[0]!.loud;
          });
        },
      }),
    ],
    chores: [defineChore("sweep-notes", { every: "1h", run: (context) => context.count("swept", (swept += 1)) })],
    routes: [
      { method: "GET", path: "/notes", auth: "public", handle: () => ({ public: true }) },
      {
        method: "POST",
        path: "/notes/:name",
        auth: "token",
        maxBody: 100,
        async handle({ params, query, caller, json, hf }) {
          const { rows } = await hf.sql.query("insert into :schema.notes (text) values ($1) returning id", [
            JSON.stringify(await json()),
          ]);
          return Response.json(
            { name: params["name"], q: query.get("q"), by: caller?.name, rows: rows.length },
            { status: 201 },
          );
        },
      },
      {
        method: "POST",
        path: "/hook/:bot",
        auth(request, { params }) {
          asked.push(params["bot"]!);
          return request.headers.get("x-secret") === "open sesame";
        },
        async handle({ bytes, caller }) {
          let size = 0;
          for await (const piece of bytes()) size += piece.byteLength;
          return { size, caller };
        },
      },
      {
        method: "POST",
        path: "/own/:who",
        auth: async (_, { params, identify }) => (await identify()).recipient === params["who"],
        maxBody: 1_000,
        async handle({ form, caller }) {
          const parts: string[] = [];
          for await (const { field, filename, type, content } of form()) {
            // The first of them is passed over.
            if (parts.push(`${field} ${filename} ${type}`) === 1) continue;
            for await (const piece of content) parts.push(Buffer.from(piece).toString());
          }
          return { parts, by: caller?.name };
        },
      },
      {
        method: "GET",
        path: "/kept/:name",
        auth: async (_, { params, hf }) => (await hf.sql.query("select $1::text", [params["name"]])).rowCount === 1,
        async handle({ params, query, hf }) {
          const { rows } = await hf.sql.query("select $1::text as name, $2::text as q", [
            params["name"],
            query.get("q"),
          ]);
          return rows[0];
        },
      },
      { method: "GET", path: "/boxes/:recipient", auth: "token", scope: "recipient", handle: () => ({ mine: true }) },
      { method: "DELETE", path: "/notes", auth: "token", role: "admin", handle: () => undefined },
      {
        method: "GET",
        path: "/broken",
        auth: "public",
        handle() {
          throw new Error("select secret");
        },
      },
    ],
    page: { title: "My notes", folder },
    start({ mode, url }) {
      told.push(`start ${mode}${url === undefined ? "" : ` at ${url}`}`);
      return () => void told.push("stop notes");
    },
  });
  const second = defineApp({
    name: "second",
    page: { title: "Second", render: ({ query }) => `<p>${query.get("x") ?? "none"}</p>` },
    start: () => () => void told.push("stop second"),
  });

  let kinds: Awaited<ReturnType<typeof prepareApps>>;
  beforeAll(async () => {
    kinds = await prepareApps(bench.hf, [notes, second]);
    server = await serve({ hf: bench.hf, kinds, apps: [notes, second], port: 0, token: TOKEN });
  });
  afterAll(() => server.close());

  const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(`${server.url}${path}`, { method, headers, body: body ?? null, redirect: "manual" });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const json = { "content-type": "application/json" };

  test("its tables are made once; another process finds them made; one that was changed is refused", async () => {
    expect(await bench.hf.sql.migrate("notes", [TABLES, MORE])).toEqual([]);
    const { rows } = await bench.hf.sql.query(
      "select name from :schema.app_migrations where app = $1 order by position",
      ["notes"],
    );
    expect(rows).toEqual([{ name: "001_notes" }, { name: "002_seen" }]);
    await expect(bench.hf.sql.migrate("notes", [{ ...TABLES, sql: `${TABLES.sql} -- changed` }, MORE])).rejects.toThrow(
      'The migration 001_notes of the app "notes" was changed after it had been applied.',
    );
    await expect(bench.hf.sql.migrate("notes", [MORE])).rejects.toThrow("has 002_seen where the database already has");
    // An older version of the app on the same tables.
    expect(await bench.hf.sql.migrate("notes", [TABLES])).toEqual([]);
    // One that fails leaves nothing behind.
    const half = { name: "003_half", sql: "create table :schema.half (id int); select 1 / 0;" };
    await expect(bench.hf.sql.migrate("notes", [TABLES, MORE, half])).rejects.toThrow("division by zero");
    const { rows: left } = await bench.hf.sql.query("select to_regclass($1)::text as found", [
      `${bench.hf.schema}.half`,
    ]);
    expect(left).toEqual([{ found: null }]);
  });

  test("a job and the app's own rows are one commit, or none", async () => {
    const kind = kinds[0]!;
    const count = async () => (await bench.hf.sql.query("select from :schema.notes")).rows.length;
    const before = await count();
    const { id } = await bench.hf.sql.transaction(async (tx) => {
      await tx.query("insert into :schema.notes (text) values ('quiet')");
      return await bench.hf.enqueue(kind, { text: "quiet" }, { tx });
    });
    await expect(
      bench.hf.sql.transaction(async (tx) => {
        await tx.query("insert into :schema.notes (text) values ('never')");
        await bench.hf.enqueue(kind, { text: "never" }, { tx, key: "never" });
        throw new Error("changed my mind");
      }),
    ).rejects.toThrow("changed my mind");
    expect(await count()).toBe(before + 1);
    const worker = await bench.hf.work(kinds);
    expect((await bench.hf.jobs.wait(id, { timeout: "10s" })).result).toBe("QUIET!");
    const { rows } = await bench.hf.sql.query("select distinct text from :schema.notes");
    expect(rows).toEqual([{ text: "QUIET!" }]);
    expect((await bench.hf.jobs.list({ kind: "notes.shout" })).jobs).toHaveLength(1);
    await worker.stop();
  });

  test("its chore is one of the janitor's", async () => {
    expect(bench.hf.janitor.chores.map(({ name }) => name)).toContain("sweep-notes");
    const before = swept;
    expect(await bench.hf.janitor.run("sweep-notes")).toMatchObject([{ chore: "sweep-notes", ran: true }]);
    expect(swept).toBe(before + 1);
  });

  test("a public route is open, a token's wants one, with the role and the scope it says", async () => {
    expect(await call("GET", "/notes")).toMatchObject({ status: 200, text: '{"public":true}' });
    expect((await call("POST", "/notes/a", json, "{}")).status).toBe(401);
    const made = await call("POST", "/notes/a?q=1", { ...json, ...bearer }, '{"x":1}');
    expect(made).toMatchObject({ status: 201, text: '{"name":"a","q":"1","by":"HOLDFAST_TOKEN","rows":1}' });
    const viewer = await bench.hf.tokens.create({ name: "v" });
    const asViewer = { authorization: `Bearer ${viewer.token}` };
    expect((await call("POST", "/notes/a", { ...json, ...asViewer }, "{}")).status).toBe(403);
    expect((await call("DELETE", "/notes", asViewer)).status).toBe(403);
    expect((await call("DELETE", "/notes", bearer)).status).toBe(204);
    const bound = await bench.hf.tokens.create({ name: "r", recipient: "ws-1" });
    const asBound = { authorization: `Bearer ${bound.token}` };
    expect((await call("GET", "/boxes/ws-1", asBound)).status).toBe(200);
    expect((await call("GET", "/boxes/ws-2", asBound)).status).toBe(403);
    expect((await call("GET", "/boxes/ws-2", asViewer)).status).toBe(200);
    expect((await call("POST", "/notes/a", { ...json, ...asBound }, "{}")).status).toBe(403);
  });

  test("a function decides before the body is touched", async () => {
    asked.length = 0;
    expect((await call("POST", "/hook/b1", {}, "x".repeat(50_000))).status).toBe(401);
    const { status, text } = await call("POST", "/hook/b1", { "x-secret": "open sesame" }, "x".repeat(50_000));
    expect({ status, body: JSON.parse(text) as unknown }).toEqual({
      status: 200,
      body: { size: 50_000, caller: null },
    });
    expect(asked).toEqual(["b1", "b1"]);
    expect((await call("POST", "/hook/b1", { "x-secret": "open sesame" }, "x".repeat(1_048_577))).status).toBe(413);
  });

  test("a function may ask whose token it is; a form comes part by part", async () => {
    const bound = await bench.hf.tokens.create({ name: "mine", recipient: "ws-7" });
    const asBound = { authorization: `Bearer ${bound.token}` };
    const body = ["a", "b"].map(
      (name) =>
        `--line\r\ncontent-disposition: form-data; name="f"; filename="${name}"\r\ncontent-type: x/y\r\n\r\nof ${name}\r\n`,
    );
    const form = { ...asBound, "content-type": "multipart/form-data; boundary=line" };
    const sent = await call("POST", "/own/ws-7", form, `${body.join("")}--line--\r\n`);
    expect(JSON.parse(sent.text)).toEqual({ parts: ["f a x/y", "f b x/y", "of b"], by: "mine" });
    expect((await call("POST", "/own/ws-8", form, "")).status).toBe(401);
    expect((await call("POST", "/own/ws-7", {}, "")).status).toBe(401);
    expect((await call("POST", "/own/ws-7", { ...bearer, ...json }, "{}")).status).toBe(401);
    expect((await call("POST", "/own/ws-7", { ...asBound, ...json }, "{}")).status).toBe(400);
    expect((await call("POST", "/own/ws-7", form, body.join(""))).status).toBe(400);
    expect((await call("POST", "/own/ws-7", form, `${body.join("")}${"x".repeat(1_000)}`)).status).toBe(413);
  });

  test("the guards of the API stand before an app's routes too, and its failures tell nothing", async () => {
    expect((await call("POST", "/notes/a", { ...bearer, ...json }, "x".repeat(101))).status).toBe(413);
    expect((await call("POST", "/notes/a", { ...bearer, ...json }, "{")).status).toBe(400);
    expect((await call("POST", "/notes/a", { ...bearer, ...json, origin: "https://evil.example" }, "{}")).status).toBe(
      403,
    );
    const broken = await call("GET", "/broken");
    expect(broken.status).toBe(500);
    expect(broken.text).toContain("HOLDFAST_HTTP_INTERNAL");
    expect(broken.text).not.toContain("secret");
    expect(broken.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("a NUL or half an escape in a path is a 400, not a failure of the app", async () => {
    const fine = await call("GET", "/kept/a%20b%2F%25?q=%C3%A4");
    expect(fine).toMatchObject({ status: 200, text: '{"name":"a b/%","q":"ä"}' });
    for (const path of ["/kept/%00", "/kept/a%00b", "/kept/%zz", "/kept/%", "/kept/%E0%A4%A", "/apps/second/%00"]) {
      const { status, text } = await call("GET", path);
      expect(status, path).toBe(400);
      expect(text, path).toContain("HOLDFAST_HTTP_REQUEST_UNREADABLE");
    }
  });

  test("its page is its folder, and nothing outside of it", async () => {
    expect(await call("GET", "/apps/notes")).toMatchObject({ status: 308 });
    const page = await call("GET", "/apps/notes/");
    expect(page).toMatchObject({ status: 200, text: "<!doctype html><title>Notes</title>" });
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
    expect((await call("GET", "/apps/notes/sub/app.js")).headers.get("content-type")).toContain("text/javascript");
    for (const path of [
      "../secret.txt",
      "%2e%2e/secret.txt",
      "..%2fsecret.txt",
      "sub/..%2f..%2fsecret.txt",
      "%2e%2e%5csecret.txt",
      "link.txt",
      ".env",
      "%2eenv",
      "sub",
      "sub/",
      "index.html%00.js",
      "%E0%A4%A",
      "nothing.html",
    ]) {
      const { status, text } = await call("GET", `/apps/notes/${path}`);
      expect([401, 404], path).toContain(status);
      expect(text, path).not.toMatch(/SECRET|^secret/);
    }
    expect((await call("GET", "/apps/second/?x=1")).text).toBe("<p>1</p>");
  });

  test("apps are listed for whoever may look", async () => {
    expect((await call("GET", "/api/v1/apps")).status).toBe(401);
    const { apps } = JSON.parse((await call("GET", "/api/v1/apps", bearer)).text) as { apps: object[] };
    expect(apps).toMatchObject([
      { name: "notes", title: "My notes", page: "/apps/notes/" },
      { name: "second", title: "Second", page: "/apps/second/" },
    ]);
  });

  test("they start in order and stop in reverse; one that fails stops those before it", async () => {
    told.length = 0;
    const stop = await startApps(bench.hf, [notes, second], { mode: "dev", url: "http://127.0.0.1:7070" });
    await stop();
    expect(told).toEqual(["start dev at http://127.0.0.1:7070", "stop second", "stop notes"]);
    told.length = 0;
    const failing = defineApp({ name: "failing", start: () => Promise.reject(new Error("no")) });
    await expect(startApps(bench.hf, [notes, failing])).rejects.toThrow("no");
    expect(told).toEqual(["start program", "stop notes"]);
  });

  test("two apps with one name, one kind or one route are refused", async () => {
    await expect(prepareApps(bench.hf, [second, second])).rejects.toThrow('two apps named "second"');
    const kind = defineJob("same", { run: () => null });
    const [one, two] = [defineApp({ name: "one", jobs: [kind] }), defineApp({ name: "two", jobs: [kind] })];
    await expect(prepareApps(bench.hf, [one, two])).rejects.toThrow(
      'The kind "same" is defined by the app "one" and by the app "two".',
    );
    await expect(prepareApps(bench.hf, [one], [kind])).rejects.toThrow("by the configuration and by");
    const route = { method: "GET", path: "/x/:a", auth: "public", handle: () => null } as const;
    const apps = [
      defineApp({ name: "one", routes: [route] }),
      defineApp({ name: "two", routes: [{ ...route, path: "/x/:b" }] }),
    ];
    await expect(serve({ hf: bench.hf, kinds: [], apps, port: 0, token: TOKEN })).rejects.toThrow(
      'GET /x/:b belongs to the app "one" and to the app "two".',
    );
  });
});
