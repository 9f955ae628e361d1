// hf.metrics: what /metrics answers. Counting begins when somebody first asks for it, so that a program that never does
// pays nothing; the HTTP handler asks when it is made.
import type { DbLoad } from "../db/db.ts";
import type { Janitor } from "../janitor/janitor.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import { type Gauges, makePrometheus, type Prometheus } from "../metrics/prometheus.ts";
import type { Emitter } from "../shared/emitter.ts";
import type { Pulses } from "../shared/pulse.ts";
import { latestVersion } from "../migrate/migrate.ts";
import { version } from "../shared/version.ts";
import { choreStates, countWorkers, leaseGauges } from "../store/stats/gauges.ts";
import { databaseNow } from "../store/stats/database-clock.ts";
import { type InboxFigures, readFigures } from "../store/inbox/figures.ts";
import type { Store } from "../store/sql.ts";
import type { Queues } from "./queues.ts";

/** `hf.metrics`: the figures of this process and of the database, as Prometheus reads them. */
export interface Metrics {
  readonly contentType: string;
  /** In Prometheus' text format. */
  text(): Promise<string>;
  /** Figures of your own, in the same format, told with the others. What cannot be read now is left out. Returns what ends that. */
  add(source: () => Promise<string> | string): () => void;
}

const FIGURES_MS = 10_000;

export interface MetricsInput {
  store: Store;
  events: Emitter<HoldfastEvents>;
  janitor: Janitor;
  queues: Queues;
  pulses: Pulses;
  load(): DbLoad;
  hearsAll(): boolean;
  /** The kinds this process works on, with their queues. */
  kinds(): readonly Pick<AnyJobKind, "kind" | "queue" | "batch">[];
  slots(): ReadonlyMap<string, number>;
  running(): number;
}

export function makeMetrics(input: MetricsInput): { metrics(): Metrics; close(): void } {
  const { store, janitor } = input;
  /** Chores that run in every process are known here only. */
  const succeededHere = new Map<string, Date>();
  let prometheus: Prometheus | undefined;
  const sources = new Set<() => Promise<string> | string>();

  /** Counted from an index, so not at every scrape. */
  let figures: { at: number; read: Promise<InboxFigures> } | undefined;
  function inboxFigures(): Promise<InboxFigures> {
    if (figures && performance.now() - figures.at < FIGURES_MS) return figures.read;
    const read = readFigures(store);
    read.catch(() => (figures = undefined));
    figures = { at: performance.now(), read };
    return read;
  }

  async function gauges(): Promise<Gauges> {
    const [queues, chores, workers, leases, now, inbox] = await Promise.all([
      input.queues.list(),
      choreStates(store),
      countWorkers(store),
      leaseGauges(store),
      databaseNow(store),
      inboxFigures(),
    ]);
    const states = new Map(chores.map((state) => [state.chore, state]));
    return {
      queues: queues.map((queue) => ({
        ...queue,
        isPaused: queue.pausedAt !== null,
        oldestReadyAgeMs: queue.oldestReadyAt ? Math.max(0, now.getTime() - queue.oldestReadyAt.getTime()) : 0,
      })),
      chores: janitor.chores.map(({ name, everyMs }) => ({
        chore: name,
        everyMs,
        succeededAt: states.get(name)?.succeededAt ?? succeededHere.get(name) ?? null,
        failures: states.get(name)?.failures ?? 0,
      })),
      workers,
      leases,
      inbox,
    };
  }

  function begin(): Prometheus {
    if (prometheus) return prometheus;
    input.events.on("chore.ran", ({ chore, error }) => {
      if (error === undefined) succeededHere.set(chore, new Date());
    });
    return (prometheus = makePrometheus({
      events: input.events,
      version: version(),
      tier: store.tier,
      chores: () => janitor.chores.map(({ name }) => name),
      gauges,
      slots: () => input.slots(),
      running: () => input.running(),
      stoppedLoops: () => input.pulses.stopped().length,
      load: () => input.load(),
      hearsAll: () => input.hearsAll(),
      schemaVersion: latestVersion(),
    }));
  }

  return {
    metrics() {
      const { contentType, know, knowBatches, text } = begin();
      return {
        contentType,
        async text() {
          for (const { kind, queue, batch } of input.kinds()) {
            know(kind, queue);
            if (batch) knowBatches(kind, batch.labels);
          }
          const own = await text();
          const others = await Promise.all([...sources].map((source) => readSource(source)));
          return [own, ...others].join("");
        },
        add(source) {
          sources.add(source);
          return () => void sources.delete(source);
        },
      };
    },
    close: () => prometheus?.close(),
  };
}

async function readSource(source: () => Promise<string> | string): Promise<string> {
  try {
    const text = await source();
    return text === "" || text.endsWith("\n") ? text : `${text}\n`;
  } catch {
    return "";
  }
}
