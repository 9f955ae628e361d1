// Is it alive, is it ready. Public, so they say little.
import { z } from "zod";
import { contract } from "../contract.ts";

const health = z
  .object({
    status: z.enum(["ok", "stopping", "unavailable"]),
    tier: z.enum(["embedded", "server"]),
    databaseMs: z.number().nullable().meta({ description: "How long the database took to answer; null: it did not." }),
  })
  .meta({ id: "Health" });

export type Health = z.output<typeof health>;

const open = { method: "GET", access: "public" } as const;

export const healthContracts = {
  live: contract({
    ...open,
    path: "/livez",
    summary: "Whether the process is alive.",
    output: z.object({ status: z.literal("ok") }),
    answers: { 200: "It answers." },
  }),
  ready: contract({
    ...open,
    path: "/readyz",
    summary: "Whether it can do its work: the database answers, and it is not stopping. 503 if not.",
    output: health,
    answers: { 200: "It is ready." },
  }),
  health: contract({
    ...open,
    path: "/healthz",
    summary: "The same as /readyz.",
    output: health,
    answers: { 200: "It is ready." },
  }),
};
