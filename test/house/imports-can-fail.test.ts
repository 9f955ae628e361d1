// A rule that cannot fail holds nothing. Each rule gets examples that break it, and neighbours that must pass.
import { describe, expect, test } from "vitest";
import {
  bucketNames,
  driverImports,
  importCycles,
  indexImports,
  processOutsideCli,
  roomsWithoutLevel,
  spansByTimeOfDay,
  sqlOutsideStore,
  upwardImports,
} from "./rules.ts";
import { parseSource, type Source } from "./sources.ts";

/** Sources from a list of path → code. */
function house(files: Record<string, string>): Source[] {
  return Object.entries(files).map(([path, code]) => parseSource(path, code));
}

type Rule = (sources: Source[]) => string[];

function breaks(rule: Rule, path: string, code: string): void {
  const problems = rule(house({ [path]: `// a first line\n${code}\n` }));
  expect(problems, code).toHaveLength(1);
  expect(problems[0], code).toContain(`${path}:2  `);
}

function passes(rule: Rule, path: string, code: string): void {
  expect(rule(house({ [path]: code })), code).toEqual([]);
}

const values: Rule = (sources) => importCycles(sources, { types: false });
const all: Rule = (sources) => importCycles(sources, { types: true });

describe("levels", () => {
  test("an import that goes up is reported, in every form an import can have", () => {
    for (const code of [
      `import { Worker } from "../worker/worker.ts";`,
      `import type { Worker } from "../worker/worker.ts";`,
      `import { type Worker } from "../worker/worker.ts";`,
      `import "../worker/worker.ts";`,
      `import "../worker/worker.js";`,
      `export { Worker } from "../worker/worker.ts";`,
      `export type { Worker } from "../worker/worker.ts";`,
      `export * from "../worker/worker.ts";`,
      `const worker = await import("../worker/worker.ts");`,
      `let worker: import("../worker/worker.ts").Worker;`,
      `const worker = require("../worker/worker.ts");`,
      `const thread = new URL("../worker/lease-thread.js", import.meta.url);`,
      `import { Worker } from "#src/worker/worker.js";`,
      `import { http } from "holdfast/http";`,
    ]) {
      breaks(upwardImports, "src/job/define-job.ts", code);
    }
  });

  test("rooms on one level do not import each other", () => {
    breaks(upwardImports, "src/worker/worker.ts", `import { janitor } from "../janitor/janitor.ts";`);
    breaks(upwardImports, "src/store/sql.ts", `import { MIGRATIONS } from "../migrate/migrations.generated.ts";`);
    breaks(upwardImports, "src/options.ts", `import { defineJob } from "./job/define-job.ts";`);
    breaks(upwardImports, "src/cli/main.ts", `import { open } from "../index.ts";`);
  });

  test("each level refuses the one above it", () => {
    const rooms = ["shared", "job", "db", "store", "worker", "client", "http", "cli"];
    for (const [level, room] of rooms.slice(0, -1).entries()) {
      breaks(upwardImports, `src/${room}/a.ts`, `import "../${rooms[level + 1] ?? ""}/b.ts";`);
      passes(upwardImports, `src/${rooms[level + 1] ?? ""}/b.ts`, `import "../${room}/a.ts";`);
    }
  });

  test("down, inside the room, and packages are fine", () => {
    passes(upwardImports, "src/worker/worker.ts", `import { claimJobs } from "../store/jobs/claim.ts";`);
    passes(upwardImports, "src/store/jobs/claim.ts", `import { sql } from "../sql.ts";`);
    passes(upwardImports, "src/open.ts", `import { Client } from "./client.ts";`);
    passes(upwardImports, "src/client.ts", `import type { open } from "./open.ts";`);
    passes(upwardImports, "src/errors.ts", `import { formatDuration } from "./shared/duration.ts";`);
    passes(upwardImports, "src/shared/duration.ts", `import { OptionInvalid } from "../errors.ts";`);
    passes(upwardImports, "src/http/server.ts", `import { Hono } from "hono";`);
    passes(
      upwardImports,
      "src/job/a.ts",
      `// import "../worker/worker.ts"\nconst text = 'import "../worker/worker.ts"';`,
    );
  });

  test("a room nobody gave a level is reported", () => {
    expect(roomsWithoutLevel(house({ "src/mailbox/put.ts": "", "src/queue.ts": "", "src/job/job.ts": "" }))).toEqual([
      expect.stringContaining("src/mailbox/put.ts:1  "),
      expect.stringContaining("src/queue.ts:1  "),
    ]);
  });
});

describe("cycles", () => {
  test("two files that import each other are one cycle", () => {
    const sources = house({
      "src/job/a.ts": `\nimport "./b.ts";`,
      "src/job/b.ts": `import "./a.ts";`,
      "src/job/outside.ts": `import "./a.ts";`,
    });
    expect(values(sources)).toEqual([expect.stringContaining("src/job/a.ts:2 -> src/job/b.ts:1 -> src/job/a.ts")]);
  });

  test("a long way round, a file that imports itself, and a lazy import are cycles", () => {
    const long = { "src/job/a.ts": `import "./b.ts";`, "src/job/b.ts": `import "./c.ts";`, "src/job/c.ts": "" };
    expect(values(house(long))).toEqual([]);
    expect(values(house({ ...long, "src/job/c.ts": `export * from "./a.ts";` }))).toHaveLength(1);
    expect(values(house({ ...long, "src/job/c.ts": `const a = () => import("./a.ts");` }))).toHaveLength(1);
    expect(values(house({ "src/job/a.ts": `import "./a.ts";` }))).toHaveLength(1);
  });

  test("two separate cycles are both reported", () => {
    const sources = house({
      "src/job/a.ts": `import "./b.ts";`,
      "src/job/b.ts": `import "./a.ts";`,
      "src/db/a.ts": `import "./b.ts";`,
      "src/db/b.ts": `import "./a.ts";`,
    });
    expect(values(sources)).toHaveLength(2);
  });

  test("a cycle closed by a type is none at run time, and is one with types included", () => {
    const sources = house({ "src/job/a.ts": `import "./b.ts";`, "src/job/b.ts": `import type { A } from "./a.ts";` });
    expect(values(sources)).toEqual([]);
    expect(all(sources)).toHaveLength(1);
  });

  test("a thread's file may import the file that starts it", () => {
    const sources = house({
      "src/worker/keeper.ts": `new Worker(new URL("./keeper-thread.js", import.meta.url));`,
      "src/worker/keeper-thread.ts": `import "./keeper.ts";`,
    });
    expect(all(sources)).toEqual([]);
  });
});

describe("doors and drivers", () => {
  test("an import of src/index.ts is reported, by path or by the package's name", () => {
    breaks(indexImports, "src/cli/main.ts", `import { open } from "../index.ts";`);
    breaks(indexImports, "src/cli/main.ts", `import type { Holdfast } from "../index.js";`);
    breaks(indexImports, "src/cli/main.ts", `import { open } from "holdfast";`);
    breaks(indexImports, "src/cli/main.ts", `const { open } = await import("#src/index.js");`);
    passes(indexImports, "src/cli/main.ts", `import { server } from "../http/index.ts";`);
  });

  test("pg and PGlite outside db/ are reported, types included", () => {
    breaks(driverImports, "src/store/sql.ts", `import pg from "pg";`);
    breaks(driverImports, "src/client.ts", `import type { ClientBase } from "pg";`);
    breaks(driverImports, "src/client.ts", `let pool: import("pg").Pool;`);
    breaks(driverImports, "src/migrate/migrate.ts", `import { parse } from "pg-connection-string";`);
    breaks(driverImports, "src/testing/index.ts", `await import("@electric-sql/pglite");`);
    breaks(driverImports, "src/testing/index.ts", `import { vector } from "@electric-sql/pglite/vector";`);
    passes(driverImports, "src/db/postgres.ts", `import pg from "pg";`);
    passes(driverImports, "src/db/embedded.ts", `await import("@electric-sql/pglite");`);
    passes(driverImports, "src/http/pages.ts", `import { pages } from "pgpages";`);
  });
});

describe("SQL", () => {
  const statements = [
    '"select id from jobs"',
    '"SELECT id FROM jobs"',
    "`\n  select *\n  from ${schema}.jobs\n  where id = 1`",
    "sql`select id from jobs`",
    "`with due as (\n  select 1\n)\nupdate jobs set state = 'x'`",
    '"insert into jobs (id) values (1)"',
    "`insert into ${table} default values`",
    '"update jobs set state = 1"',
    "`update ${table} as j set ${columns}`",
    '"delete from jobs"',
    '"delete " + "from jobs where id = 1"',
    '"create table jobs (id uuid)"',
    '"create unique index concurrently if not exists jobs_claimable on jobs (id)"',
    '"alter table jobs add column x int"',
    '"drop schema holdfast cascade"',
    '"truncate table jobs"',
    '"explain (analyze, buffers) select id from jobs"',
    '"-- the head of a group\\nselect id from jobs"',
    '"commit; delete from jobs"',
    '"where id = $1"',
    '"for update skip locked"',
    '"on conflict (id) do nothing"',
  ];
  const sessions = [
    '"select 1"',
    '"select pg_notify($1, $2)"',
    '"set local lock_timeout = 10"',
    '`listen "${channel}"`',
  ];

  test("a statement about tables outside store/ and migrate/ is reported, also in db/", () => {
    for (const text of statements) {
      for (const path of ["src/worker/claim-loop.ts", "src/db/postgres.ts", "src/open.ts"]) {
        breaks(sqlOutsideStore, path, `const statement = ${text};`);
      }
      passes(sqlOutsideStore, "src/store/jobs/claim.ts", `const statement = ${text};`);
      passes(sqlOutsideStore, "src/migrate/migrate.ts", `const statement = ${text};`);
    }
  });

  test("a statement about the session may be in db/, and nowhere above", () => {
    for (const text of sessions) {
      breaks(sqlOutsideStore, "src/worker/claim-loop.ts", `const statement = ${text};`);
      passes(sqlOutsideStore, "src/db/postgres.ts", `const statement = ${text};`);
    }
    for (const text of ["begin", "commit", "rollback", "LISTEN holdfast", "checkpoint"]) {
      breaks(sqlOutsideStore, "src/client.ts", `await tx.query("${text}");`);
      passes(sqlOutsideStore, "src/db/postgres.ts", `await tx.query("${text}");`);
    }
  });

  test("prose, names and comments are not SQL", () => {
    for (const code of [
      `const hint = "Select a queue from the list, or update the settings.";`,
      `const hint = "To start again, delete from the folder what is left, and set lease to 30s.";`,
      `const hint = "The values are set by limits, and cost $ 5.";`,
      `const help = "update the options, set a lease";`,
      `const hint = 'Run "create schema holdfast" as the owner first.';`,
      `const html = "<select name=x><option>from</option></select>";`,
      `// select id from jobs where id = $1`,
      `/** insert into jobs */`,
      `const event = "commit";`,
      `hf.on("begin", () => {});`,
      `const state = context.req.query("state");`,
      `const text = "with a lease as long as (say) 30s";`,
    ]) {
      passes(sqlOutsideStore, "src/http/routes.ts", code);
    }
  });
});

describe("the process", () => {
  test("the environment, signals, output and exits outside cli/ are reported", () => {
    for (const code of [
      `const url = process.env.DATABASE_URL;`,
      `const url = process["env"].DATABASE_URL;`,
      `const { env } = process;`,
      `const url = globalThis.process.env.DATABASE_URL;`,
      `start({ process });`,
      `process.exit(1);`,
      `process.exitCode = 1;`,
      `process.on("SIGTERM", stop);`,
      `process.once("SIGTERM", stop);`,
      `process.stdout.write("x");`,
      `process.stderr.write("x");`,
      `const args = process.argv.slice(2);`,
      `console.log("x");`,
      `const log = console;`,
      `import { env } from "node:process";`,
      `import { Console } from "node:console";`,
    ]) {
      breaks(processOutsideCli, "src/worker/shutdown.ts", code);
      passes(processOutsideCli, "src/cli/main.ts", code);
    }
  });

  test("facts about the process and other things of that name are fine", () => {
    for (const code of [
      `const id = process.pid;`,
      `const isNode = typeof process !== "undefined";`,
      `queue.process(job);`,
      `interface Runner { process(job: string): void; console: string }`,
      `const holder = { process: 12 };`,
      `type Handle = typeof process;`,
      `// process.exit(1), console.log`,
      `const hint = "Set process.env.DATABASE_URL";`,
    ]) {
      passes(processOutsideCli, "src/worker/shutdown.ts", code);
    }
  });
});

test("a file or folder with a bucket's name is reported", () => {
  const names = ["utils", "helpers", "common", "lib", "types", "interfaces", "core"];
  const files = names.flatMap((name) => [`src/job/${name}.ts`, `src/${name}/job.ts`]);
  for (const path of files)
    expect(bucketNames(house({ [path]: "" }))).toEqual([expect.stringContaining(`${path}:1  `)]);
  passes(bucketNames, "src/job/outcome.ts", "");
  passes(bucketNames, "src/shared/typed-emitter.ts", "");
});

describe("clocks", () => {
  test("a span that is measured by the time of day is reported; ids and commands may read it", () => {
    breaks(spansByTimeOfDay, "src/worker/settle.ts", "const until = Date.now() + 5_000;");
    breaks(spansByTimeOfDay, "src/janitor/janitor.ts", "const clock = Date.now;");
    passes(spansByTimeOfDay, "src/worker/settle.ts", "const until = performance.now() + 5_000;");
    passes(spansByTimeOfDay, "src/shared/uuid.ts", "const now = Date.now();");
    passes(spansByTimeOfDay, "src/cli/log.ts", "const now = Date.now();");
  });
});
