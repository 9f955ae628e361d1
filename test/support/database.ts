// A fresh, empty database on the server of this test run. drop() also throws out whoever is still connected.
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";

export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  drop(): Promise<void>;
}

export async function createDatabase(): Promise<TestDatabase> {
  const server = inject("postgresUrl");
  const name = `hf_test_${process.pid}_${randomBytes(6).toString("hex")}`;
  // template0 takes no connections, so nobody can be "accessing" it while it is copied.
  await admin(server, `create database ${name} template template0`);
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

async function admin(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
