// What an id costs: UUIDv7 made by the client against bigint made by a sequence, in tables shaped like ours (a claim index,
// a history with a primary key). Interleaved rounds in one run; prints PostgreSQL's CPU and WAL per job as a ratio.
//
//   node bench/ids.mjs [rounds]
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { startPostgres } from "../test/support/postgres-server.mjs";

const ROUNDS = Number(process.argv[2] ?? 60);
const ROWS = 1_000;
const PAYLOAD = JSON.stringify({ n: 12345, to: "customer-12345@example.com", subject: "Your order is on its way" });

let last = 0;
function uuidv7() {
  last = Math.max(Date.now(), last);
  const bytes = randomBytes(16);
  bytes.writeUIntBE(last, 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const server = await startPostgres();
try {
  const client = new pg.Client(server.url());
  await client.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  const cpuMicros = () => Number(readFileSync(`/proc/${rows[0].pid}/schedstat`, "utf8").split(" ")[0]) / 1_000;
  const wal = async () =>
    Number((await client.query("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as n")).rows[0].n);

  const totals = {};
  for (const type of ["bigint", "uuid"]) {
    const made = type === "bigint" ? "bigint generated always as identity" : "uuid not null";
    await client.query(`
      create table jobs_${type} (id ${made}, run_at timestamptz not null, kind text collate "C" not null,
        rank smallint not null, payload jsonb not null, primary key (id)) with (fillfactor = 50);
      create index on jobs_${type} (kind, rank, run_at, id);
      create table history_${type} (id ${type} not null, finished_at timestamptz not null, payload jsonb not null,
        primary key (id, finished_at))`);
    totals[type] = { cpu: 0, wal: 0 };
  }
  const round = {
    async bigint() {
      const { rows: made } = await client.query(
        `insert into jobs_bigint (run_at, kind, rank, payload)
         select now(), 'mail.send', 0, value from jsonb_array_elements($1::jsonb) returning id`,
        [`[${Array.from({ length: ROWS }, () => PAYLOAD).join(",")}]`],
      );
      await settle("bigint", made);
    },
    async uuid() {
      const pairs = Array.from({ length: ROWS }, () => `["${uuidv7()}",${PAYLOAD}]`);
      const { rows: made } = await client.query(
        `insert into jobs_uuid (id, run_at, kind, rank, payload)
         select (value ->> 0)::uuid, now(), 'mail.send', 0, value -> 1 from jsonb_array_elements($1::jsonb) returning id`,
        [`[${pairs.join(",")}]`],
      );
      await settle("uuid", made);
    },
  };
  const settle = (type, made) =>
    client.query(
      `with gone as (delete from jobs_${type} where id = any($1::${type}[]) returning id, payload)
       insert into history_${type} select id, now(), payload from gone`,
      [made.map(({ id }) => id)],
    );

  for (let n = 0; n < ROUNDS; n++) {
    for (const type of n % 2 === 0 ? ["bigint", "uuid"] : ["uuid", "bigint"]) {
      const before = { cpu: cpuMicros(), wal: await wal() };
      await round[type]();
      const cpu = cpuMicros() - before.cpu;
      if (n < 5) continue;
      totals[type].cpu += cpu;
      totals[type].wal += (await wal()) - before.wal;
    }
  }
  const jobs = (ROUNDS - 5) * ROWS;
  for (const [type, { cpu, wal: bytes }] of Object.entries(totals)) {
    console.log(
      `${type.padEnd(7)} PostgreSQL ${(cpu / jobs).toFixed(2)} us per job, WAL ${Math.round(bytes / jobs)} bytes per job`,
    );
  }
  const ratio = (what) => (totals.uuid[what] / totals.bigint[what]).toFixed(2);
  console.log(`uuid / bigint: CPU ${ratio("cpu")}, WAL ${ratio("wal")}`);
  await client.end();
} finally {
  await server.remove();
}
