// Finds specs that lack vectors of what they say now, by hash and not by count, and asks for them. A spec whose job was given
// up rests, twice as long after each time; what a person asks for does not wait.
import { type Chore, defineChore, type Duration, durationMs, type Holdfast } from "holdfast";
import type { Model } from "./model.ts";
import type { SpecRow, Specs } from "./specs.ts";

export interface ReconcileInput {
  hf: Holdfast;
  specs: Specs;
  model: Model;
  every: Duration;
  parkFor: Duration;
}

interface Found extends Pick<SpecRow, "id" | "catalog" | "revision" | "epoch" | "jobId" | "isParked"> {
  parkedJobId: string | null;
}

const PAGE = 100;

export function makeReconcileChore({ hf, specs, model, every, parkFor }: ReconcileInput): Chore {
  const parkMs = durationMs("parkFor", parkFor);

  async function look(spec: Found): Promise<"asked" | "parked" | "waiting"> {
    const job = spec.jobId === null ? undefined : await hf.jobs.get(spec.jobId);
    if (job?.state === "pending" || job?.state === "running" || spec.isParked) return "waiting";
    if (job?.state === "dead" && job.id !== spec.parkedJobId) {
      await hf.sql.query(
        `update :schema.catalog_specs set failures = failures + 1, parked_job_id = $2,
           parked_until_at = :schema.clock() + least($3 * power(2, least(failures, 20)), 86400000) * interval '1 millisecond'
         where id = $1 and job_id = $2`,
        [spec.id, job.id, parkMs],
      );
      return "parked";
    }
    await specs.enqueue(spec);
    return "asked";
  }

  return defineChore("catalog-reconcile", {
    every,
    async run(chore) {
      const label = await model.label(chore.signal);
      for (let after = "00000000-0000-0000-0000-000000000000"; chore.hasTime();) {
        const { rows } = await hf.sql.query<Found>(LACKING, [label, after, PAGE]);
        for (const spec of rows) {
          const what = await look(spec);
          if (what !== "waiting") chore.count(what, 1);
        }
        if (rows.length < PAGE) return;
        after = rows.at(-1)!.id;
      }
    },
  });
}

const LACKING = `
  select s.id, s.catalog_id as "catalog", s.revision::text, s.epoch::text, s.job_id as "jobId",
    s.parked_job_id as "parkedJobId", coalesce(s.parked_until_at > :schema.clock(), false) as "isParked"
  from :schema.catalog_specs s
  where s.id > $2 and (
    (s.operation_count > 0 and s.model is distinct from $1)
    or exists (
      select 1 from :schema.catalog_operations o where o.spec_id = s.id and not exists (
        select 1 from :schema.catalog_vectors v
        where v.spec_id = o.spec_id and v.model = $1 and v.operation = o.operation and v.hash = o.hash and v.epoch >= s.epoch))
    or exists (
      select 1 from :schema.catalog_vectors v where v.spec_id = s.id and (v.model <> $1 or not exists (
        select 1 from :schema.catalog_operations o where o.spec_id = v.spec_id and o.operation = v.operation))))
  order by s.id limit $3`;
