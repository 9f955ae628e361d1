// /api/v1/workers: who is there, and which jobs each holds until when.
import { z } from "zod";
import { contract } from "../contract.ts";
import { idParams, isoTime, uuid } from "../fields.ts";

const lease = z
  .object({
    jobIds: z.array(uuid).meta({ description: "The jobs that run under it: at most 50 of them." }),
    kinds: z.array(z.string()).meta({ description: "Of these jobs, each once." }),
    leaseMs: z.int(),
    expiresAt: isoTime,
    expiresInMs: z.int().meta({ description: "By the database's clock; negative: overdue." }),
    alone: z.boolean().meta({ description: "A suspect, run alone in its process." }),
  })
  .meta({ id: "Lease" });

const worker = z
  .object({
    id: uuid,
    name: z.string(),
    kinds: z.array(z.string()),
    concurrency: z.int(),
    running: z.int(),
    startedAt: isoTime,
    beatAt: isoTime,
    silentMs: z.int().meta({ description: "How long ago it was last heard of." }),
    drainAskedAt: isoTime.nullable().meta({ description: "Since when it takes no more jobs; null: it takes some." }),
    drainAskedBy: z.string().nullable(),
    stopAskedAt: isoTime.nullable().meta({ description: "Since when it is ending; drainAskedBy says who asked." }),
    leases: z.array(lease),
  })
  .meta({ id: "Worker" });

export const workerContracts = {
  listWorkers: contract({
    method: "GET",
    path: "/api/v1/workers",
    access: "viewer",
    summary: "The workers, with the leases they hold. Leases of workers that are gone are listed apart.",
    output: z.object({
      workers: z.array(worker),
      orphans: z.array(lease).meta({ description: "Leases whose worker is not there any more." }),
    }),
    answers: { 200: "At most 1,000 workers, and the 200 leases that end first." },
  }),
  drainWorker: contract({
    method: "POST",
    path: "/api/v1/workers/:id/drain",
    access: "operator",
    summary: "Ask one worker to take no more jobs; what runs in it goes on.",
    params: idParams,
    output: z.object({ id: uuid, name: z.string(), draining: z.literal(true) }),
    answers: { 200: "It learns of it within seconds; twice is once." },
  }),
  stopWorker: contract({
    method: "POST",
    path: "/api/v1/workers/:id/stop",
    access: "operator",
    summary: "End one worker: it takes no more jobs, gives those that run their grace, and releases the rest.",
    params: idParams,
    output: z.object({ id: uuid, name: z.string(), stopping: z.literal(true) }),
    answers: { 200: "It learns of it within seconds; twice is once." },
  }),
  resumeWorker: contract({
    method: "POST",
    path: "/api/v1/workers/:id/resume",
    access: "operator",
    summary: "Let a worker that was drained take jobs again.",
    params: idParams,
    output: z.object({ id: uuid, name: z.string(), draining: z.literal(false) }),
    answers: { 200: "It learns of it within seconds." },
  }),
};
