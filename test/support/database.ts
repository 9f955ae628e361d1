// A fresh database on the server of this test run: empty, or with Holdfast's schema in it. drop() also throws out whoever
// is still connected.
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";
import { open } from "#src/open.js";

export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  drop(): Promise<void>;
}

/** Empty. */
export async function createDatabase(): Promise<TestDatabase> {
  // template0 takes no connections, so nobody can be "accessing" it while it is copied.
  return await copyOf("template0");
}

/** As open() leaves a new one. Copied from the run's template, which is ten times cheaper than all migrations. */
export async function createMigratedDatabase(schema = "holdfast"): Promise<TestDatabase> {
  const template = `${inject("migratedTemplate")}_${schema}`;
  await makeTemplate(template, schema);
  return await copyOf(template);
}

async function copyOf(template: string): Promise<TestDatabase> {
  const server = inject("postgresUrl");
  const name = `hf_test_${process.pid}_${randomBytes(6).toString("hex")}`;
  await admin(server, `create database ${name} template ${template} ${inject("copyStrategy")}`);
  return {
    name,
    url: databaseUrl(server, name),
    drop: () => admin(server, `drop database if exists ${name} with (force)`),
  };
}

/** The same server and user, another database. */
export function databaseUrl(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

/** Whoever needs it first makes it; the others wait for that. It takes no connections, like template0. */
async function makeTemplate(name: string, schema: string): Promise<void> {
  const server = inject("postgresUrl");
  await asAdmin(server, async (client) => {
    const isThere = async (): Promise<boolean> => {
      const { rows } = await client.query("select from pg_database where datname = $1 and not datallowconn", [name]);
      return rows.length > 0;
    };
    if (await isThere()) return;
    // Of the session, which ends here.
    await client.query("select pg_advisory_lock(hashtext($1))", [name]);
    if (await isThere()) return;
    await client.query(`drop database if exists ${name} with (force)`);
    await client.query(`create database ${name} template template0 ${inject("copyStrategy")}`);
    const hf = await open({ database: databaseUrl(server, name), schema });
    await hf.close();
    await client.query(`alter database ${name} allow_connections false`);
  });
}

const admin = (url: string, statement: string): Promise<void> =>
  asAdmin(url, async (client) => void (await client.query(statement)));

async function asAdmin(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
