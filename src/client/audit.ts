// hf.audit: what people did over HTTP. Kept for 90 days.
import { OptionInvalid } from "../errors.ts";
import { type Chore, defineChore } from "../job/define-chore.ts";
import { insertAudit, type NewAuditEntry } from "../store/audit/insert.ts";
import { type AuditEntry, listAudit } from "../store/audit/list.ts";
import { purgeAudit } from "../store/audit/purge.ts";
import type { Store } from "../store/sql.ts";

export interface Audit {
  add(entry: NewAuditEntry): Promise<void>;
  /** Newest first; `next` is the cursor of the following page, or null. */
  list(options?: { limit?: number | undefined; cursor?: string | undefined }): Promise<AuditPage>;
}

export interface AuditPage {
  entries: AuditEntry[];
  next: string | null;
}

const MAX_PAGE = 500;
const KEEP_MS = 90 * 86_400_000;

export function makeAudit(store: Store): Audit {
  return {
    add: (entry) => insertAudit(store, entry),
    async list({ limit = 50, cursor } = {}) {
      if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
        throw new OptionInvalid(`limit is ${String(limit)}.`, `Give a whole number from 1 to ${MAX_PAGE}.`);
      }
      if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) {
        throw new OptionInvalid(`cursor is ${JSON.stringify(cursor)}.`, "Give what `next` of the last page was.");
      }
      const entries = await listAudit(store, cursor ?? null, limit + 1);
      const page = entries.slice(0, limit);
      return { entries: page, next: entries.length > limit ? page.at(-1)!.id : null };
    },
  };
}

export function makeAuditChore(store: Store): Chore {
  return defineChore("purge-audit", {
    every: "1h",
    async run({ inBatches }) {
      await inBatches("purged", (limit) => purgeAudit(store, limit, KEEP_MS));
    },
  });
}
