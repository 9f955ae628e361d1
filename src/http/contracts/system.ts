// /api/v1/overview and /api/v1/system: is it well, and what is it.
import { z } from "zod";
import { PROBLEM_CODES } from "../../client/rules.ts";
import { ROLES } from "../../shared/roles.ts";
import { contract } from "../contract.ts";
import { isoTime } from "../fields.ts";

const problem = z
  .object({
    code: z.enum(PROBLEM_CODES),
    level: z.enum(["problem", "notice"]),
    message: z.string(),
    hint: z.string(),
    command: z.string().nullable().meta({ description: "A command that helps." }),
    about: z.string().nullable().meta({ description: "The queue, kind, recipient or chore it is about." }),
  })
  .meta({ id: "Problem" });

/** One value that the server runs with. */
const setting = z.object({
  name: z.string(),
  value: z.string(),
  source: z.string().meta({ description: "A flag, a variable, a file, or the default." }),
});

export type SettingView = z.output<typeof setting>;

const system = z
  .object({
    version: z.string(),
    node: z.string(),
    tier: z.enum(["embedded", "server"]),
    schema: z.string(),
    environment: z.string().nullable().meta({ description: "What people call this installation." }),
    caller: z.object({ name: z.string(), role: z.enum(ROLES) }).meta({ description: "Who is asking." }),
    database: z.object({
      version: z.string(),
      name: z.string(),
      now: isoTime,
      answeredInMs: z.number(),
      skewMs: z.number().meta({ description: "This machine's clock minus the database's." }),
      connections: z.int(),
      maxConnections: z.int(),
    }),
    migrations: z.array(z.object({ version: z.int(), name: z.string(), appliedAt: isoTime })),
    tables: z.array(
      z.object({
        name: z.string(),
        bytes: z.number(),
        rows: z.number().meta({ description: "Estimated." }),
        deadRows: z.number(),
        vacuumedAt: isoTime.nullable(),
        parts: z.int(),
      }),
    ),
    settings: z.array(setting).nullable().meta({ description: "null: this server was not started by the CLI." }),
    warnings: z.array(z.object({ code: z.string(), message: z.string() })),
  })
  .meta({ id: "System" });

export const systemContracts = {
  readOverview: contract({
    method: "GET",
    path: "/api/v1/overview",
    access: "viewer",
    summary: "Is it well: one sentence, and what is wrong.",
    output: z.object({ verdict: z.string(), problems: z.array(problem) }).meta({ id: "Overview" }),
    answers: { 200: "By the last roll-ups, some seconds old." },
  }),
  readMe: contract({
    method: "GET",
    path: "/api/v1/me",
    access: "viewer",
    summary: "Who is asking, and whom.",
    output: z
      .object({
        name: z.string(),
        role: z.enum(ROLES),
        version: z.string(),
        tier: z.enum(["embedded", "server"]),
        environment: z.string().nullable(),
      })
      .meta({ id: "Me" }),
    answers: { 200: "What the token says." },
  }),
  readSystem: contract({
    method: "GET",
    path: "/api/v1/system",
    access: "viewer",
    summary: "Versions, migrations, tables, settings with their sources, warnings.",
    output: system,
    answers: { 200: "All of it; secrets are masked." },
  }),
};
