// /api/v1/apps: which apps run here, and where their pages are.
import { z } from "zod";
import { contract } from "../contract.ts";

const app = z
  .object({
    name: z.string(),
    title: z.string(),
    page: z.string().nullable().meta({ description: "Where its page is, on this server." }),
    routes: z.array(z.object({ method: z.string(), path: z.string() })),
  })
  .meta({ id: "App" });

export const appContracts = {
  listApps: contract({
    method: "GET",
    path: "/api/v1/apps",
    access: "viewer",
    summary: "The apps that run here.",
    output: z.object({ apps: z.array(app) }),
    answers: { 200: "All of them." },
  }),
};
