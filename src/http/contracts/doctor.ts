// /api/v1/doctor: whether all is well, check by check.
import { z } from "zod";
import { contract } from "../contract.ts";

const finding = z
  .object({
    check: z.string(),
    status: z.enum(["ok", "warning", "problem"]),
    message: z.string(),
    fix: z.string().nullable().meta({ description: "What to do: a command, a statement or a sentence." }),
    repair: z
      .object({ id: z.string(), what: z.string() })
      .nullable()
      .meta({ description: "What the server can do about it without harm, if it is asked to; null: a person has to." }),
  })
  .meta({ id: "Finding" });

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
  makeRepair: contract({
    method: "POST",
    path: "/api/v1/doctor/repair",
    access: "admin",
    summary: "Mend one thing that the doctor found and offered to.",
    body: z.strictObject({ repair: z.string({ error: 'Give the id of a repair: "repair": "run-chores".' }) }),
    output: z.object({ repair: z.string(), done: z.string() }),
    answers: { 200: "What it did." },
  }),
};
