// holdfast.config.*: found, loaded, checked; what is wrong with it is told with the file's name.
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadConfig, makeConfigLoader } from "#src/cli/config-file.js";
import { explain } from "#src/cli/exit-codes.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-config-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const write = (name: string, text: string) => writeFile(join(folder, name), text);

async function problem(asked?: string): Promise<string> {
  const error: unknown = await loadConfig(folder, asked).then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  const { message, hint, exitCode } = explain(error);
  expect(exitCode).toBe(2);
  return `${message} ${hint ?? ""}`;
}

const kind = 'import { defineJob } from "holdfast"; const a = defineJob("a", { run() {} });';

test.each([
  ["holdfast.config.ts", "interface A { n: number } const a: A = { n: 4 }; export default { concurrency: a.n };"],
  ["holdfast.config.mts", "export default async () => ({ concurrency: 4 as number });"],
  ["holdfast.config.js", "module.exports = { concurrency: 4 };"],
  ["holdfast.config.mjs", "export default { concurrency: 4 };"],
  ["holdfast.config.json", '{ "concurrency": 4 }'],
])("%s", async (name, text) => {
  await write(name, text);
  expect(await loadConfig(folder)).toMatchObject({ name, path: join(folder, name), config: { concurrency: 4 } });
});

test("no file is fine; one that was named must be there; two are one too many", async () => {
  expect(await loadConfig(folder)).toBeNull();
  expect(await problem("other.ts")).toContain("The configuration file other.ts is not there.");
  await write("holdfast.config.json", "{}");
  await write("holdfast.config.mjs", "export default {}");
  expect(await problem()).toContain("several configuration files here: holdfast.config.mjs, holdfast.config.json");
  expect(await loadConfig(folder, "holdfast.config.json")).not.toBeNull();
});

test("what was compiled is kept beside the project's packages, never elsewhere, and a changed file is compiled anew", async () => {
  const compiled = join(folder, "node_modules", ".cache", "holdfast");
  await write("holdfast.config.ts", "export default { concurrency: 4 as number };");
  const loader = makeConfigLoader(folder);
  await loader.load();
  expect(await readdir(folder)).toEqual(["holdfast.config.ts"]);
  await mkdir(join(folder, "node_modules"));
  await loader.load();
  expect(await readdir(compiled)).toHaveLength(1);
  expect((await loader.load())?.config).toEqual({ concurrency: 4 });
  await write("holdfast.config.ts", "export default { concurrency: 5 as number };");
  expect((await loader.load())?.config).toEqual({ concurrency: 5 });
});

test("a database's URL is not shown, whatever it is", async () => {
  await write("holdfast.config.ts", 'export default { database: { password: "hunter2" } };');
  expect(await problem()).toContain("holdfast.config.ts has database: something that is no text.");
  expect(await problem()).not.toContain("hunter2");
});

test("jobs may come from other files, and from holdfast itself", async () => {
  await write("jobs.ts", `${kind} export { a };`);
  await write("holdfast.config.ts", 'import { a } from "./jobs"; export default { jobs: [a] };');
  expect((await loadConfig(folder))?.config.jobs?.map((job) => job.kind)).toEqual(["a"]);
});

test.each([
  ["export default { jobz: [] };", 'holdfast.config.ts has the unknown option "jobz". Did you mean "jobs"?'],
  ["export default { jobs: {} };", "holdfast.config.ts has jobs that are not a list."],
  ["export default { jobs: [{}] };", "holdfast.config.ts has no job kind at jobs[0]. Put there what defineJob()"],
  [`${kind} export default { jobs: [a, a] };`, 'holdfast.config.ts lists the kind "a" twice.'],
  ["export default { port: '70a' };", 'holdfast.config.ts has port: "70a". Give a number: port: 7070.'],
  ["export default { concurrency: null };", "holdfast.config.ts has concurrency: null. Give a whole number"],
  ["export default { host: 5 };", 'holdfast.config.ts has host: 5. Give a text: host: "127.0.0.1".'],
  ["export default { migrate: 'no' };", 'holdfast.config.ts has migrate: "no". Write migrate: false if only'],
  ["export default { poolSize: '20' };", 'holdfast.config.ts has poolSize: "20". Give a whole number: poolSize: 20.'],
  ["export default { callTimeout: 10 };", "holdfast.config.ts has callTimeout: 10. Give a duration"],
  ["export default { data: '' };", 'holdfast.config.ts has data: "". Give a folder'],
  ["export default { allowedHosts: 'a' };", 'holdfast.config.ts has allowedHosts: "a". Give a list of names'],
  ["export default { allowedHosts: [1] };", "holdfast.config.ts has allowedHosts: [1]."],
  ["export default { apps: {} };", "holdfast.config.ts has apps that are not a list. Write apps: [myApp"],
  ["export default { apps: [undefined] };", "holdfast.config.ts has no app at apps[0]: undefined. Put there what"],
  [
    "export default { apps: [{ name: 'a', routes: [{ method: 'GET', path: '/a', handle() {} }] }] };",
    'holdfast.config.ts, apps[0]: defineApp("a").routes[0].auth is missing. Say who may call it: "public"',
  ],
  ["export default { apps: [{ name: 'a' }, { name: 'a' }] };", 'holdfast.config.ts lists the app "a" twice.'],
  [
    'import { defineApp } from "holdfast"; export default { apps: [defineApp({ name: "A" })] };',
    'holdfast.config.ts cannot be loaded: defineApp().name is "A". Use 1 to 40 lower-case',
  ],
  ["export const jobs = [];", "holdfast.config.ts does not export a configuration. Write export default"],
  ["export default [];", "holdfast.config.ts does not export a configuration."],
  ["export default {", "holdfast.config.ts cannot be loaded"],
  ['throw new Error("my mistake");', "holdfast.config.ts cannot be loaded: my mistake It fails at"],
  ['import "nowhere-at-all"; export default {};', "nowhere-at-all"],
])("%s", async (text, message) => {
  await write("holdfast.config.ts", text);
  expect(await problem()).toContain(message);
});
