// Commits numbered rows for ever and prints each number once its commit was acknowledged. First it prints what it found:
// "found <json>". Ends properly on SIGTERM.
// node commit-rows.mjs <folder> <seed>
import { openEmbedded } from "../../../dist/db/embedded.js";

const [folder, seed] = process.argv.slice(2);
const db = await openEmbedded({ folder }, { seed, command: "commit-rows" });
await db.script(`
  create table if not exists entry (n int primary key, body text not null);
  create table if not exists twin (n int primary key references entry);
  create table if not exists tally (one int primary key, n int not null);
  insert into tally values (1, 0) on conflict do nothing;
`);
const { rows } = await db.query(`select
  (select count(*)::int from entry) as entries,
  (select coalesce(max(n), 0) from entry) as last,
  (select count(*)::int from twin) as twins,
  (select n from tally) as tally`);
process.stdout.write(`found ${JSON.stringify(rows[0])}\n`);

let stop = false;
process.once("SIGTERM", () => (stop = true));
for (let n = rows[0].last + 1; !stop; n += 1) {
  await db.transaction(async (tx) => {
    await tx.query("insert into entry values ($1, $2)", [n, `row ${n} `.repeat((n % 40) + 1)]);
    await tx.query("insert into twin values ($1)", [n]);
    await tx.query("update tally set n = $1", [n]);
  });
  process.stdout.write(`${n}\n`);
}
await db.close();
process.stdout.write("closed\n");
