// The importer's own figures, at /metrics beside Holdfast's. The README has the names that they had elsewhere.
import type { Holdfast } from "holdfast";
import { Counter, Histogram, Registry } from "prom-client";
import { KIND } from "./kind-name.ts";

const RUNS = ["processed", "skipped", "error"] as const;
const ITEMS = ["extracted", "consent_wall", "duplicate", "error", "cancelled"] as const;
const ENDS = ["done", "cancelled"] as const;
/** Those of the importer that was there before, so that old charts fit. */
const SECONDS = [0.25, 0.5, 1, 2, 4, 8, 15, 30];

export interface Tally {
  /** How a run of an item ended; skipped: it was another one's turn. */
  run(result: (typeof RUNS)[number]): void;
  item(result: (typeof ITEMS)[number]): void;
  /** Fetching and reading one page. */
  took(seconds: number): void;
  text(): Promise<string>;
  /** Counts what is told as events. Returns what ends that. */
  listen(hf: Holdfast): () => void;
}

export function makeTally(): Tally {
  const registry = new Registry();
  const made = (name: string, help: string, labelNames: string[] = []) => ({
    name: `holdfast_articles_import_${name}`,
    help,
    labelNames,
    registers: [registry],
  });
  const runs = new Counter(made("runs_total", "Runs of items in this process, by result.", ["result"]));
  const items = new Counter(made("items_total", "Items by what the server's part of them came to.", ["result"]));
  const seconds = new Histogram({
    ...made("extract_duration_seconds", "How long fetching and reading one page took."),
    buckets: SECONDS,
  });
  const completed = new Counter(made("jobs_completed_total", "Imports that ended.", ["result"]));
  const expired = new Counter(made("pickups_expired_total", "Articles that no client took in time; fetched again."));
  for (const result of RUNS) runs.inc({ result }, 0);
  for (const result of ITEMS) items.inc({ result }, 0);
  for (const result of ENDS) completed.inc({ result }, 0);
  return {
    run: (result) => runs.inc({ result }),
    item: (result) => items.inc({ result }),
    took: (took) => seconds.observe(took),
    text: () => registry.metrics(),
    listen(hf) {
      const stops = [
        hf.on("item.ended", ({ kind, outcome, durationMs }) => {
          if (kind !== KIND) return;
          if (outcome === "error" || outcome === "cancelled") items.inc({ result: outcome });
          // Found by the server itself; what a client finds is not a run's.
          if (outcome === "duplicate" && durationMs !== null) items.inc({ result: "duplicate" });
        }),
        hf.on("batch.cancelled", (event) => event.kind === KIND && items.inc({ result: "cancelled" }, event.items)),
        hf.on("batch.finished", ({ kind, state }) => kind === KIND && completed.inc({ result: state })),
        hf.on("item.bounced", ({ kind, seqs }) => kind === KIND && expired.inc(seqs.length)),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}
