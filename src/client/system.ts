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

export interface SystemFacts {
  database: DatabaseFacts & {
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
    const sentAt = performance.now();
    const database = await databaseFacts(store);
    const answeredInMs = performance.now() - sentAt;
    const skewMs = Math.round(Date.now() - answeredInMs / 2 - database.now.getTime());
    const [migrations, tables] = await Promise.all([appliedMigrations(store), tableFacts(store)]);
    return { database: { ...database, answeredInMs: Math.round(answeredInMs), skewMs }, migrations, tables };
  };
}
