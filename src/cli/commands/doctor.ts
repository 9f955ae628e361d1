// holdfast doctor: is all well, from this machine to the last recipient; and what to do where it is not. Exit code 3 if
// something is wrong. With --fix it mends what can be mended without harm, after a question.
import { existsSync } from "node:fs";
import { styleText } from "node:util";
import type { Command } from "commander";
import { type Finding, ok, problem, type Repair, warning } from "../../client/doctor/finding.ts";
import { DatabaseUnavailable, FolderLocked } from "../../errors.ts";
import { checkNode } from "../check-node.ts";
import { isColored } from "../colors.ts";
import { confirm } from "../confirm.ts";
import { explain, EXIT } from "../exit-codes.ts";
import { type DataFlags, note, print, printData } from "../output.ts";
import { printable } from "../printable.ts";
import { Problem } from "../problem.ts";
import { embeddedFolder, openOptions, type Settings } from "../settings.ts";
import { readApi, readSettings, type ServerOptions, withDatabaseFlags, withDataFlags } from "./options.ts";

interface DoctorFlags extends ServerOptions, DataFlags {
  url?: string;
  strict?: boolean;
  fix?: boolean;
  yes?: boolean;
}

export function addDoctor(program: Command): void {
  const command = program
    .command("doctor")
    .summary("check that all is well, and say what to do where it is not")
    .description(
      "Checks this machine, the configuration, the database, the schema, workers, queues and recipients.\n" +
        "Looks at the database itself; if a server has the embedded one, asks that server.\n" +
        "Changes nothing, unless --fix says so: then it shows what it would mend, asks, and looks again.",
    );
  withDataFlags(withDatabaseFlags(command))
    .option("--url <url>", "the server to ask if it has the embedded database (HOLDFAST_URL)")
    .option("--strict", "warnings count as well")
    .option("--fix", "mend what can be mended without harm: missing indexes, chores that are late, and the like")
    .option("-y, --yes", "with --fix: without asking")
    .option("-v, --verbose", "say more about errors")
    .action(runDoctor);
}

async function runDoctor(flags: DoctorFlags): Promise<void> {
  if (flags.yes && !flags.fix) throw new Problem("--yes is given without --fix.", "Give both, or neither.", EXIT.usage);
  const look = async (repairs: readonly Repair[] = []): Promise<Examined> => {
    const examined = await examine(flags, repairs);
    return { ...examined, findings: [checkNode(process.versions.node), ...examined.findings] };
  };
  let { findings } = await look();
  let repaired: Repaired[] = [];
  if (flags.fix) {
    // Two findings may have one cause.
    const offered = new Map(findings.flatMap(({ repair }) => (repair ? [[repair.id, repair] as const] : [])));
    if (offered.size === 0) note("There is nothing that can be mended from here.");
    else {
      note("This would be done, and nothing else:");
      for (const { what } of offered.values()) note(`  ${printable(what)}`);
      await confirm("Do it?", flags.yes);
      ({ findings, repaired } = await look([...offered.values()]));
      for (const { done } of repaired) note(printable(done));
    }
  }
  tell(findings, repaired, flags);
}

interface Repaired {
  repair: string;
  done: string;
}

interface Examined {
  findings: Finding[];
  repaired: Repaired[];
}

function tell(findings: readonly Finding[], repaired: readonly Repaired[], flags: DoctorFlags): void {
  const problems = findings.filter(({ status }) => status === "problem").length;
  const warnings = findings.filter(({ status }) => status === "warning").length;
  if (problems > 0 || (flags.strict && warnings > 0)) process.exitCode = EXIT.unwell;
  if (printData(flags, { problems, warnings, findings, ...(flags.fix && { repaired }) }, findings)) return;
  const width = Math.max(...findings.map(({ check }) => check.length));
  for (const { check, status, message, fix } of findings) {
    print(`${markOf(status)} ${check.padEnd(width)}  ${printable(message)}`);
    if (fix !== null) print(`  ${" ".repeat(width)}  → ${printable(fix)}`);
  }
  if (problems + warnings === 0) return note("All is well.");
  const parts = [
    problems === 1 ? "1 problem" : `${problems} problems`,
    warnings === 1 ? "1 warning" : `${warnings} warnings`,
  ];
  const mendable = flags.fix ? 0 : findings.filter(({ repair }) => repair !== null).length;
  note(`${parts.join(", ")}.${mendable === 0 ? "" : ` ${mendable} of them can be mended: holdfast doctor --fix`}`);
}

const MARKS = { ok: ["✓", "green"], warning: ["!", "yellow"], problem: ["✗", "red"] } as const;

function markOf(status: Finding["status"]): string {
  const [mark, color] = MARKS[status];
  return isColored(process.stdout) ? styleText(color, mark, { validateStream: false }) : mark;
}

/** What keeps us from looking further is a finding like any other. */
async function examine(flags: DoctorFlags, repairs: readonly Repair[]): Promise<Examined> {
  try {
    const { settings } = await readSettings(flags);
    const { findings, repaired } = await examineDatabase(flags, settings, repairs);
    return { findings: [ok("config", "readable, and every key is known"), ...findings], repaired };
  } catch (error) {
    const { message, hint } = explain(error);
    return found(problem("config", message, hint ?? "Run it again with --verbose."));
  }
}

const found = (...findings: Finding[]): Examined => ({ findings, repaired: [] });

/** One after the other; one that fails keeps no other from being made. */
async function mend(repairs: readonly Repair[], make: (id: string) => Promise<string>): Promise<Repaired[]> {
  const repaired: Repaired[] = [];
  for (const { id, what } of repairs) {
    const done = await make(id).catch((error: unknown) => `It failed (${what}): ${explain(error).message}`);
    repaired.push({ repair: id, done });
  }
  return repaired;
}

async function examineDatabase(flags: DoctorFlags, settings: Settings, repairs: readonly Repair[]): Promise<Examined> {
  const folder = embeddedFolder(settings);
  if (folder !== undefined && !existsSync(folder)) {
    return found(warning("database", `There is no embedded database in ${folder} yet.`, "holdfast dev makes one."));
  }
  const { open } = await import("../../open.ts");
  const sentAt = performance.now();
  try {
    const hf = await open({ ...openOptions(settings), migrate: false });
    const reached = `${hf.tier === "server" ? "reached" : `opened ${folder ?? "in memory"}`} in ${Math.round(performance.now() - sentAt)} ms`;
    try {
      const ofApps = settings.apps.value.flatMap(({ jobs = [] }) => (typeof jobs === "function" ? jobs(hf) : jobs));
      const kinds = [...settings.jobs.value, ...ofApps];
      const repaired = await mend(repairs, hf.repair);
      return { findings: [ok("database", reached), ...(await hf.doctor(kinds))], repaired };
    } finally {
      await hf.close();
    }
  } catch (error) {
    if (error instanceof FolderLocked) return await askServer(flags, error, repairs);
    const { message, hint } = explain(error);
    const check = error instanceof DatabaseUnavailable ? "database" : "schema";
    return found(problem(check, message, hint ?? "Run it again with --verbose."));
  }
}

/** Somebody has the embedded database, and can look at it for us. */
async function askServer(flags: DoctorFlags, locked: FolderLocked, repairs: readonly Repair[]): Promise<Examined> {
  const api = await readApi(flags);
  try {
    const repaired = await mend(repairs, async (id) => (await api.makeRepair(id)).done);
    const { findings } = await api.examine();
    return { findings: [ok("database", `a server has it, and answers at ${api.url}`), ...findings], repaired };
  } catch (error) {
    const { message, hint } = explain(error);
    return found(problem("database", `${locked.message} Asked over HTTP: ${message}`, hint ?? locked.hint ?? ""));
  }
}
