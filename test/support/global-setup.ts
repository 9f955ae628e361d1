// Gives every test file one real PostgreSQL: the one TEST_DATABASE_URL names, or one started here and removed at the
// end. Tests read its address with inject("postgresUrl"); most want createDatabase() from database.ts instead.
import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres-server.mjs";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env["TEST_DATABASE_URL"];
  if (given) {
    project.provide("postgresUrl", given);
    return async () => {};
  }
  const server = await startPostgres();
  project.provide("postgresUrl", server.url());
  return () => server.remove();
}
