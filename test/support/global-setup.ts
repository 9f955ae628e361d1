// Gives every test file one real PostgreSQL: the one TEST_DATABASE_URL names, or one started here and removed at the
// end. Tests read its address with inject("postgresUrl"); most want createDatabase() from database.ts instead.
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres-server.mjs";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
    /** How the databases are called that createMigratedDatabase() copies; made by whoever needs one first. */
    migratedTemplate: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const template = `hf_test_template_${randomBytes(6).toString("hex")}`;
  project.provide("migratedTemplate", template);
  const given = process.env["TEST_DATABASE_URL"];
  if (given) {
    project.provide("postgresUrl", given);
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
  const server = await startPostgres({ settings: { fsync: process.env["TEST_FSYNC"] ?? "off" } });
  project.provide("postgresUrl", server.url());
  return () => server.remove();
}
