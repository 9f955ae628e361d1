// What a command says to whoever called it: data on stdout, everything else on stderr.
import type { JobSummary } from "../http/contracts/jobs.ts";
import { explain } from "./exit-codes.ts";
import { printable } from "./printable.ts";

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

export interface DataFlags {
  json?: boolean;
  ndjson?: boolean;
}

export const isForPrograms = ({ json, ndjson }: DataFlags): boolean => json === true || ndjson === true;

/** For programs: the whole as one document, or each row on a line of its own. False: it is for a person to read. */
export function printData(flags: DataFlags, document: object, rows: readonly unknown[] = [document]): boolean {
  if (flags.json) printJson(document);
  else if (flags.ndjson) {
    for (const row of rows) print(JSON.stringify(row));
    // The document would say it; lines do not.
    noteNext(document);
  }
  return isForPrograms(flags);
}

/** After a page: how to get the one that follows. */
export function noteNext(page: { next?: unknown }): void {
  if (typeof page.next === "string") note(`There are more: --cursor ${page.next}`);
}

/** A remark for people; a program reads stdout. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function noteError(error: unknown, verbose: boolean): void {
  const { message, hint, code, isUnexpected } = explain(error);
  note(`Error: ${message}${code === undefined ? "" : ` (${code})`}`);
  if (hint) note(`  ${hint}`);
  if (verbose && error instanceof Error && (isUnexpected || error.cause !== undefined)) {
    note(error.stack ?? error.message);
    if (error.cause instanceof Error) note(`Caused by ${error.cause.stack ?? error.cause.message}`);
  }
}

const COLUMNS: readonly [string, (job: JobSummary) => string][] = [
  ["ID", (job) => job.id],
  ["STATUS", (job) => job.status],
  ["KIND", (job) => job.kind],
  ["QUEUE", (job) => job.queue],
  ["TRY", (job) => `${job.attempt}/${job.maxAttempts}`],
  ["CREATED", (job) => job.createdAt],
  ["LAST ERROR", (job) => job.lastError?.message.slice(0, 60) ?? ""],
];

export function jobTable(jobs: readonly JobSummary[]): string {
  return table(
    COLUMNS.map(([title]) => title),
    jobs.map((job) => COLUMNS.map(([, of]) => of(job))),
  );
}

export function table(titles: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = [titles, ...cells.map((row) => row.map(printable))];
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
