// holdfast bench: how fast this machine and this database do jobs that do nothing, in a place of its own that is removed
// afterwards; with what it was measured on.
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, cpus, platform, release, tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { note, print, printData, table } from "../output.ts";
import { Problem } from "../problem.ts";
import { embeddedFolder, type Settings } from "../settings.ts";
import { version } from "../../shared/version.ts";
import { given } from "../../http/given.ts";
import { readSettings, type ServerOptions, withDataFlags, withDatabaseFlags } from "./options.ts";

interface BenchFlags extends ServerOptions {
  json?: boolean;
  ndjson?: boolean;
  jobs: string;
  concurrency: string;
}

export function addBench(program: Command): void {
  const command = program
    .command("bench")
    .summary("measure how fast jobs go through this database")
    .description(
      "Measures jobs that do nothing, in a schema (or an embedded folder) of its own, which is removed afterwards.\n" +
        "It loads the database: not while others need it.",
    );
  withDataFlags(withDatabaseFlags(command))
    .option("--jobs <number>", "how many in bulk", "20000")
    .option("--concurrency <number>", "how many run at once", "100")
    .option("-v, --verbose", "say more about errors")
    .action(runBench);
}

async function runBench(flags: BenchFlags): Promise<void> {
  const jobs = toCount("--jobs", flags.jobs, 1_000_000);
  const concurrency = toCount("--concurrency", flags.concurrency, 10_000);
  const { config, embedded, data } = flags;
  const { settings } = await readSettings(given<ServerOptions>({ config, embedded, data }));
  const { open } = await import("../../open.ts");
  const { measure } = await import("../measure.ts");
  const place = await makePlace(settings);
  try {
    const hf = await open({ ...place.options, poolSize: 10 });
    try {
      const { database } = await hf.system();
      const environment = {
        holdfast: version(),
        node: process.version,
        system: `${platform()} ${release()}`,
        cpu: `${cpus()[0]?.model.trim() ?? "unknown"}, ${availableParallelism()} cores`,
        database: `PostgreSQL ${database.version}, ${hf.tier}`,
        answersInMs: database.answeredInMs,
        jobs,
        concurrency,
      };
      const results = await measure({ hf, jobs, concurrency, onStep: (what) => note(`… ${what}`) });
      if (printData(flags, { environment, results }, results)) return;
      print(
        table(
          ["WHAT", "FIGURE"],
          results.map(({ name, figure }) => [name, figure]),
        ),
      );
      note(
        Object.entries(environment)
          .map(([name, value]) => `${name}: ${value}`)
          .join("\n"),
      );
    } finally {
      await hf.close();
    }
  } finally {
    await place.remove();
  }
}

interface Place {
  options: { database: string; schema?: string };
  remove(): Promise<void>;
}

async function makePlace(settings: Settings): Promise<Place> {
  const database = settings.database.value;
  if (database === undefined || database === "memory:" || embeddedFolder(settings) !== undefined) {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
    return {
      options: { database: `embedded:${folder}` },
      remove: () => rm(folder, { recursive: true, force: true }),
    };
  }
  const schema = `holdfast_bench_${randomBytes(4).toString("hex")}`;
  return {
    options: { database, schema },
    async remove() {
      const [{ openPostgres }, { dropSchema }] = await Promise.all([
        import("../../db/postgres.ts"),
        import("../../migrate/drop-schema.ts"),
      ]);
      const db = await openPostgres({ url: database });
      try {
        await dropSchema(db, schema);
      } finally {
        await db.close();
      }
    },
  };
}

function toCount(name: string, value: string, most: number): number {
  if (/^\d{1,7}$/.test(value) && Number(value) >= 1 && Number(value) <= most) return Number(value);
  throw new Problem(`${name} is ${JSON.stringify(value)}.`, `Give a whole number from 1 to ${most}.`, EXIT.usage);
}
