// open(options): picks the database, brings the schema up to date, builds the client.
import { type Holdfast, makeClient } from "./client/client.ts";
import type { Db } from "./db/db.ts";
import { openEmbedded } from "./db/embedded.ts";
import { watchHealth } from "./db/health.ts";
import { openPostgres } from "./db/postgres.ts";
import { OptionInvalid } from "./errors.ts";
import type { HoldfastEvents } from "./metrics/events.ts";
import { logChores } from "./metrics/log-chores.ts";
import { assertSchema, migrate } from "./migrate/migrate.ts";
import { type OpenOptions, type ResolvedOptions, resolveOpenOptions } from "./options.ts";
import { makeEmitter } from "./shared/emitter.ts";
import { makePulses } from "./shared/pulse.ts";
import { expireEverything } from "./store/janitor/expire-leases.ts";
import { makePartitions } from "./store/janitor/partitions.ts";
import { assertRoutines, installRoutines } from "./store/routines.ts";
import { makeStore, type Store } from "./store/sql.ts";

/**
 * Opens a database, brings its schema up to date, and gives the client. Nothing runs before `hf.work()`; `hf.close()`
 * ends everything.
 */
export async function open(given: OpenOptions = {}): Promise<Holdfast> {
  return (await openParts(given)).hf;
}

/** The client and what it stands on: for holdfast/testing, which moves the clock and looks into the tables. */
export interface OpenedParts {
  hf: Holdfast;
  db: Db;
  store: Store;
}

export async function openParts(given: OpenOptions): Promise<OpenedParts> {
  const options = resolveOpenOptions(given);
  refuseUnnamedInProduction(given);
  const events = makeEmitter<HoldfastEvents>((error) => options.log.error("An event listener failed", { error }));
  events.on("trouble", ({ where, error }) => options.log.warn(`Trouble in ${where}`, { error }));
  logChores(events, options.log);
  const pulses = makePulses();
  const { db, seenForMs, hearsAll } = watchHealth(
    await openDatabase(options, (error) => events.emit("trouble", { where: "database", error })),
    pulses,
  );
  try {
    if (options.migrate) await migrate(db, options.schema);
    else await assertSchema(db, options.schema);
    const store = makeStore(db, options.schema);
    if (options.migrate) await installRoutines(store);
    else await assertRoutines(store);
    await makePartitions(store);
    // One process has the folder, and it is this one: whoever held these leases is gone.
    if (db.tier === "embedded") await expireEverything(store);
    return { hf: makeClient({ db, store, options, events, pulses, seenForMs, hearsAll }), db, store };
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Data that goes with the next deployment must have been asked for. */
function refuseUnnamedInProduction(given: OpenOptions): void {
  if (process.env["NODE_ENV"] !== "production" || (given.database !== undefined && given.database !== "")) return;
  throw new OptionInvalid(
    "open() got no database, and NODE_ENV is production.",
    'Give postgres://…, or "embedded:" if the embedded database in a folder is really meant.',
  );
}

function openDatabase(options: ResolvedOptions, onTrouble: (error: unknown) => void): Promise<Db> {
  const { place, callTimeoutMs } = options;
  switch (place.tier) {
    case "server":
      return openPostgres({
        url: place.url,
        poolSize: options.poolSize,
        statementTimeoutMs: callTimeoutMs,
        onTrouble,
      });
    case "embedded":
      return openEmbedded({ folder: place.folder }, { onTrouble });
    case "memory":
      return openEmbedded({ memory: true }, { onTrouble });
  }
}
