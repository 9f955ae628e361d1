// Runs a block of SQL as psql would: all of it, transactions included, on a connection of its own.
import { Client } from "pg";

export async function runSql(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
