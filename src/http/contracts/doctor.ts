// /api/v1/doctor: whether all is well, check by check.
import { z } from "zod";
import { contract } from "../contract.ts";

const finding = z
  .object({
    check: z.string(),
    status: z.enum(["ok", "warning", "problem"]),
    message: z.string(),
    fix: z.string().nullable().meta({ description: "What to do: a command, a statement or a sentence." }),
  })
  .meta({ id: "Finding" });

export type FindingView = z.output<typeof finding>;

export const doctorContracts = {
  examine: contract({
    method: "GET",
    path: "/api/v1/doctor",
    access: "admin",
    summary:
      "Whether the database, the schema and the work are well, check by check, with what to do where they are not.",
    output: z.object({ findings: z.array(finding) }),
    answers: { 200: "Also when something is wrong." },
  }),
};
