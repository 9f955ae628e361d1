// holdfast doctor: is all well, from this machine to the last recipient; and what to do where it is not. Exit code 3 if
// something is wrong.
import { existsSync } from "node:fs";
import { styleText } from "node:util";
import type { Command } from "commander";
import type { Finding } from "../../client/doctor/finding.ts";
import { DatabaseUnavailable, FolderLocked } from "../../errors.ts";
import { checkNode } from "../check-node.ts";
import { explain, EXIT } from "../exit-codes.ts";
import { note, print, printData } from "../output.ts";
import { printable } from "../printable.ts";
import { embeddedFolder, type Settings } from "../settings.ts";
import { readApi, readSettings, type ServerOptions, withDatabaseFlags, withDataFlags } from "./options.ts";

interface DoctorFlags extends ServerOptions {
  url?: string;
  json?: boolean;
  ndjson?: boolean;
  strict?: boolean;
}

export function addDoctor(program: Command): void {
  const command = program
    .command("doctor")
    .summary("check that all is well, and say what to do where it is not")
    .description(
      "Checks this machine, the configuration, the database, the schema, workers, queues and recipients.\n" +
        "Looks at the database itself; if a server has the embedded one, asks that server. Changes nothing.",
    );
  withDataFlags(withDatabaseFlags(command))
    .option("--url <url>", "the server to ask if it has the embedded database (HOLDFAST_URL)")
    .option("--strict", "warnings count as well")
    .option("-v, --verbose", "say more about errors")
    .action(runDoctor);
}

async function runDoctor(flags: DoctorFlags): Promise<void> {
  const findings = [checkNode(process.versions.node), ...(await examine(flags))];
  const problems = findings.filter(({ status }) => status === "problem").length;
  const warnings = findings.filter(({ status }) => status === "warning").length;
  if (problems > 0 || (flags.strict && warnings > 0)) process.exitCode = EXIT.unwell;
  if (printData(flags, { problems, warnings, findings }, findings)) return;
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
  note(`${parts.join(", ")}.`);
}

const MARKS = { ok: ["✓", "green"], warning: ["!", "yellow"], problem: ["✗", "red"] } as const;

function markOf(status: Finding["status"]): string {
  const [mark, color] = MARKS[status];
  return process.stdout.isTTY ? styleText(color, mark) : mark;
}

/** What keeps us from looking further is a finding like any other. */
async function examine(flags: DoctorFlags): Promise<Finding[]> {
  try {
    const { settings } = await readSettings(flags);
    return [
      { check: "config", status: "ok", message: "readable, and every key is known", fix: null },
      ...(await examineDatabase(flags, settings)),
    ];
  } catch (error) {
    const { message, hint } = explain(error);
    return [{ check: "config", status: "problem", message, fix: hint ?? "Run it again with --verbose." }];
  }
}

async function examineDatabase(flags: DoctorFlags, settings: Settings): Promise<Finding[]> {
  const folder = embeddedFolder(settings);
  if (folder !== undefined && !existsSync(folder)) {
    const message = `There is no embedded database in ${folder} yet.`;
    return [{ check: "database", status: "warning", message, fix: "holdfast dev makes one." }];
  }
  const { open } = await import("../../open.ts");
  const sentAt = performance.now();
  try {
    const hf = await open({ ...openOptions(settings), migrate: false });
    const reached = `${hf.tier === "server" ? "reached" : `opened ${folder ?? "in memory"}`} in ${Math.round(performance.now() - sentAt)} ms`;
    try {
      const ofApps = settings.apps.value.flatMap(({ jobs = [] }) => (typeof jobs === "function" ? jobs(hf) : jobs));
      const kinds = [...settings.jobs.value, ...ofApps];
      return [{ check: "database", status: "ok", message: reached, fix: null }, ...(await hf.doctor(kinds))];
    } finally {
      await hf.close();
    }
  } catch (error) {
    if (error instanceof FolderLocked) return await askServer(flags, error);
    const { message, hint } = explain(error);
    const check = error instanceof DatabaseUnavailable ? "database" : "schema";
    return [{ check, status: "problem", message, fix: hint ?? "Run it again with --verbose." }];
  }
}

/** Somebody has the embedded database, and can look at it for us. */
async function askServer(flags: DoctorFlags, locked: FolderLocked): Promise<Finding[]> {
  const api = await readApi(flags);
  try {
    const { findings } = await api.examine();
    return [
      { check: "database", status: "ok", message: `a server has it, and answers at ${api.url}`, fix: null },
      ...findings,
    ];
  } catch (error) {
    const { message, hint } = explain(error);
    return [
      {
        check: "database",
        status: "problem",
        message: `${locked.message} Asked over HTTP: ${message}`,
        fix: hint ?? locked.hint ?? "",
      },
    ];
  }
}

function openOptions(settings: Settings) {
  return {
    database: settings.database.value,
    data: settings.data.value,
    schema: settings.schema.value,
    keepDone: settings.keepDone.value,
    keepEnded: settings.keepEnded.value,
    queues: settings.queues.value,
    lease: settings.lease.value,
    inbox: settings.inbox.value,
  };
}
