// How long the jobs of a killed worker lie about: until somebody may take them, and until somebody runs them. A lease has to run out first, then
// somebody has to look; and what was cut off runs alone in its process, so that it may have to wait for an empty one.
import { sleep, type Storm } from "./storm.ts";

export interface Recovery {
  /** Runs that a kill cut off. */
  cut: number;
  /** Milliseconds from the kill until they could be claimed, and until they were run again. */
  claimable: Spread;
  again: Spread;
}

interface Spread {
  p50: number;
  p99: number;
  most: number;
}

/** A lease, a look (as often as the shortest lease lasts), and a second for everything else. */
export const LIMIT_MS = 1_000 + 1_000 + 1_000;

const CUT_OFF = `
with kills as (select * from unnest($1::text[], $2::double precision[]) as k (worker, at)),
runs as (
  select job, token, worker, min(extract(epoch from at) * 1000) as at from proof.exec_log
  where what = 'start' group by job, token, worker),
cut as (
  select r.job, r.token, min(k.at) as at from runs r join kills k on k.worker = r.worker and k.at > r.at
  group by r.job, r.token),
freed as (
  select job, token, max(extract(epoch from at) * 1000) as at from proof.audit
  where what in ('running>pending', 'running>dead', 'light-end') group by job, token)
select (f.at - c.at)::double precision as claimable, (a.at - c.at)::double precision as again
from cut c join freed f using (job, token)
cross join lateral (select min(at) as at from runs r where r.job = c.job and r.token <> c.token and r.at > c.at) a
-- A settle that was on its way when its process died may have come through: then nothing was cut off.
where f.at > c.at and a.at is not null`;

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
  const rows = await ask<{ claimable: number; again: number }>(CUT_OFF, values);
  return {
    cut: rows.length,
    claimable: spread(rows.map(({ claimable }) => claimable)),
    again: spread(rows.map(({ again }) => again)),
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
