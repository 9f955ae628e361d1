// The server that everything rests on: is it one we know, does it keep what it acknowledges, does it clean up, has it room.
import { formatDuration } from "../../shared/duration.ts";
import { quoteSchema } from "../../shared/quote-schema.ts";
import {
  autovacuumAgain,
  readBloated,
  readHeldSnapshots,
  readNotVacuumed,
  readServerFacts,
  type ServerFacts,
} from "../../store/doctor/server-facts.ts";
import type { Store } from "../../store/sql.ts";
import { readClockSkew } from "../clock-skew.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { repairs } from "./repairs.ts";

const OLDEST = 140_000;
const NEWEST_TESTED = 18;
const SKEW_MS = 5_000;
/** A transaction of minutes keeps minutes of dead rows. */
const OLD_MS = 300_000;
/** Beside its pool a process has a heartbeat thread with two connections, and a listener or two. */
const BESIDE_THE_POOL = 4;

export async function checkServer(store: Store, poolSize: number): Promise<Finding[]> {
  const facts = await readServerFacts(store);
  return [checkVersion(facts), checkDurability(facts), checkAutovacuum(facts), checkRoom(facts, poolSize)];
}

function checkVersion({ version, versionNumber, role, ownsTables }: ServerFacts): Finding {
  if (versionNumber < OLDEST) {
    return problem("version", `PostgreSQL ${version} is older than 14.`, "Upgrade the server to PostgreSQL 14 to 18.");
  }
  if (Math.floor(versionNumber / 10_000) > NEWEST_TESTED) {
    const message = `PostgreSQL ${version} is newer than this version of Holdfast was tested with.`;
    return warning("version", message, "Look for a newer Holdfast.");
  }
  return ok("version", `PostgreSQL ${version}, as ${role}${ownsTables ? ", which owns the tables" : ""}`);
}

function checkDurability({ settings }: ServerFacts): Finding {
  if (settings["default_transaction_read_only"] === "on") {
    const message = "Transactions are read-only by default: this is a replica, or a server that was switched to it.";
    return problem("durability", message, "Connect to the primary.");
  }
  const off = offOf(settings, ["fsync", "full_page_writes", "synchronous_commit"]);
  if (off.length === 0) return ok("durability", "what is acknowledged is on the disk");
  const message = `${off.join(", ")} off: what was acknowledged can be lost when the server or its machine dies.`;
  return problem("durability", message, `${turnOn(off)}, in postgresql.conf, for the database and for the role.`);
}

function checkAutovacuum({ settings }: ServerFacts): Finding {
  const off = offOf(settings, ["autovacuum", "track_counts"]);
  if (off.length === 0) return ok("autovacuum", "on");
  return problem("autovacuum", `${off.join(", ")} off: tables grow, and claims slow down.`, `${turnOn(off)}.`);
}

const offOf = (settings: Record<string, string>, names: readonly string[]): string[] =>
  names.filter((name) => settings[name] === "off");
const turnOn = (names: readonly string[]): string => `Set ${names.map((name) => `${name} = on`).join(", ")}`;

function checkRoom({ connections, mostConnections }: ServerFacts, poolSize: number): Finding {
  const perProcess = poolSize + BESIDE_THE_POOL;
  const said = `${connections} of ${mostConnections} in use; a process takes up to ${perProcess}`;
  const fix = "Lower poolSize, raise max_connections, or put a pooler in front.";
  if (perProcess > mostConnections) return problem("connections", `${said}.`, fix);
  return connections > 0.8 * mostConnections ? warning("connections", `${said}.`, fix) : ok("connections", said);
}

const END_OF = {
  session: "End that transaction, or its session: select pg_terminate_backend(pid);",
  prepared: "commit prepared or rollback prepared.",
  slot: "Start its consumer, or drop it: select pg_drop_replication_slot(name);",
} as const;

/** What keeps dead rows in the tables. */
export async function checkTables(store: Store): Promise<Finding[]> {
  const inSchema = (table: string): string => `${quoteSchema(store.schema)}.${table}`;
  const held = (await readHeldSnapshots(store, OLD_MS)).map(({ what, name, forMs }) => {
    const since = forMs === null ? "" : ` for ${formatDuration(forMs)}`;
    const message = `${name} has held an old snapshot${since}: no row that died since then can be removed.`;
    return warning("old-snapshots", message, END_OF[what]);
  });
  const full = (await readBloated(store)).map(({ table, dead, live }) => {
    const message = `${table} holds ${dead} dead rows beside ${live} live ones.`;
    return warning("dead-rows", message, `vacuum (analyze) ${inSchema(table)};`, repairs.vacuum(table));
  });
  const alone = (await readNotVacuumed(store)).map((table) => {
    return problem(
      "autovacuum",
      `autovacuum leaves ${table} alone.`,
      autovacuumAgain(inSchema(table)),
      repairs.autovacuum(table),
    );
  });
  return [
    ...alone,
    ...(held.length > 0 ? held : [ok("old-snapshots", "none")]),
    ...(full.length > 0 ? full : [ok("dead-rows", "few")]),
  ];
}

/** Only the database's clock decides anything; but times that this host computes are its own. */
export async function checkClock(store: Store): Promise<Finding[]> {
  const skewMs = Math.abs((await readClockSkew(store)).skewMs);
  const said = `this host and the database differ by ${formatDuration(skewMs)}`;
  if (skewMs <= SKEW_MS) return [ok("clock", said)];
  const message = `${said}: a runAt that is computed here is off by as much.`;
  return [warning("clock", message, "Let NTP set both clocks; or give a delay instead of a runAt.")];
}
