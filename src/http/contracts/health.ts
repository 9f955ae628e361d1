// Is it alive, is it ready, is it well; and the figures for Prometheus. The health checks are public, so they say little.
import { z } from "zod";
import { contract, media } from "../contract.ts";

const health = z
  .object({
    status: z.enum(["ok", "stopping", "unavailable"]),
    tier: z.enum(["embedded", "server"]),
    databaseMs: z.number().nullable().meta({ description: "How long the database took to answer; null: it did not." }),
  })
  .meta({ id: "Health" });

/** The answer of /healthz. */
export type Health = z.output<typeof health>;

const wholeHealth = health
  .extend({
    health: z
      .enum(["healthy", "working", "stalled", "degraded", "unknown"])
      .meta({ description: "unknown: the database did not answer." }),
    stalledQueues: z.array(z.string()).meta({ description: "Their oldest job has been due for five minutes." }),
    failingChores: z.array(z.string()).meta({ description: "They failed three times in a row or more." }),
    stoppedLoops: z.array(z.string()).meta({ description: "Background loops of this process that are not heard of." }),
  })
  .meta({ id: "WholeHealth" });

export type WholeHealth = z.output<typeof wholeHealth>;

const open = { method: "GET", access: "public" } as const;

export const healthContracts = {
  live: contract({
    ...open,
    path: "/livez",
    summary: "Whether the process is alive. 503 if one of its background loops has stopped, with its name.",
    output: z.object({ status: z.enum(["ok", "stopped"]), stoppedLoops: z.array(z.string()) }),
    answers: { 200: "It is." },
  }),
  ready: contract({
    ...open,
    path: "/readyz",
    summary: "Whether it can do its work: the database answers, and it is not stopping. 503 if not.",
    output: health,
    answers: { 200: "It can." },
  }),
  health: contract({
    ...open,
    path: "/healthz",
    summary: "How the whole is, with what is wrong. 503 if it is not ready, or degraded.",
    output: wholeHealth,
    answers: { 200: "It works." },
  }),
  metrics: contract({
    method: "GET",
    path: "/metrics",
    access: "viewer",
    summary: "The figures of this process and of the whole, for Prometheus. docs/metrics.md lists them.",
    output: media("text/plain"),
    answers: { 200: "Prometheus' text format." },
  }),
};
