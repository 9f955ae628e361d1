// holdfast dev takes over a changed configuration while it runs, and keeps what it had if the new one cannot be loaded.
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, makeFolder, run, type Running, start } from "./holdfast.ts";

let cwd: string;
let server: Running;

const writeJob = (name: string, result: string, more = "") =>
  writeFile(
    join(cwd, "jobs", `${name}.ts`),
    `import { defineJob } from "holdfast";
     ${more}
     export const ${name} = defineJob<{ ms?: number } | null>("${name}", {
       async run(job) {
         await new Promise((resolve) => setTimeout(resolve, job.payload?.ms ?? 0));
         return ${result};
       },
     });`,
  );
const writeConfig = (names: string[], more = "") =>
  writeFile(
    join(cwd, "holdfast.config.ts"),
    `import { defineApp, defineConfig } from "holdfast";
     ${names.map((name) => `import { ${name} } from "./jobs/${name}.ts";`).join("\n")}
     export default defineConfig({ jobs: [${names.join(", ")}], ${more} });`,
  );

beforeAll(async () => {
  cwd = await makeFolder();
  await run(["init", "."], { cwd });
  await writeJob("first", '"old"');
  await writeConfig(["first"]);
  server = await start(["dev"], { cwd, env: { HOLDFAST_PORT: "0" } });
}, 180_000);
afterAll(cleanUp);

let seen = 0;
/** The next time it says this. */
async function says(text: string): Promise<string> {
  const find = (): string | undefined =>
    server.stderr
      .slice(seen)
      .split("\n")
      .find((line) => line.includes(text));
  await expect.poll(find, { timeout: 20_000, message: `${text} in\n${server.stderr.slice(seen)}` }).toBeDefined();
  const line = find()!;
  seen = server.stderr.indexOf(line, seen) + line.length;
  return line;
}
const enqueue = async (kind: string, payload = "null"): Promise<unknown> => {
  const { stdout, stderr } = await run(["enqueue", kind, payload, "--wait", "--json"], { cwd });
  expect(stdout, stderr).not.toBe("");
  return (JSON.parse(stdout) as { result: unknown }).result;
};

test("an imported file changes: new jobs run the new code, one that runs ends with the old", async () => {
  const running = enqueue("first", '{"ms":3000}');
  await expect
    .poll(async () => (await run(["jobs", "--state", "running", "--json"], { cwd })).stdout, { timeout: 20_000 })
    .toContain('"first"');
  await writeJob("first", '"new"');
  expect(await says("was taken over")).toContain('"goOn":1');
  expect(await enqueue("first")).toBe("new");
  expect(await running).toBe("old");
});

test("a configuration that cannot be loaded changes nothing, says why, and is tried again", async () => {
  await writeConfig(["first", "second"]);
  expect(await says("was not taken over")).toMatch(/Cannot find module.*second/);
  expect(await enqueue("first")).toBe("new");
  // It was looked for: when it comes, everything is there.
  await writeJob("second", "2");
  await says("was taken over");
  expect(await enqueue("second")).toBe(2);

  await writeJob("second", "3", "throw new Error('not today');");
  expect(await says("was not taken over")).toContain("not today");
  await rename(join(cwd, "holdfast.config.ts"), join(cwd, "away.ts"));
  expect(await says("was not taken over")).toContain("holdfast.config.ts is not there any more.");
  expect(await enqueue("second")).toBe(2);
  await writeJob("second", "4");
  await rename(join(cwd, "away.ts"), join(cwd, "holdfast.config.ts"));
  await says("was taken over");
  expect(await enqueue("second")).toBe(4);
});

test("apps and their routes come and go; what needs a restart is told", async () => {
  const route = `{ method: "GET", path: "/hello", auth: "public", handle: () => ({ hello: "app" }) }`;
  await writeConfig(["first"], `keepDone: "1h", apps: [defineApp({ name: "hello", routes: [${route}] })]`);
  await says("was taken over");
  expect(await says("takes effect at the next start")).toContain("keepDone is another");
  expect(await (await fetch(`${server.ready.url}/hello`)).json()).toEqual({ hello: "app" });
  const gone = await run(["enqueue", "second"], { cwd });
  expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining("Known kinds: first")]);
  server.kill("SIGTERM");
  expect((await server.ended).code).toBe(0);
});
