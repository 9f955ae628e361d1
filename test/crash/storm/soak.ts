// What must not grow for ever: the heap and the handles of a worker that lives through the whole storm, the tables of live
// work, the log of PostgreSQL.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { SCHEMA, type Storm } from "./storm.ts";

const MB = 1_048_576;
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

export async function whatGrew(storm: Storm): Promise<string[]> {
  const wrong: string[] = [];
  const { child } = storm.places[0]!.worker;
  const sizes = child.said.filter((said) => said.what === "size");
  if (storm.places[0]!.worker.lives !== 1 || sizes.length < 20) {
    return [`the spared worker lived ${storm.places[0]!.worker.lives} times and was measured ${sizes.length} times`];
  }
  // After it has warmed up: the second fifth against the last.
  const fifth = Math.floor(sizes.length / 5);
  const of = (name: string, from: number): number =>
    median(sizes.slice(from, from + fifth).map((said) => Number(said[name])));
  const early = { heap: of("heapUsed", fifth), handles: of("handles", fifth) };
  const late = { heap: of("heapUsed", sizes.length - fifth), handles: of("handles", sizes.length - fifth) };
  if (late.heap > early.heap + 20 * MB) {
    wrong.push(`the heap grew from ${Math.round(early.heap / MB)} to ${Math.round(late.heap / MB)} MB`);
  }
  if (late.handles > early.handles + 30) wrong.push(`handles grew from ${early.handles} to ${late.handles}`);
  const wal = readdirSync(join(storm.server.data, "pg_wal")).reduce(
    (sum, name) => sum + statSync(join(storm.server.data, "pg_wal", name)).size,
    0,
  );
  if (wal > 768 * MB) wrong.push(`PostgreSQL keeps ${Math.round(wal / MB)} MB of log`);
  const tables = await storm.ask<{ name: string; bytes: number }>(
    `select c.relname as name, pg_total_relation_size(c.oid)::double precision as bytes from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relname = any($2)`,
    [SCHEMA, ["jobs", "leases", "workers", "job_groups", "job_notes"]],
  );
  for (const { name, bytes } of tables) {
    if (bytes > 128 * MB) wrong.push(`${name} has ${Math.round(bytes / MB)} MB`);
  }
  // One that has stopped working does not grow either.
  const [recent] = await storm.ask<{ count: number }>(
    `select count(*)::integer as count from proof.exec_log
     where worker = $1 and what = 'end' and at > clock_timestamp() - interval '1 minute'`,
    [child.name],
  );
  if (recent!.count < 10) wrong.push(`the spared worker did ${recent!.count} jobs in the last minute`);
  const seen = {
    early,
    late,
    walMb: Math.round(wal / MB),
    tables: tables.map((t) => `${t.name} ${Math.round(t.bytes / 1024)} kB`),
  };
  process.stderr.write(`${JSON.stringify(seen)}\n`);
  return wrong;
}
