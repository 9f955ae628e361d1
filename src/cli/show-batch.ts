// Batches as text: one as a page, several as a table, how far one is as a line.
import type { BatchView } from "../http/contracts/batches.ts";
import { formatDuration } from "../shared/duration.ts";
import { table } from "./output.ts";
import { printable } from "./printable.ts";

const COLUMNS: readonly [string, (batch: BatchView) => string][] = [
  ["ID", ({ id }) => id],
  ["STATE", ({ state }) => state],
  ["KIND", ({ kind }) => kind],
  ["OWNER", ({ owner }) => owner ?? ""],
  ["ENDED", ({ ended, total }) => `${ended}/${total}`],
  ["ERRORS", ({ counts }) => String(counts["error"] ?? 0)],
  ["CREATED", ({ createdAt }) => createdAt],
];

export function batchTable(batches: readonly BatchView[]): string {
  return table(
    COLUMNS.map(([title]) => title),
    batches.map((batch) => COLUMNS.map(([, of]) => of(batch))),
  );
}

export function showBatch(batch: BatchView): string {
  const facts: [string, unknown][] = [
    ["id", batch.id],
    ["kind", batch.kind],
    ["queue", batch.queue],
    ["owner", batch.owner],
    ["key", batch.key],
    ["state", batch.reason === null ? batch.state : `${batch.state} (${batch.reason})`],
    ["items", `${batch.ended} of ${batch.total} have ended${batch.closed ? "" : "; more may come"}`],
    ["rate", batch.rate === null ? null : `${batch.rate.toFixed(1)} a second`],
    ["time left", batch.etaMs === null ? null : `about ${about(batch.etaMs)}`],
    ["warnings", batch.warnings === 0 ? null : batch.warnings],
    ["concurrency", batch.concurrency],
    ["attempts", batch.attempts],
    ["priority", batch.priority === 0 ? null : batch.priority],
    ["fields", Object.keys(batch.fields).length === 0 ? null : JSON.stringify(batch.fields)],
    ["created", batch.createdAt],
    ["started", batch.startedAt],
    ["paused", batch.pausedAt],
    ["finished", batch.finishedAt],
  ];
  const lines = facts
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name.padEnd(13)}${printable(String(value)).trimEnd()}`);
  const counts = Object.entries(batch.counts).map(([name, count]) => `  ${name.padEnd(16)}${count}`);
  return [...lines, "counts", ...counts].join("\n");
}

/** How far it is, in one line. */
export function batchLine(batch: BatchView): string {
  const { ended, total, state, counts, rate, etaMs } = batch;
  const shown = Object.entries(counts).filter(([name, count]) => count > 0 && name !== "pending");
  return [
    `${ended} of ${total} (${total === 0 ? 100 : Math.floor((ended / total) * 100)} %)`,
    state,
    ...shown.map(([name, count]) => `${name} ${count}`),
    ...(rate === null ? [] : [`${rate.toFixed(1)}/s`]),
    ...(etaMs === null ? [] : [`${about(etaMs)} left`]),
  ].join("  ");
}

/** To the second: nobody knows better. */
const about = (ms: number): string => formatDuration(Math.max(1_000, Math.round(ms / 1_000) * 1_000));
