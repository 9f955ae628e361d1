// How far the specs of a catalog are, as the badge and the banner say it.
import type { Holdfast, Job } from "holdfast";
import type { SpecRow, Specs } from "./specs.ts";

export type BadgeState = "indexed" | "indexing" | "queued" | "retrying" | "failed" | "empty" | "not-indexed";

export interface SpecStatus {
  name: string;
  title: string;
  version: string;
  format: string;
  problems: string[];
  operations: number;
  embedded: number;
  state: BadgeState;
  /** As the badge says it. */
  badge: string;
  tries: number;
  lastError: string | null;
  isParked: boolean;
  model: string | null;
  jobId: string | null;
  indexedAt: Date | null;
}

export interface CatalogStatus {
  specs: SpecStatus[];
  banner: string;
  counts: { specs: number; indexed: number; running: number; queued: number; retrying: number; failed: number };
}

export async function readStatus(
  hf: Holdfast,
  specs: Specs,
  catalog: string,
  label: string | undefined,
): Promise<CatalogStatus> {
  const list = await specs.list(catalog);
  const embedded = await countEmbedded(hf, catalog, label);
  const jobs = await readJobs(
    hf,
    list.filter((spec) => !isIndexed(spec, embedded.get(spec.id) ?? 0, label)),
  );
  const statuses = list.map((spec) => toStatus(spec, embedded.get(spec.id) ?? 0, jobs.get(spec.jobId ?? ""), label));
  return { specs: statuses, ...sum(statuses) };
}

async function countEmbedded(hf: Holdfast, catalog: string, label: string | undefined): Promise<Map<string, number>> {
  const { rows } = await hf.sql.query<{ id: string; n: number }>(
    `select s.id, count(*)::int as n
     from :schema.catalog_specs s
     join :schema.catalog_operations o on o.spec_id = s.id
     join :schema.catalog_vectors v on v.spec_id = o.spec_id and v.model = coalesce($2, s.model)
       and v.operation = o.operation and v.hash = o.hash and v.epoch >= s.epoch
     where s.catalog_id = $1 group by s.id`,
    [catalog, label ?? null],
  );
  return new Map(rows.map(({ id, n }) => [id, n]));
}

async function readJobs(hf: Holdfast, specs: readonly SpecRow[]): Promise<Map<string, Job>> {
  const ids = specs.flatMap(({ jobId }) => (jobId === null ? [] : [jobId]));
  const found = new Map<string, Job>();
  for (let place = 0; place < ids.length; place += 500) {
    const { jobs } = await hf.jobs.list({ ids: ids.slice(place, place + 500), limit: 500 });
    for (const job of jobs) found.set(job.id, job);
  }
  return found;
}

/** All of it, and it is what searches use: vectors of another model are there before they take the place of the old ones. */
const isIndexed = ({ operationCount, model }: SpecRow, embedded: number, label: string | undefined): boolean =>
  embedded >= operationCount && (label === undefined || model === label || operationCount === 0);

function toStatus(spec: SpecRow, embedded: number, job: Job | undefined, label: string | undefined): SpecStatus {
  const state = stateOf(spec, isIndexed(spec, embedded, label), job);
  const tries = job?.attempt ?? 0;
  const {
    name,
    title,
    version,
    format,
    problems,
    operationCount: operations,
    model,
    jobId,
    indexedAt,
    isParked,
  } = spec;
  const isOpen = state === "retrying" || state === "failed" || state === "indexing";
  return {
    name,
    title,
    version,
    format,
    problems,
    operations,
    embedded,
    state,
    badge: badgeOf(state, embedded, operations, tries),
    tries,
    lastError: isOpen ? (job?.lastError?.message ?? null) : null,
    isParked,
    model,
    jobId,
    indexedAt,
  };
}

function stateOf({ operationCount }: SpecRow, isWhole: boolean, job: Job | undefined): BadgeState {
  if (operationCount === 0) return "empty";
  if (isWhole) return "indexed";
  if (job?.state === "running") return "indexing";
  if (job?.state === "pending") return job.attempt > 0 ? "retrying" : "queued";
  if (job?.state === "dead") return "failed";
  return "not-indexed";
}

function badgeOf(state: BadgeState, embedded: number, operations: number, tries: number): string {
  if (state === "indexed") return `${embedded}/${operations} indexed`;
  if (state === "indexing") return `indexing ${embedded}/${operations}`;
  if (state === "retrying") return `retrying (${tries} ${tries === 1 ? "try" : "tries"})`;
  return state === "not-indexed" ? "not indexed" : state;
}

function sum(specs: readonly SpecStatus[]): Omit<CatalogStatus, "specs"> {
  const count = (...states: BadgeState[]): number => specs.filter(({ state }) => states.includes(state)).length;
  const counts = {
    specs: specs.length,
    indexed: count("indexed", "empty"),
    running: count("indexing"),
    queued: count("queued", "retrying"),
    retrying: count("retrying"),
    failed: count("failed"),
  };
  const { indexed, running, queued, failed } = counts;
  const banner =
    indexed === specs.length
      ? `All ${specs.length} specs indexed`
      : `${indexed}/${specs.length} specs indexed (${running} running, ${queued} queued, ${failed} failed)`;
  return { counts, banner };
}
