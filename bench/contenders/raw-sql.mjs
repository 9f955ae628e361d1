// Raw SQL: the least a durable queue with history can do on this machine. No retries, no leases, no fencing: a yardstick
// for the ratio to the physical limit, not a contender. Only with --only=…,raw-sql.
import pg from "pg";

const CLAIM = 500;

export async function setup(url) {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  await pool.query(`
    create table raw_jobs (id bigserial primary key, claimed boolean not null default false, payload jsonb not null)
      with (fillfactor = 50);
    create table raw_history (id bigint, payload jsonb not null, finished_at timestamptz not null default now())`);
  let last = 0; // the watermark: what is before it was claimed by this process
  let stopped = false;
  let loops = [];
  const insert = (payloads) =>
    pool.query({
      name: "insert",
      text: "insert into raw_jobs (payload) select value from jsonb_array_elements($1::jsonb)",
      values: [JSON.stringify(payloads)],
    });
  const claim = () =>
    pool.query({
      name: "claim",
      text: `with off as (select set_config('synchronous_commit', 'off', true) as setting)
        update raw_jobs set claimed = true from off
         where off.setting = 'off' and ctid = any (array(
           select ctid from raw_jobs where id > $1 and not claimed order by id limit ${CLAIM} for update skip locked))
        returning id, payload`,
      values: [last],
    });
  const finish = (ids) =>
    pool.query({
      name: "finish",
      text: `with gone as (delete from raw_jobs where id = any ($1::bigint[]) returning id, payload)
        insert into raw_history (id, payload) select id, payload from gone`,
      values: [ids],
    });
  async function consume(onJob) {
    let finishing = Promise.resolve();
    let lookedBack = performance.now();
    while (!stopped) {
      // An id that committed late is behind the watermark.
      if (performance.now() - lookedBack > 1_000) {
        last = 0;
        lookedBack = performance.now();
      }
      const { rows } = await claim();
      if (rows.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        continue;
      }
      last = rows.reduce((highest, { id }) => Math.max(highest, Number(id)), last);
      for (const { payload } of rows) onJob(payload);
      await finishing;
      finishing = finish(rows.map(({ id }) => id));
    }
    await finishing;
  }
  return {
    settings: { claim: CLAIM },
    enqueueMany: insert,
    enqueueOne: (payload) => insert([payload]),
    async startWorker(onJob) {
      loops = [consume(onJob)];
    },
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
    async counts() {
      const { rows } = await pool.query(
        `select (select count(*)::int from raw_jobs) as unfinished, (select count(*)::int from raw_history) as finished`,
      );
      await pool.end();
      return rows[0];
    },
  };
}
