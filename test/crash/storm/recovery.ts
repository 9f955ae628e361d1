// How long the jobs of a killed worker lie about: until somebody may take them, and until somebody runs them. A lease has to run out first, then
// somebody has to look; and what was cut off runs alone in its process, so that it may have to wait for an empty one.
//
// Only who has seen the database for a whole lease may say that one has run out, so that workers that are all new have to wait with that. In `kills` one of
// them is spared, and always looks: what is measured there is what the docs promise for a fleet of which somebody is alive.
import { sleep, type Storm } from "./storm.ts";

export interface Recovery {
  /** Runs that a kill cut off. */
  cut: number;
  /** Of these: could not be claimed in the end, or were not run again, and had not ended either. */
  never: number;
  /** Milliseconds from the kill until they could be claimed, and until they were run again. What never came counts as infinite. */
  claimable: Spread;
  again: Spread;
}

interface Spread {
  p50: number;
  p99: number;
  most: number;
}

/**
 * From the kill until the job can be claimed: the rest of a lease of a second, a look of somebody who is alive (as often as the shortest lease lasts), and
 * a second for a machine that has other things to do.
 */
export const LIMIT_MS = 1_000 + 1_000 + 1_000;

// A run was cut off if its process was killed after its start, and it had neither ended nor been given back by then. What ended after the
// kill was on its way: a settle that came through. A claim that a crash of PostgreSQL took along is nobody's.
const CUT_OFF = `
with kills as (select * from unnest($1::text[], $2::double precision[]) as k (worker, at)),
runs as (
  select job, token, worker, min(extract(epoch from at) * 1000) as at from proof.exec_log
  where what = 'start' group by job, token, worker),
cut as (
  select r.job, r.token, min(k.at) as at from runs r join kills k on k.worker = r.worker and k.at > r.at
  where exists (
      select 1 from proof.audit a where a.job = r.job and a.token = r.token and a.what in ('pending>running', 'light'))
    and not exists (select 1 from proof.audit a where a.job = r.job and a.token = r.token and a.what like 'ended:%')
  group by r.job, r.token),
freed as (
  select job, token, max(extract(epoch from at) * 1000) as at from proof.audit
  where what in ('running>pending', 'running>dead', 'light-end') group by job, token)
select (f.at - c.at)::double precision as claimable, (a.at - c.at)::double precision as again,
  exists (
    select 1 from proof.audit e where e.job = c.job and (e.what like 'ended:%' or e.what like '%>dead' or e.what like 'purged%')
  ) as "isOver"
from cut c left join freed f using (job, token)
cross join lateral (
  select min(extract(epoch from r.at) * 1000) as at from proof.exec_log r
  where r.job = c.job and r.what = 'start' and r.token <> c.token and extract(epoch from r.at) * 1000 > c.at) a
where f.at is null or f.at > c.at`;

/** Not before: what is written all along must not have to keep them. A soak leaves a million rows. */
const INDEXES = `
create index if not exists audit_job on proof.audit (job);
create index if not exists exec_log_job on proof.exec_log (job);
analyze proof.audit, proof.exec_log`;

function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}

export async function measureRecovery({ history, ask }: Storm): Promise<Recovery> {
  const begin = history.lines.find((line) => "phase" in line && line.epoch !== undefined) as
    { at: number; epoch: number } | undefined;
  const kills = history.lines.flatMap((line) =>
    "fault" in line && line.fault === "kill -9" ? [{ worker: line.on, at: begin!.epoch + line.at - begin!.at }] : [],
  );
  const values = [kills.map(({ worker }) => worker), kills.map(({ at }) => at)];
  await ask(INDEXES);
  const rows = await ask<{ claimable: number | null; again: number | null; isOver: boolean }>(CUT_OFF, values);
  return {
    cut: rows.length,
    never: rows.filter(({ claimable, again, isOver }) => claimable === null || (again === null && !isOver)).length,
    claimable: spread(rows.map(({ claimable }) => claimable ?? Infinity)),
    // What was cancelled or died meanwhile need not run again.
    again: spread(rows.flatMap(({ again, isOver }) => (again === null && isOver ? [] : [again ?? Infinity]))),
  };
}

/** Before everything is stopped, once what was cut off last has had its time. */
export async function isLate(storm: Storm): Promise<string[]> {
  await sleep(LIMIT_MS);
  const { cut, claimable } = await measureRecovery(storm);
  if (cut === 0) return ["no kill cut off a run"];
  return claimable.p99 <= LIMIT_MS
    ? []
    : [`of ${cut} runs that a kill cut off, one in a hundred could be claimed after ${claimable.p99} ms or later`];
}
