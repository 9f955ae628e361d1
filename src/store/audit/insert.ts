import { cleanText } from "../../job/storable.ts";
import { sql, type Store } from "../sql.ts";

export interface NewAuditEntry {
  caller: string;
  action: string;
  target: string;
  status: number;
}

const INSERT = sql`
insert into :schema.audit (at, caller, action, target, status) values (:schema.clock(), $1, $2, $3, $4)`;

const LONGEST = 500;

export async function insertAudit(store: Store, { caller, action, target, status }: NewAuditEntry): Promise<void> {
  await store.query(INSERT, [cleanText(caller, LONGEST), action, cleanText(target, LONGEST), status]);
}
