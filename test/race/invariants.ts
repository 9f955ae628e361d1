// What must hold at every moment, whoever writes: each line is a query for rows that must not be there.
import { expect } from "vitest";
import { Client } from "pg";

const MUST_BE_EMPTY: Record<string, string> = {
  "a job is live and finished at once": `
    select j.id from :s.jobs j join :s.job_history h on h.id = j.id`,
  "a job finished twice": `
    select id from :s.job_history group by id having count(*) > 1`,
  "a running job has no lease that names it": `
    select j.id from :s.jobs j where j.state = 'running' and not exists (
      select 1 from :s.leases l where l.token = j.token and j.id = any(l.job_ids))`,
  "a job used more attempts than it has": `
    select id from :s.jobs where attempt > max_attempts
    union all select id from :s.job_history where attempt > max_attempts`,
  "a pending job waits for a cancel that nobody will carry out": `
    select id from :s.jobs where state = 'pending' and cancel_requested_at is not null and hold <> 4`,
  "a group has members and no head that can run": `
    select j.group_key from :s.jobs j where j.group_key is not null and j.state <> 'dead'
    group by j.group_key having not exists (
      select 1 from :s.job_groups g join :s.jobs h on h.id = g.head
      where g.name = j.group_key and h.group_key = j.group_key and h.state <> 'dead' and h.hold <> 1)`,
  "a group has two members that can run": `
    select group_key from :s.jobs where group_key is not null and state <> 'dead' and hold <> 1
    group by group_key having count(*) > 1`,
  "a group's row has no job behind it": `
    select g.name from :s.job_groups g where not exists (
      select 1 from :s.jobs j where j.id = g.head and j.state <> 'dead')`,
  "a key's job is not in the ledger": `
    select j.id from :s.jobs j left join :s.job_keys k on k.kind = j.kind and k.key = j.key
    where j.key is not null and k.job_id is distinct from j.id`,
};

export async function checkInvariants(url: string, schema: string): Promise<void> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    for (const [what, text] of Object.entries(MUST_BE_EMPTY)) {
      const { rows } = await client.query(text.replaceAll(":s", `"${schema}"`));
      expect(rows, what).toEqual([]);
    }
  } finally {
    await client.end();
  }
}

/** After everything ended: nothing waits, nothing runs, no lease and no group is left. */
export async function checkDrained(url: string, schema: string): Promise<void> {
  await checkInvariants(url, schema);
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select (select count(*) from "${schema}".jobs where state <> 'dead')::integer as open,
         (select count(*) from "${schema}".job_groups)::integer as groups`,
    );
    expect(rows).toEqual([{ open: 0, groups: 0 }]);
  } finally {
    await client.end();
  }
}
