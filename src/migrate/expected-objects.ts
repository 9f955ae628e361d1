// Which tables and indexes the migrations make, read from the migrations themselves: what is missing was taken away by
// somebody.
import { MIGRATIONS } from "./migrations.generated.ts";

export interface ExpectedObjects {
  tables: string[];
  /** By name, with the statement that makes it. */
  indexes: Map<string, string>;
}

export function expectedObjects(): ExpectedObjects {
  const tables = new Set<string>();
  const indexes = new Map<string, string>();
  for (const { sql } of MIGRATIONS) {
    const text = sql.replace(/--.*$/gm, "");
    for (const [statement, kind, name] of text.matchAll(
      /\b(create table|drop table|create (?:unique )?index|drop index)\s+(?:if (?:not )?exists\s+)?(?::schema\.)?(\w+)[^;]*/g,
    )) {
      if (kind === "create table") tables.add(name!);
      else if (kind === "drop table") tables.delete(name!);
      else if (kind === "drop index") indexes.delete(name!);
      else indexes.set(name!, statement.replace(/\s+/g, " ").trim());
    }
  }
  return { tables: [...tables], indexes };
}
