// holdfast migrate: brings the schema up to date, says whether it is, or prints the SQL for somebody else to run.
import { type Command, Option } from "commander";
import type { Db } from "../../db/db.ts";
import { SchemaOutdated } from "../../errors.ts";
import { DUTIES, type Duty, grantsSql } from "../../migrate/grants.ts";
import { makeStore } from "../../store/sql.ts";
import { EXIT } from "../exit-codes.ts";
import { explainLocked } from "../find-server.ts";
import { note, print } from "../output.ts";
import { embeddedFolder, refuseAccidentalEmbedded, type Settings } from "../settings.ts";
import { readSettings, type ServerOptions, withDatabaseFlags } from "./options.ts";

interface MigrateOptions extends ServerOptions {
  print?: boolean;
  status?: boolean;
  grants?: string;
  duty: string;
}

export function addMigrate(program: Command): void {
  const command = program
    .command("migrate")
    .summary("bring the schema in the database up to date")
    .description(
      "Brings the schema in the database up to date. Safe when several processes do it at once.\n" +
        "dev, start and worker do the same when they start.",
    );
  withDatabaseFlags(command)
    .option("--print", "print the SQL, from nothing to this version, and change nothing")
    .option("--status", "say whether the schema is up to date, and change nothing; exit code 1 if it is not")
    .option("--grants <role>", "print the SQL that lets this database role do its duty, and change nothing")
    .addOption(
      new Option("--duty <duty>", "with --grants: what the role does").choices(DUTIES).default("work" satisfies Duty),
    )
    .option("-v, --verbose", "say more about errors")
    .action(runMigrate);
}

async function runMigrate(options: MigrateOptions): Promise<void> {
  const { settings, isProduction } = await readSettings(options);
  const schema = settings.schema.value;
  const { assertSchema, latestVersion, migrate, migrationSql } = await import("../../migrate/migrate.ts");
  const { assertRoutines, installRoutines, missingRoutines, routinesSql } = await import("../../store/routines.ts");
  const { appMigrationSql, assertApp, migrateApp } = await import("../../migrate/app-migrations.ts");
  const apps = settings.apps.value.map(({ name, migrations = [] }) => ({ name, migrations }));
  if (options.grants !== undefined) return print(grantsSql(schema, options.grants, dutyOf(options.duty)));
  if (options.print) {
    const forApps = apps.map(({ name, migrations }) => appMigrationSql(schema, name, migrations));
    return print([migrationSql(schema), routinesSql(schema), ...forApps].join("\n\n"));
  }
  refuseAccidentalEmbedded(settings, isProduction);
  const db = await openDatabase(settings).catch(
    explainLocked(
      "Migrating",
      "That process brought the schema to its version when it started. For another version, stop it first.",
    ),
  );
  const store = makeStore(db, schema);
  try {
    if (options.status) {
      await assertSchema(db, schema);
      await assertRoutines(store);
      for (const { name, migrations } of apps) await assertApp(db, schema, name, migrations);
      return print(`Schema "${schema}" is up to date (version ${latestVersion()}).`);
    }
    const { from, to, applied } = await migrate(db, schema);
    for (const name of applied) note(`Applied ${name}`);
    const missing = await missingRoutines(store);
    await installRoutines(store);
    if (missing.length > 0) note(`Created ${missing.length} routines`);
    for (const { name: app, migrations } of apps) {
      for (const name of await migrateApp(db, schema, app, migrations)) note(`Applied ${name} of ${app}`);
    }
    if (applied.length > 0) print(`Schema "${schema}" went from version ${from} to ${to}.`);
    else if (missing.length > 0) print(`Schema "${schema}" has the routines of this version now (version ${to}).`);
    else print(`Schema "${schema}" was already up to date (version ${to}).`);
  } catch (error) {
    if (!(options.status && error instanceof SchemaOutdated)) throw error;
    print(error.message);
    process.exitCode = EXIT.failed;
  } finally {
    await db.close();
  }
}

/** Commander has seen to it that it is one. */
const dutyOf = (text: string): Duty => DUTIES.find((duty) => duty === text) ?? "work";

async function openDatabase(settings: Settings): Promise<Db> {
  const folder = embeddedFolder(settings);
  if (folder === undefined && settings.database.value !== "memory:") {
    const { openPostgres } = await import("../../db/postgres.ts");
    return openPostgres({ url: settings.database.value ?? "" });
  }
  const { openEmbedded } = await import("../../db/embedded.ts");
  return openEmbedded(folder === undefined ? { memory: true } : { folder });
}
