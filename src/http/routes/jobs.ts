// /api/v1/jobs: accept, look, act. Each is one call of the client.
import type { Holdfast } from "../../client/client.ts";
import type { JobFilterOptions } from "../../client/job-filter.ts";
import type { EnqueueOptions } from "../../client/new-job.ts";
import type { ListOptions } from "../../client/jobs.ts";
import { NotFound } from "../../errors.ts";
import { isBatchKind } from "../../job/define-batch.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import { jsonSchemaOf } from "../../job/json-schema.ts";
import { jobContracts, type KindView } from "../contracts/jobs.ts";
import { given } from "../given.ts";
import { iso, toJobSummary, toJobView } from "../job-view.ts";
import { makeEyes } from "../eyes.ts";
import { makeKnownKinds } from "../known-kinds.ts";
import { refuseHidden } from "../refuse-hidden.ts";
import { route } from "./route.ts";

export function makeJobRoutes(hf: Holdfast, kinds: readonly AnyJobKind[]) {
  const known = makeKnownKinds(kinds);
  const eyesOf = makeEyes(kinds);
  return {
    enqueueJob: route(jobContracts.enqueueJob, async ({ body: { kind, payload = null, ...options } }) => {
      const body = await hf.enqueue(known.job(kind), payload, given<EnqueueOptions>(options));
      return { status: body.created ? 201 : 200, body };
    }),
    listJobs: route(jobContracts.listJobs, async ({ query: { cursor, ...filter } }, { caller }) => {
      refuseHidden(filter, eyesOf(caller));
      const { jobs, next } = await hf.jobs.list(given<ListOptions>({ ...filter, cursor: cursor?.toLowerCase() }));
      return { body: { jobs: jobs.map(toJobSummary), next } };
    }),
    countJobs: route(jobContracts.countJobs, async ({ query }, { caller }) => {
      refuseHidden(query, eyesOf(caller));
      return { body: await hf.jobs.count(given<JobFilterOptions>(query)) };
    }),
    readJob: route(jobContracts.readJob, async ({ params: { id } }, { caller }) => {
      const [job, attempts, notes, texts] = await Promise.all([
        hf.jobs.get(id),
        hf.jobs.attempts(id),
        hf.jobs.notes(id),
        hf.jobs.texts(id),
      ]);
      if (!job) throw new NotFound(`There is no job ${id}.`, "Finished jobs go after their retention; check the id.");
      return { body: toJobView({ job, attempts, notes, texts, eyes: eyesOf(caller) }) };
    }),
    readKey: route(jobContracts.readKey, async ({ query: { kind, key } }) => {
      const taken = await hf.jobs.byKey(kind, key);
      return { body: { jobId: taken?.jobId ?? null, expiresAt: iso(taken?.expiresAt ?? null) } };
    }),
    cancelJob: route(jobContracts.cancelJob, async ({ params: { id } }) => {
      const cancelRequested = (await hf.jobs.cancel(id)) === "requested";
      return { body: { id, state: cancelRequested ? "running" : "cancelled", cancelRequested } };
    }),
    releaseJob: route(jobContracts.releaseJob, async ({ params: { id } }) => {
      await hf.jobs.release(id);
      return { body: { id, state: "pending" } };
    }),
    retryJob: route(jobContracts.retryJob, async ({ params: { id } }) => {
      await hf.jobs.retry(id);
      return { body: { id, state: "pending" } };
    }),
    discardJob: route(jobContracts.discardJob, async ({ params: { id } }) => {
      await hf.jobs.discard(id);
      return { body: { id, state: "dead", discarded: true } };
    }),
    listKinds: route(jobContracts.listKinds, async () => ({ body: { kinds: kinds.map(toKindView) } })),
  };
}

const MOST_PAUSES = 10;

function toKindView(known: AnyJobKind): KindView {
  const { kind, queue, attempts, leaseMs, timeoutMs, retryPolicy } = known;
  const batch = isBatchKind(known) ? known.batch : null;
  const schema = batch ? batch.schema : known.schema;
  const pauses = Math.min(attempts - 1, MOST_PAUSES);
  const backoffMs = Array.from({ length: pauses }, (_, n) => Math.round(retryPolicy.delayMs(n + 1, () => 0.5)));
  return {
    kind,
    queue,
    attempts,
    leaseMs,
    timeoutMs,
    backoffMs,
    schema: schema ? jsonSchemaOf(schema) : null,
    batch: batch && { concurrency: batch.concurrency, outcomes: batch.outcomes },
  };
}
