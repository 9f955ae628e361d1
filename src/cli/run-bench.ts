// What `holdfast bench` does. It needs the whole of Holdfast, which other commands should not have to wait for.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { dropTrialSchema, trialSchema } from "../migrate/drop-schema.ts";
import { openParts } from "../open.ts";
import { readServerFacts } from "../store/doctor/server-facts.ts";
import { uuidv7 } from "../shared/uuid.ts";
import { version } from "../shared/version.ts";
import { EXIT } from "./exit-codes.ts";
import { type Measured, measure } from "./measure.ts";
import { type DataFlags, note, print, printData, table } from "./output.ts";
import { Problem } from "./problem.ts";
import { embeddedFolder, type Settings } from "./settings.ts";
import { watchSignals } from "./signals.ts";
import { readSettings, type ServerOptions } from "./commands/options.ts";

export interface BenchFlags extends ServerOptions, DataFlags {
  seconds: string;
  compare?: boolean;
}

export async function runBench(flags: BenchFlags): Promise<void> {
  if (flags.compare) return await comparePeers();
  const seconds = Number(flags.seconds);
  if (!(seconds > 0 && seconds <= 600)) {
    throw new Problem(`--seconds is ${JSON.stringify(flags.seconds)}.`, "Give a number up to 600.", EXIT.usage);
  }
  const { settings } = await readSettings(flags);
  const signals = watchSignals((signal) => note(`Ended by a second ${signal}: the schema it made is left behind.`));
  const place = await choosePlace(settings);
  try {
    const parts = await openParts({ database: place.database, schema: place.schema });
    try {
      const facts = await readServerFacts(parts.store);
      const environment = {
        at: new Date().toISOString(),
        holdfast: version(),
        node: process.version,
        processors: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
        memory: `${(totalmem() / 2 ** 30).toFixed(1)} GB`,
        database: `${parts.db.tier === "embedded" ? "embedded " : ""}PostgreSQL ${facts.version}`,
        fsync: facts.settings["fsync"],
        synchronousCommit: facts.settings["synchronous_commit"],
      };
      const say = (what: string): void => note(`Measuring: ${what} ...`);
      const measured = await measure(parts.hf, seconds, () => signals.received, say);
      report(flags, environment, measured);
      if (measured.wrong > 0) process.exitCode = EXIT.failed;
      if (signals.received) process.exitCode = EXIT.interrupted;
    } finally {
      if (parts.db.tier === "server") await dropTrialSchema(parts.db, place.schema);
      await parts.hf.close();
    }
  } finally {
    await place.remove();
  }
}

/** Never where somebody's jobs are. */
async function choosePlace(settings: Settings): Promise<{ database: string; schema: string; remove(): Promise<void> }> {
  const schema = trialSchema(uuidv7().slice(-12));
  const { value } = settings.database;
  if (value !== undefined && (value === "memory:" || embeddedFolder(settings) === undefined)) {
    return { database: value, schema, remove: async () => {} };
  }
  const folder = await mkdtemp(join(tmpdir(), "holdfast-trial-"));
  return {
    database: `embedded:${join(folder, "data")}`,
    schema,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

function report(flags: BenchFlags, environment: Record<string, string | undefined>, measured: Measured): void {
  const { figures, jobs, wrong } = measured;
  if (printData(flags, { environment, ...measured }, figures)) return;
  const { at, holdfast, node, processors, memory, database, fsync, synchronousCommit } = environment;
  print(`${at}  ${processors}, ${memory}`);
  print(`Holdfast ${holdfast}, Node ${node}, ${database}, fsync ${fsync}, synchronous_commit ${synchronousCommit}\n`);
  const shown = (value: number, unit: string): string =>
    unit === "ms" ? value.toFixed(2) : Math.round(value).toLocaleString("en-US");
  print(
    table(
      ["STEP", "FIGURE"],
      figures.map(({ what, value, unit }) => [what, `${shown(value, unit)} ${unit}`]),
    ),
  );
  const verdict = wrong === 0 ? "each ran once" : `${wrong} ran not at all or more than once`;
  print(`\n${jobs.toLocaleString("en-US")} jobs, ${verdict}.`);
}

/** The comparison has dependencies of its own and is not part of the package. */
async function comparePeers(): Promise<void> {
  const script = fileURLToPath(new URL("../../bench/full.mjs", import.meta.url));
  if (!existsSync(script)) {
    throw new Problem(
      "The comparison with the peers is not part of the package.",
      "Clone Holdfast's repository and run `npm run bench` there; or leave out --compare to measure this database.",
      EXIT.usage,
    );
  }
  const child = spawn(process.execPath, [script], { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? EXIT.failed));
  });
}
