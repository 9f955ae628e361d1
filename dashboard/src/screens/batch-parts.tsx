// How far a batch is: its items by what became of them, as a bar, in words, and as a rate.
import type { Output } from "../api/call.ts";
import { exact, plural, shortSpan } from "../format.ts";

export type Batch = Output<"listBatches">["batches"][number];

const LOOKS: Record<string, string> = {
  pending: "pending",
  running: "running",
  "handed-over": "paused",
  duplicate: "duplicate",
  error: "error",
  cancelled: "scheduled",
};

const lookOf = (name: string, { outcomes }: Batch): string =>
  LOOKS[name] ??
  (outcomes[name]?.warning ? "warning" : outcomes[name]?.countsAs === "duplicate" ? "duplicate" : "good");

/** What has ended well first, what waits last. */
export function partsOf(batch: Batch): { name: string; value: number; look: string }[] {
  const last = ["error", "cancelled", "handed-over", "running", "pending"];
  const rank = (name: string) => last.indexOf(name);
  return Object.entries(batch.counts)
    .filter(([, value]) => value > 0)
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([name, value]) => ({ name, value, look: lookOf(name, batch) }));
}

export function BatchBar({ batch }: { batch: Batch }) {
  const { ended, total, counts } = batch;
  const errors = counts["error"] ?? 0;
  const words = `${exact(ended)} of ${exact(total)}${errors > 0 ? `, ${plural(errors, "error")}` : ""}`;
  return (
    <span
      class="segments"
      role="progressbar"
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={ended}
      aria-valuetext={words}
      aria-label={`Progress of ${batch.kind}`}
    >
      {partsOf(batch).map(({ name, value, look }) => (
        <span
          key={name}
          class={`segment segment-${look}`}
          style={{ flexGrow: value }}
          title={`${exact(value)} ${name}`}
        />
      ))}
    </span>
  );
}

export function Legend({ batch }: { batch: Batch }) {
  return (
    <ul class="legend">
      {partsOf(batch).map(({ name, value, look }) => (
        <li key={name}>
          <span class={`legend-mark segment-${look}`} aria-hidden="true" /> {exact(value)} {name}
        </li>
      ))}
    </ul>
  );
}

export const rateOf = ({ rate }: Batch): string =>
  rate === null || rate === 0
    ? "–"
    : rate >= 1
      ? `${Number(rate.toFixed(1))}/s`
      : `${Number((rate * 60).toFixed(1))}/min`;

export const etaOf = ({ etaMs, state }: Batch): string =>
  state === "done" || state === "cancelled" ? "–" : etaMs === null ? "not known" : `about ${shortSpan(etaMs)}`;

export function BatchState({ batch: { state, reason } }: { batch: Batch }) {
  const look = { queued: "", running: " chip-main", paused: " chip-warn", done: " chip-good", cancelled: "" }[state];
  return (
    <span class={`chip${look}`}>
      {state}
      {reason === null ? "" : `: ${reason}`}
    </span>
  );
}
