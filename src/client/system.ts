// hf.system(): what this is and what it stands on, for people.
import {
  type AppliedMigration,
  appliedMigrations,
  type DatabaseFacts,
  databaseFacts,
  type TableFacts,
  tableFacts,
} from "../store/stats/system.ts";
import type { Store } from "../store/sql.ts";
import { readClockSkew } from "./clock-skew.ts";

/** What `hf.system()` gives: what the database is, holds and was migrated to. */
export interface SystemFacts {
  database: DatabaseFacts & {
    now: Date;
    /** How long it took to answer. */
    answeredInMs: number;
    /** How far this machine's clock is from the database's. */
    skewMs: number;
  };
  migrations: AppliedMigration[];
  tables: TableFacts[];
}

export function makeSystem(store: Store): () => Promise<SystemFacts> {
  return async () => {
    const { now, tookMs, skewMs } = await readClockSkew(store);
    const [database, migrations, tables] = await Promise.all([
      databaseFacts(store),
      appliedMigrations(store),
      tableFacts(store),
    ]);
    return { database: { ...database, now, answeredInMs: tookMs, skewMs }, migrations, tables };
  };
}
