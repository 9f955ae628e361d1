// An app's migrations from a folder: NNN_plain_words.sql, in the order of their names.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OptionInvalid } from "../errors.ts";
import type { AppMigration } from "../migrate/app-migrations.ts";

/**
 * An app's migrations, read from the .sql files of a folder in the order of their names:
 * `migrationsFrom(new URL("./migrations/", import.meta.url))`.
 */
export function migrationsFrom(folder: URL | string): AppMigration[] {
  const path = typeof folder === "string" ? folder : fileURLToPath(folder);
  let names: string[];
  try {
    names = readdirSync(path);
  } catch (error) {
    const hint = 'Write migrationsFrom(new URL("./migrations/", import.meta.url)).';
    throw new OptionInvalid(`The folder of migrations ${path} cannot be read.`, hint, { cause: error });
  }
  return names
    .filter((name) => name.endsWith(".sql"))
    .sort()
    .map((name) => ({ name: name.slice(0, -".sql".length), sql: readFileSync(join(path, name), "utf8") }));
}
