// /api/v1/audit.
import type { Holdfast } from "../../client/client.ts";
import { auditContracts } from "../contracts/audit.ts";
import { route } from "./route.ts";

export function makeAuditRoutes(hf: Holdfast) {
  return {
    listAudit: route(auditContracts.listAudit, async ({ query }) => {
      const { entries, next } = await hf.audit.list(query);
      return { body: { entries: entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })), next } };
    }),
  };
}
