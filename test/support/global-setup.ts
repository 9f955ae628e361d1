// Gives every test file one real PostgreSQL: the one TEST_DATABASE_URL names, or one started here and removed at the
// end. Tests read its address with inject("postgresUrl"); most want createDatabase() from database.ts instead.
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import type { TestProject } from "vitest/node";
import { binariesOf, startPostgres } from "./postgres-server.mjs";
import { QUICK_FOLDERS } from "./quick-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
    /** How the databases are called that createMigratedDatabase() copies; made by whoever needs one first. */
    migratedTemplate: string;
    /** How databases are copied: what the server does on its own, or the way that is quick on the one started here. */
    copyStrategy: "" | "strategy file_copy";
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const template = `hf_test_template_${randomBytes(6).toString("hex")}`;
  project.provide("migratedTemplate", template);
  const given = process.env["TEST_DATABASE_URL"];
  if (given) {
    project.provide("postgresUrl", given);
    project.provide("copyStrategy", "");
    return async () => {
      const client = new Client({ connectionString: given, connectionTimeoutMillis: 10_000 });
      await client.connect();
      const { rows } = await client.query<{ name: string }>(
        "select datname as name from pg_database where datname like $1 || '%'",
        [template],
      );
      for (const { name } of rows) await client.query(`drop database if exists ${name} with (force)`);
      await client.end();
    };
  }
  // Nobody kills this one, and it would have to be the machine that dies: waiting for the disk proves nothing. What is
  // tried with servers that end has a server of its own, which does wait.
  const fsync = process.env["TEST_FSYNC"] ?? "off";
  const major = process.env["TEST_POSTGRES"];
  const server = await startPostgres({
    settings: { fsync, max_wal_size: "1GB" },
    ...(major ? { bin: binariesOf(major) } : {}),
    ...(fsync === "off" ? { under: QUICK_FOLDERS } : {}),
  });
  project.provide("postgresUrl", server.url());
  // Written to the log as well, as it is by default, a copy costs ten times as much.
  // PostgreSQL 14 knows no other way, and no name for it.
  project.provide("copyStrategy", fsync === "off" && major !== "14" ? "strategy file_copy" : "");
  return () => server.remove();
}
