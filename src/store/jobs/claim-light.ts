// Takes many jobs of one lane at the price of one row: see store/jobs/mark.ts for what makes it safe. It is for short jobs
// of a lane that is full; whoever holds the lease marks it if the jobs turn out to be long.
//
// The lane stays locked until the answer has been sent, also to a process that stopped reading. So the answer is kept
// small enough for the network's own buffers: `LIGHT_BYTES`.
// Nothing is taken if another claim or a cancel is at work in the lane for longer than a moment, or if a job among them has a group or a coalesce
// key, because others must see of such a job that it runs: the caller then claims the ordinary way.
import { isLockTimeout } from "../../db/retryable.ts";
import type { ErrorRecord } from "../../job/outcome.ts";
import { asMicros, fromMicros, routine, type Store } from "../sql.ts";
import { ASYNC_COMMIT, type ClaimedJob, type LanePosition } from "./claim.ts";
import { IS_KIND } from "./lane.ts";
import { LANE_LOCK } from "./mark.ts";

export const LIGHT_BYTES = 65_536;
/** As long as some other light claims take: several processes then all claim lightly, one after the other. */
const PATIENCE_MS = 50;
/** Sizes vary. */
const ROOM = 0.9;
/** Anything else is compressed or lies in another table, and would be unpacked only to be found too large. */
const IS_SMALL = "pg_column_size(j.payload) < 2000 and pg_column_compression(j.payload) is null";

const BYTES_OF_ID = 37;
const BYTES_OF_TIME = 17;

const FROM = `(${fromMicros("$6")}, $7)`;

/**
 * What can be taken, up to `most` jobs: one row, made in one pass over the jobs. Each column is one list of all jobs, and not
 * each job a text put together from its columns: that costs a third of the pass. `others`: what is not as the kind has it.
 */
const gather = (most: string): string => `
select count(*)::integer, bool_and(p.is_plain and p.payload is not null), array_agg(p.id), array_agg(p.run_at),
  string_agg(p.payload, ','), string_agg(p.other, ',')
into taken, suits, job_ids, run_ats, texts, exceptions
from (
  select j.id, j.run_at, j.group_key is null and j.coalesce_key is null as is_plain,
    case when ${IS_SMALL} then j.payload::text end as payload,
    case when j.attempt > 0 or j.max_attempts <> $9 or j.queue <> $10 or j.key is not null then
      concat('"', j.id, '":[', j.attempt, ',', j.max_attempts, ',', to_json(j.queue), ',',
        coalesce(to_json(j.key)::text, 'null'), ',', coalesce(j.last_error, 'null'), ']') end as other
  from :schema.jobs j
  where j.hold = 0 and ${IS_KIND("$4")} and j.rank = $5 and j.run_at <= :schema.clock() and (j.run_at, j.id) > ${FROM}
    and j.state = 'pending' and j.id not in (
      select unnest(l.job_ids) from :schema.leases l
      where l.light and l.kind = $4 and l.rank = $5 and (l.last_run_at, l.last_id) > ${FROM})
  order by j.run_at, j.id limit ${most}
) as p;
at_once := run_ats[1] = run_ats[taken];
size := octet_length(texts) + coalesce(octet_length(exceptions), 0) + taken * ${BYTES_OF_ID}
  + case when at_once then 0 else taken * ${BYTES_OF_TIME} end;`;

const CLAIM_LIGHT = routine({
  name: "claim_light",
  takes: ["bigint", "uuid", "integer", "text", "smallint", "bigint", "uuid", "integer", "integer", "text"],
  gives: "ids text, payloads text, others text, run_us bigint, all_run_us text, found integer, now_us bigint",
  declares: [
    "taken integer",
    "waiting integer",
    "suits boolean",
    "job_ids uuid[]",
    "run_ats timestamptz[]",
    "texts text",
    "exceptions text",
    "at_once boolean",
    "size bigint",
  ],
  // Lists as one text each: taking the rows of an answer apart costs Node more than the rest of a job. If they are too long,
  // they are made once more of fewer jobs; whoever asks then asks for about as many as fit, so that this is rare. Jobs that
  // were enqueued together are due at the same time, which is then told once.
  //
  // Several plain statements: beginning one that does all of this costs as much as half of what it is about.
  first: `${ASYNC_COMMIT}
perform set_config('lock_timeout', '${PATIENCE_MS}', true);
perform pg_advisory_xact_lock(${LANE_LOCK("$4", "$5")});
${gather("$8")}
waiting := taken;
if suits and size > ${LIGHT_BYTES} then
  ${gather(`greatest(1, waiting * ${LIGHT_BYTES}::bigint / size)`)}
end if;
if suits is not true then return; end if;
insert into :schema.leases (token, lease_ms, expires_at, worker_id, job_ids, light, kind, rank, claimed_at, last_run_at, last_id)
values ($1, $3, :schema.clock() + $3 * interval '1 millisecond', $2, job_ids, true, $4, $5, :schema.clock(), run_ats[taken], job_ids[taken]);`,
  body: `select array_to_string(job_ids, ','), texts, exceptions, ${asMicros("run_ats[1]")},
  case when not at_once then (
    select string_agg(${asMicros("u.run_at")}::text, ',' order by u.n) from unnest(run_ats) with ordinality as u (run_at, n)
  ) end,
  waiting, ${asMicros(":schema.clock()")}`,
});

interface Answer {
  /** With commas between them, like the other lists. */
  ids: string;
  /** Members of a JSON list. */
  payloads: string;
  /** Members of a JSON object, by id. */
  others: string | null;
  /** When the first of them was due, and each of them, if that differs. */
  run_us: string;
  all_run_us: string | null;
  /** How many wait, up to the limit. */
  found: number;
  now_us: string;
}

type Other = [attempt: number, maxAttempts: number, queue: string, key: string | null, lastError: ErrorRecord | null];

/** What most jobs of the kind have; it is not sent with each of them. */
export interface KindDefaults {
  leaseMs: number;
  attempts: number;
  queue: string;
}

/**
 * `isFull`: there may be more right after the last one. `fits`: how many jobs of this size one answer surely holds.
 * `isBlocked`: somebody is at work in the lane and stays.
 */
export async function claimLight(
  store: Store,
  holder: { token: string; workerId: string },
  lane: LanePosition,
  kind: KindDefaults,
  limit: number,
): Promise<{ jobs: ClaimedJob[]; isFull: boolean; fits: number; isBlocked: boolean }> {
  const { token, workerId } = holder;
  const values = [token, workerId, kind.leaseMs, lane.kind, lane.rank, lane.fromUs, lane.fromId, limit];
  let answer: Answer | undefined;
  try {
    answer = (await store.query<Answer>(CLAIM_LIGHT, [...values, kind.attempts, kind.queue])).rows[0];
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    return { jobs: [], isFull: false, fits: 0, isBlocked: true };
  }
  if (!answer) return { jobs: [], isFull: false, fits: 0, isBlocked: false };
  const ids = answer.ids.split(",");
  const payloads = JSON.parse(`[${answer.payloads}]`) as unknown[];
  const others = answer.others === null ? undefined : (JSON.parse(`{${answer.others}}`) as Record<string, Other>);
  const times = answer.all_run_us?.split(",");
  const nowUs = Number(answer.now_us);
  const jobs: ClaimedJob[] = [];
  for (let index = 0; index < ids.length; index += 1) {
    const id = ids[index]!;
    const runUs = times ? times[index]! : answer.run_us;
    const other = others?.[id];
    jobs.push({
      id,
      kind: lane.kind,
      queue: other ? other[2] : kind.queue,
      payload: payloads[index],
      attempt: other ? other[0] + 1 : 1,
      max_attempts: other ? other[1] : kind.attempts,
      rank: lane.rank,
      key: other ? other[3] : null,
      group_key: null,
      last_error: other ? other[4] : null,
      run_us: runUs,
      lag_ms: (nowUs - Number(runUs)) / 1_000,
    });
  }
  const bytes =
    answer.payloads.length + answer.ids.length + (answer.others?.length ?? 0) + (answer.all_run_us?.length ?? 0);
  const fits = Math.floor((ROOM * LIGHT_BYTES * jobs.length) / bytes);
  return { jobs, isFull: answer.found >= limit || answer.found > jobs.length, fits, isBlocked: false };
}
