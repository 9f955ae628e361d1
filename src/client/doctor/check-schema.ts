// The schema: is every table and index there that the migrations make, can they be used, and may this role use them.
import { expectedObjects } from "../../migrate/expected-objects.ts";
import { quoteSchema } from "../../shared/quote-schema.ts";
import { readMissingRights, readObjects } from "../../store/doctor/server-facts.ts";
import { listLeaves } from "../../store/janitor/history-leaves.ts";
import { databaseNow } from "../../store/stats/database-clock.ts";
import type { Store } from "../../store/sql.ts";
import { count, type Finding, ok, problem, warning } from "./finding.ts";
import { canCreate, repairs } from "./repairs.ts";

export async function checkSchema(store: Store): Promise<Finding[]> {
  const expected = expectedObjects();
  const found = await readObjects(store);
  const schema = quoteSchema(store.schema);
  const wrong: Finding[] = [];
  for (const table of expected.tables) {
    if (found.tables.includes(table)) continue;
    wrong.push(problem("schema", `The table ${table} is missing.`, "Restore it from a backup, or use a fresh schema."));
  }
  for (const [index, statement] of expected.indexes) {
    if (index in found.indexes) continue;
    const message = `The index ${index} is missing: what needs it reads whole tables.`;
    const repair = canCreate(statement) ? repairs.createIndex(index) : null;
    wrong.push(problem("schema", message, `${statement.replaceAll(":schema", () => schema)};`, repair));
  }
  for (const [index, isUsable] of Object.entries(found.indexes)) {
    if (isUsable) continue;
    const message = `The index ${index} is invalid: it costs writes and helps nobody.`;
    wrong.push(
      problem("schema", message, `reindex index concurrently ${schema}."${index}";`, repairs.rebuildIndex(index)),
    );
  }
  if (wrong.length > 0) return wrong;
  const [tables, indexes] = [count(expected.tables.length, "table"), count(expected.indexes.size, "index", "indexes")];
  return [ok("schema", `${tables} and ${indexes}, all there`)];
}

export async function checkRights(store: Store): Promise<Finding[]> {
  const missing = await readMissingRights(store);
  if (missing.length === 0) return [ok("rights", "this role may do what a worker does")];
  const shown = missing.slice(0, 4).join(", ") + (missing.length > 4 ? ` and ${missing.length - 4} more` : "");
  const fix = "If it is to run workers, let the owner run what `holdfast migrate --grants ROLE` prints.";
  return [warning("rights", `This role has not every right that a worker needs (${shown}).`, fix)];
}

const DAY_MS = 86_400_000;

/** A finished job needs a place. */
export async function checkHistory(store: Store): Promise<Finding[]> {
  const [leaves, now] = await Promise.all([listLeaves(store), databaseNow(store)]);
  const days = new Set(leaves.filter(({ place }) => place === "attached").map(({ day }) => day));
  const needed = [0, 1].map((ahead) => new Date(now.getTime() + ahead * DAY_MS).toISOString().slice(0, 10));
  const missing = needed.filter((day) => !days.has(day));
  if (missing.length > 0) {
    const message = `The history has no partition for ${missing.join(" and ")}.`;
    return [
      problem(
        "history",
        message,
        "Run the chore that makes them: holdfast janitor run make-partitions",
        repairs.runChore("make-partitions"),
      ),
    ];
  }
  const left = leaves.length - days.size;
  if (left > 0) {
    const message = `${count(left, "day")} of the history taken out and not dropped.`;
    return [warning("history", message, "holdfast janitor run drop-days", repairs.runChore("drop-days"))];
  }
  return [ok("history", `${count(days.size, "day")}, those to come included`)];
}
