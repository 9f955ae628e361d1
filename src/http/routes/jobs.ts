// /api/v1/jobs: accept, look, act. Each is one call of the client.
import type { Holdfast } from "../../client/client.ts";
import { KindUnknown, NotFound } from "../../errors.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import { CONTRACTS } from "../contracts.ts";
import { toJobSummary, toJobView } from "../job-view.ts";
import { route } from "./route.ts";

export function makeJobRoutes(hf: Holdfast, kinds: readonly AnyJobKind[]) {
  const byName = new Map(kinds.map((kind) => [kind.kind, kind]));
  return {
    enqueueJob: route(CONTRACTS.enqueueJob, async ({ kind, payload, options }) => {
      const known = byName.get(kind);
      if (!known) throw unknownKind(kind, [...byName.keys()]);
      const body = await hf.enqueue(known, payload, options);
      return { status: body.created ? 201 : 200, body };
    }),
    listJobs: route(CONTRACTS.listJobs, async (filter) => {
      const { jobs, next } = await hf.jobs.list(filter);
      const now = new Date();
      return { body: { jobs: jobs.map((job) => toJobSummary(job, now)), next } };
    }),
    readJob: route(CONTRACTS.readJob, async (id) => {
      const [job, attempts] = await Promise.all([hf.jobs.get(id), hf.jobs.attempts(id)]);
      if (!job) throw new NotFound(`There is no job ${id}.`, "Finished jobs go after their retention; check the id.");
      return { body: toJobView(job, attempts, new Date()) };
    }),
    cancelJob: route(CONTRACTS.cancelJob, async (id) => {
      const cancelRequested = (await hf.jobs.cancel(id)) === "requested";
      return { body: { id, state: cancelRequested ? "running" : "cancelled", cancelRequested } };
    }),
    retryJob: route(CONTRACTS.retryJob, async (id) => {
      await hf.jobs.retry(id);
      return { body: { id, state: "pending" } };
    }),
    discardJob: route(CONTRACTS.discardJob, async (id) => {
      await hf.jobs.discard(id);
      return { body: { id, state: "dead", discarded: true } };
    }),
  };
}

const SHOWN_KINDS = 50;

function unknownKind(kind: string, known: string[]): KindUnknown {
  const more = known.length > SHOWN_KINDS ? ` and ${known.length - SHOWN_KINDS} more` : "";
  return new KindUnknown(
    `This server does not know the kind ${JSON.stringify(kind.slice(0, 130))}.`,
    known.length === 0
      ? "It knows none: list them in holdfast.config.ts."
      : `Known kinds: ${known.slice(0, SHOWN_KINDS).join(", ")}${more}.`,
  );
}
