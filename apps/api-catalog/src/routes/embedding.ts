// How embedding goes: status, health, jobs; and asking for all of it again.
import type { AppRoute, Job, JobState } from "holdfast";
import { KIND } from "../names.ts";
import { readAvailable, whyNot } from "../pgvector/detect.ts";
import { Refused } from "../refused.ts";
import { type CatalogStatus, readStatus } from "../status.ts";
import { type Asked, type DeskOf, findCatalog, findSpec, makeRoute, readLimit } from "./route.ts";

/** Also by the names that others know them by. */
const STATES: Readonly<Record<string, JobState>> = {
  pending: "pending",
  running: "running",
  done: "done",
  succeeded: "done",
  dead: "dead",
  failed: "dead",
  cancelled: "cancelled",
};
const MOST = 500;

export function makeEmbeddingRoutes(deskOf: DeskOf): AppRoute[] {
  const statusOf = async (asked: Asked): Promise<CatalogStatus> => {
    const { id } = await findCatalog(asked);
    return await readStatus(asked.hf, asked.specs, id, asked.model?.known);
  };
  return [
    makeRoute(deskOf, { method: "GET", path: "/:catalog/embedding-status", answer: statusOf }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/:catalog/embedding-health",
      async answer(asked) {
        const { counts, banner, specs } = await statusOf(asked);
        const lastError = specs.find((spec) => spec.lastError !== null)?.lastError ?? null;
        const { embedder } = asked.options;
        const model = asked.model?.known ?? null;
        const pgvector = await describePgvector(asked);
        const verdict = verdictOf(asked, counts);
        return { verdict, banner, counts, provider: embedder.provider, model, lastError, pgvector };
      },
    }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/:catalog/embedding-jobs",
      async answer(asked) {
        const { query } = asked.request;
        const { id: catalog } = await findCatalog(asked);
        const name = query.get("spec_name");
        const spec = name === null ? undefined : await asked.specs.find(catalog, name);
        if (name !== null && !spec) return { jobs: [], next: null };
        const cursor = query.get("cursor");
        const { jobs, next } = await asked.hf.jobs.list({
          kind: KIND,
          payload: spec ? { spec: spec.id } : { catalog },
          limit: readLimit(query.get("limit"), 100, MOST),
          ...(query.has("status") && { state: readState(query.get("status") ?? "") }),
          ...(cursor !== null && { cursor }),
        });
        const names = new Map((await asked.specs.list(catalog)).map((each) => [each.id, each.name]));
        return { jobs: jobs.map((job) => toJob(job, names)), next };
      },
    }),
    makeRoute(deskOf, {
      method: "POST",
      path: "/:catalog/specs/:spec/reembed",
      async answer(asked) {
        const spec = await findSpec(asked);
        const job = await asked.specs.reembed(spec);
        if (job) return Response.json({ status: "queued", created: job.created, job: job.id }, { status: 202 });
        throw new Refused(409, "EMBEDDER_OFF", "No embedder is set.", "Set apiCatalog({ embedder }), and start again.");
      },
    }),
  ];
}

/** Its version, or why it is not used. */
async function describePgvector({ hf, options }: Asked): Promise<{ version: string | null; why: string | null }> {
  if (options.pgvector === "off") return { version: null, why: "It is switched off (pgvector)." };
  const available = await readAvailable(hf.sql);
  const why = whyNot(available);
  return { version: why === null ? available.installed : null, why };
}

function verdictOf({ model }: Asked, { specs, indexed, running, queued, retrying, failed }: CatalogStatus["counts"]) {
  if (!model) return "off";
  if (failed > 0) return "degraded";
  if (retrying > 0) return "retrying";
  if (running + queued > 0) return "working";
  return indexed === specs ? "healthy" : "waiting";
}

function readState(given: string): JobState {
  const state = Object.hasOwn(STATES, given) ? STATES[given] : undefined;
  if (state) return state;
  const known = Object.keys(STATES).join(", ");
  throw new Refused(422, "STATUS_INVALID", `The status is ${JSON.stringify(given)}.`, `Give one of ${known}.`);
}

function toJob(job: Job, names: ReadonlyMap<string, string>) {
  const { id, state, status, attempt, maxAttempts, progress, lastError, result } = job;
  const { createdAt, runAt, startedAt, finishedAt } = job;
  const { spec } = job.payload as { spec: string };
  return {
    id,
    spec_name: names.get(spec) ?? null,
    state,
    status,
    attempt,
    maxAttempts,
    progress,
    lastError: lastError?.message ?? null,
    result,
    createdAt,
    runAt,
    startedAt,
    finishedAt,
  };
}
