// Puts this version's routines into the schema. What is there already is left alone, so that a role that may not create
// anything can start; two processes at once take turns.
import "./jobs/beat.ts";
import "./jobs/claim.ts";
import "./jobs/claim-light.ts";
import "./jobs/find.ts";
import "./jobs/insert.ts";
import "./jobs/look.ts";
import "./jobs/mark.ts";
import "./jobs/progress.ts";
import "./jobs/settle.ts";
import "./batches/add.ts";
import "./batches/advance.ts";
import "./batches/cancel.ts";
import "./batches/changes.ts";
import "./batches/delete.ts";
import "./batches/end-handed.ts";
import "./batches/expire-handed.ts";
import "./batches/pause.ts";
import "./batches/resume.ts";
import "./batches/retry-failed.ts";
import "./batches/set-fields.ts";
import "./batches/settle.ts";
import "./batches/start.ts";
import "./audit/purge.ts";
import "./janitor/chore-history.ts";
import "./batches/tend.ts";
import "./errors/list.ts";
import "./stats/unserved.ts";
import "./janitor/expire-leases.ts";
import "./janitor/partitions.ts";
import "./janitor/forget.ts";
import "./janitor/history-leaves.ts";
import "./janitor/purge.ts";
import "./inbox/ack.ts";
import "./inbox/deliver.ts";
import "./inbox/draft.ts";
import "./inbox/expire.ts";
import "./inbox/list.ts";
import "./inbox/note-poll.ts";
import "./inbox/purge.ts";
import "./inbox/read.ts";
import "./inbox/remove-content.ts";
import "./inbox/take.ts";
import "./stats/depths.ts";
import "./stats/run-counts.ts";
import { SchemaOutdated } from "../errors.ts";
import { quoteSchema } from "../shared/quote-schema.ts";
import { type Routine, ROUTINES, sql, type Store } from "./sql.ts";

const THERE = sql`
select p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = $1 and p.proname = any($2::text[])`;

const LOCK = sql`select pg_advisory_xact_lock(hashtextextended('holdfast routines ' || $1::text, 0))`;

export async function missingRoutines(store: Store): Promise<Routine[]> {
  const names = ROUTINES.map((routine) => routine.name);
  const { rows } = await store.query<{ name: string }>(THERE, [store.schema, names]);
  const there = new Set(rows.map((row) => row.name));
  return ROUTINES.filter((routine) => !there.has(routine.name));
}

export async function installRoutines(store: Store): Promise<void> {
  if ((await missingRoutines(store)).length === 0) return;
  await store.transaction(async (tx) => {
    await tx.query(LOCK, [store.schema]);
    for (const routine of await missingRoutines(tx)) {
      await tx.query({ textIn: (quotedSchema) => routine.createIn(quotedSchema) });
    }
  });
}

/** For processes that must not migrate. */
export async function assertRoutines(store: Store): Promise<void> {
  const missing = await missingRoutines(store);
  if (missing.length === 0) return;
  throw new SchemaOutdated(
    `Schema "${store.schema}" lacks ${missing.length} routines of this version of Holdfast.`,
    "Run `holdfast migrate` of this version, or open with migrate: true.",
  );
}

/** The same as text, for people who migrate by hand. */
export function routinesSql(schema: string): string {
  return ROUTINES.map((routine) => `${routine.createIn(quoteSchema(schema))};`).join("\n\n");
}
