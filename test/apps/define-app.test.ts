// defineApp(): what is wrong is named, with its value and what to do.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { type AppOptions, defineApp } from "#src/apps/define-app.js";
import { migrationsFrom } from "#src/apps/migrations-from.js";

const handle = () => null;

test.each<[string, unknown, string, string]>([
  ["nothing", null, "defineApp() got no options.", "name"],
  ["no name", {}, "defineApp().name is missing.", "lower-case"],
  ["a name with a space", { name: "My App" }, 'defineApp().name is "My App".', "lower-case"],
  ["a typing mistake", { name: "a", route: [] }, 'defineApp("a") has the unknown option "route".', 'mean "routes"?'],
  ["jobs that are no list", { name: "a", jobs: {} }, 'defineApp("a").jobs is {}.', "Give a list"],
  ["a route that is none", { name: "a", routes: [7] }, 'defineApp("a").routes[0] is 7.', "object"],
  [
    "a route without auth",
    { name: "a", routes: [{ method: "GET", path: "/x", handle }] },
    'defineApp("a").routes[0].auth is missing.',
    'Say who may call it: "public", "token"',
  ],
  [
    "a method that is none",
    { name: "a", routes: [{ method: "get", path: "/x", auth: "public", handle }] },
    'defineApp("a").routes[0].method is "get".',
    "GET, POST",
  ],
  [
    "a path of Holdfast's own",
    { name: "a", routes: [{ method: "GET", path: "/api/v1/x", auth: "public", handle }] },
    "which is Holdfast's own",
    "another first part",
  ],
  [
    "a path that is none",
    { name: "a", routes: [{ method: "GET", path: "x/*", auth: "public", handle }] },
    'path is "x/*".',
    "from the root",
  ],
  [
    "a role where nobody is asked",
    { name: "a", routes: [{ method: "GET", path: "/x", auth: "public", role: "admin", handle }] },
    "no token is asked for",
    'auth: "token"',
  ],
  [
    "a scope without its name in the path",
    { name: "a", routes: [{ method: "GET", path: "/x/:id", auth: "token", scope: "recipient", handle }] },
    "no :recipient",
    "Name it",
  ],
  [
    "no handler",
    { name: "a", routes: [{ method: "GET", path: "/x", auth: "public" }] },
    'defineApp("a").routes[0].handle is missing.',
    "function",
  ],
  [
    "two migrations of one name",
    {
      name: "a",
      migrations: [
        { name: "1", sql: "select 1" },
        { name: "1", sql: "select 2" },
      ],
    },
    "two migrations named 1",
    "name of its own",
  ],
  ["a migration without SQL", { name: "a", migrations: [{ name: "1", sql: " " }] }, "sql is", "as text"],
  ["a command of three words", { name: "a", commands: [{ name: "a b c", summary: "", run: handle }] }, "a b c", "two"],
  ["a page without either", { name: "a", page: { title: "A" } }, "neither", "folder or render"],
  ["a start that is none", { name: "a", start: true }, 'defineApp("a").start is true.', "function"],
])("%s", (_, options, message, hint) => {
  let caught: unknown;
  try {
    defineApp(options as AppOptions);
  } catch (error) {
    caught = error;
  }
  expect(caught).toMatchObject({
    code: "HOLDFAST_OPTION_INVALID",
    message: expect.stringContaining(message),
    hint: expect.stringContaining(hint),
  });
});

test("an app is what was given, and cannot be changed", () => {
  const app = defineApp({ name: "a" });
  expect(app).toEqual({ name: "a" });
  expect(Object.isFrozen(app)).toBe(true);
  expect(defineApp(app)).toEqual(app);
});

test("migrations from a folder come in the order of their names; a folder that is not there is named", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-migrations-"));
  for (const name of ["002_b.sql", "001_a.sql", "notes.txt"]) writeFileSync(join(folder, name), `-- ${name}`);
  const expected = [
    { name: "001_a", sql: "-- 001_a.sql" },
    { name: "002_b", sql: "-- 002_b.sql" },
  ];
  expect(migrationsFrom(folder)).toEqual(expected);
  expect(migrationsFrom(pathToFileURL(`${folder}/`))).toEqual(expected);
  rmSync(folder, { recursive: true });
  expect(() => migrationsFrom(folder)).toThrow(`The folder of migrations ${folder} cannot be read.`);
});
