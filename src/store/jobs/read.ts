// Reads one job, live or finished, and its failed attempts.
import type { FailedAttempt, Job } from "../../job/job.ts";
import { sql, type Store } from "../sql.ts";
import {
  type AttemptRow,
  HISTORY_COLUMNS,
  type JobRow,
  LIVE_COLUMNS,
  liveJobs,
  toFailedAttempt,
  toJob,
} from "./rows.ts";

const READ = sql`
select ${LIVE_COLUMNS} from ${liveJobs()} where id = $1::uuid
union all
(select ${HISTORY_COLUMNS} from :schema.job_history where id = $1::uuid order by finished_at desc limit 1)
limit 1`;

const ATTEMPTS = sql`
select attempt, claim_count, started_at, failed_at, outcome, error from :schema.attempts
where job_id = $1::uuid order by claim_count limit 1000`;

export async function readJob(store: Store, id: string): Promise<Job | undefined> {
  const { rows } = await store.query<JobRow>(READ, [id]);
  return rows[0] && toJob(rows[0]);
}

export async function readAttempts(store: Store, id: string): Promise<FailedAttempt[]> {
  const { rows } = await store.query<AttemptRow>(ATTEMPTS, [id]);
  return rows.map(toFailedAttempt);
}

// As text: a number with more digits than a double has arrives whole.
const TEXTS = sql`
select payload::text as payload, null as result, batch_id as "batchId" from :schema.jobs where id = $1::uuid
union all
(select payload::text, result::text, null from :schema.job_history where id = $1::uuid order by finished_at desc limit 1)
limit 1`;

export interface JobTexts {
  payload: string;
  result: string | null;
  /** The batch that it is an item of. */
  batchId: string | null;
}

export async function readTexts(store: Store, id: string): Promise<JobTexts | undefined> {
  return (await store.query<JobTexts>(TEXTS, [id])).rows[0];
}
