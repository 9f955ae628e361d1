// How long cancelled and discarded jobs stay readable: one retention, and others for some queues.

export interface KeepEnded {
  /** null: for ever. */
  ms: number | null;
  queues: Readonly<Record<string, number | null>>;
}

/** Milliseconds, or null for ever. */
export function keepEndedIn({ ms, queues }: KeepEnded, queue: string): number | null {
  return Object.hasOwn(queues, queue) ? queues[queue]! : ms;
}

/** As a parameter for the statements. */
export function keepEndedJson(keep: number | null | KeepEnded): string {
  return JSON.stringify(typeof keep === "object" && keep !== null ? keep : { ms: keep, queues: {} });
}

/** Milliseconds, or null for ever. */
export const keepEndedMs = (parameter: string, queue: string): string =>
  `(case when ${parameter}::text::jsonb -> 'queues' ? ${queue} then ${parameter}::text::jsonb -> 'queues' ->> ${queue}
    else ${parameter}::text::jsonb ->> 'ms' end)::bigint`;
