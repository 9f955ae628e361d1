// hf.audit: what people did over HTTP. Kept for 90 days.
import { type Chore, defineChore } from "../job/define-chore.ts";
import { checkLimit, checkNumberCursor, cutPage } from "../shared/page.ts";
import { insertAudit, type NewAuditEntry } from "../store/audit/insert.ts";
import { type AuditEntry, listAudit } from "../store/audit/list.ts";
import { purgeAudit } from "../store/audit/purge.ts";
import type { Store } from "../store/sql.ts";

/** `hf.audit`: what people did over HTTP, refused requests included. */
export interface Audit {
  add(entry: NewAuditEntry): Promise<void>;
  /** Newest first; `next` is the cursor of the following page, or null. */
  list(options?: { limit?: number | undefined; cursor?: string | undefined }): Promise<AuditPage>;
}

/** One page of the audit log, newest first. */
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
      const found = await listAudit(store, checkNumberCursor(cursor), checkLimit(limit, MAX_PAGE) + 1);
      const { page: entries, next } = cutPage(found, limit);
      return { entries, next };
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
