// Lists jobs, newest first, page by page. The id is a UUIDv7, so its order is the order of making; the last id of a
// page is the cursor of the next.
import type { Job } from "../../job/job.ts";
import type { JobState } from "../../job/states.ts";
import { sql, type Store } from "../sql.ts";
import { HISTORY_COLUMNS, type JobRow, LIVE_COLUMNS, LIVE_JOBS, LIVE_STATE, toJob } from "./rows.ts";

export interface ListFilter {
  states: readonly JobState[];
  kind?: string | undefined;
  queue?: string | undefined;
  /** Only jobs older than this id. */
  before?: string | undefined;
  limit: number;
}

const MATCHES = (
  state: string,
): string => `${state} = any($1::text[]:: :schema.job_state[]) and ($2::text is null or kind = $2)
  and ($3::text is null or queue = $3) and ($4::uuid is null or id < $4)`;

const LIST = sql`
(select ${LIVE_COLUMNS} from ${LIVE_JOBS} where ${MATCHES(LIVE_STATE)} order by id desc limit $5)
union all
(select ${HISTORY_COLUMNS} from :schema.job_history where ${MATCHES("state")} order by id desc limit $5)
order by id desc limit $5`;

const LIST_LIVE = sql`
select ${LIVE_COLUMNS} from ${LIVE_JOBS} where ${MATCHES(LIVE_STATE)} order by id desc limit $5`;

const HISTORY_STATES: readonly JobState[] = ["done", "cancelled"];

export async function listJobs(store: Store, filter: ListFilter): Promise<Job[]> {
  const statement = filter.states.some((state) => HISTORY_STATES.includes(state)) ? LIST : LIST_LIVE;
  const { rows } = await store.query<JobRow>(statement, [
    filter.states,
    filter.kind ?? null,
    filter.queue ?? null,
    filter.before ?? null,
    filter.limit,
  ]);
  return rows.map(toJob);
}
