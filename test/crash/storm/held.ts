// Under a snapshot that is held all along, as much must be done at the end as at the beginning: what claims walk past grows with every job, if
// they walk past it.
import { SNAPSHOT } from "./faults.ts";
import type { Storm } from "./storm.ts";

/** Of what was done in the second fifth: producers and machine are not equally fast all the time, and workers die in between. */
const LEAST_SHARE = 0.4;

export async function isSlower(storm: Storm): Promise<string[]> {
  const [row] = await storm.ask<{ early: number; late: number }>(
    `with ends as (select at from proof.exec_log where what = 'end'),
     span as (select min(at) as from_at, max(at) - min(at) as long from ends)
     select count(*) filter (where at >= from_at + long * 0.2 and at < from_at + long * 0.4)::integer as early,
       count(*) filter (where at >= from_at + long * 0.8)::integer as late from ends, span`,
  );
  const { early, late } = row!;
  process.stderr.write(`${JSON.stringify({ early, late })}\n`);
  const held = await storm.ask("select 1 from pg_stat_activity where application_name = $1", [SNAPSHOT]);
  if (held.length !== 1) return ["the old snapshot was not held to the end"];
  return late >= early * LEAST_SHARE
    ? []
    : [`under an old snapshot ${late} jobs were done in the last fifth, ${early} in the second`];
}
