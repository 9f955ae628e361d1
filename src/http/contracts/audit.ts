// /api/v1/audit: what people did over HTTP.
import { z } from "zod";
import { contract } from "../contract.ts";
import { cursor, isoTime, wholeNumber } from "../fields.ts";

const auditEntry = z
  .object({
    id: z.string(),
    at: isoTime,
    caller: z.string().meta({ description: "The name of the token." }),
    action: z.string().meta({ description: "The operationId of this document." }),
    target: z.string(),
    status: z.int().meta({ description: "Of the answer." }),
  })
  .meta({ id: "AuditEntry" });

export const auditContracts = {
  listAudit: contract({
    method: "GET",
    path: "/api/v1/audit",
    access: "admin",
    summary: "What people did, newest first, page by page. Kept for 90 days.",
    query: z.strictObject({ limit: wholeNumber(1, 500, "How many; 50 if not given."), cursor }),
    output: z.object({ entries: z.array(auditEntry), next: z.string().nullable() }),
    answers: { 200: "A page." },
  }),
};
