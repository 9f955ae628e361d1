// The same while another connection holds a snapshot: nothing that is dead can be vacuumed.
import pg from "pg";
import { run as steady } from "./steady.mjs";

export const tuning = "throughput";

export async function run(bench) {
  const client = new pg.Client(bench.url);
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select txid_current()");
  try {
    return await steady(bench);
  } finally {
    await client.end();
  }
}
