// Mends what the doctor found, beside everybody else: nothing here keeps a table locked for long.
import type { Statement, Store } from "../sql.ts";

/** Large tables take long, and nobody has to wait for them. */
const PATIENCE_MS = 30 * 60_000;

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const inSchema = (text: (schema: string) => string): Statement => ({ textIn: text });
/** One session cannot be in its own way, and does not know how to go on beside itself. */
const beside = (store: Store): string => (store.tier === "server" ? " concurrently" : "");

/** `statement`: as a migration has it. */
export async function createIndex(store: Store, statement: string): Promise<void> {
  const text = statement.replace(/^(create (?:unique )?index)\b/, `$1${beside(store)}`);
  await store.query(
    inSchema((schema) => text.replaceAll(":schema", () => schema)),
    [],
    { timeoutMs: PATIENCE_MS },
  );
}

export async function rebuildIndex(store: Store, index: string): Promise<void> {
  const statement = inSchema((schema) => `reindex index${beside(store)} ${schema}.${quoted(index)}`);
  await store.query(statement, [], { timeoutMs: PATIENCE_MS });
}

export async function resetAutovacuum(store: Store, table: string): Promise<void> {
  await store.query(inSchema((schema) => `alter table ${schema}.${quoted(table)} reset (autovacuum_enabled)`));
}

export async function vacuumTable(store: Store, table: string): Promise<void> {
  const statement = inSchema((schema) => `vacuum (analyze) ${schema}.${quoted(table)}`);
  await store.query(statement, [], { timeoutMs: PATIENCE_MS });
}
