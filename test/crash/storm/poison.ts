// Jobs that end their process: by a signal, by abort(), by using up its memory, by an endless loop. Each ends dead, and nobody else pays for it.
import type { Fault } from "./faults.ts";
import { SCHEMA } from "./storm.ts";

const WAYS = ["loop", "memory", "abort", "kill"] as const;
let next = 0;

export const feedPoison: Fault = async (storm) => {
  // Not more than three at a time: each takes its process along, four times most of them.
  const [row] = await storm.ask<{ count: number }>(
    `select count(*)::integer as count from ${SCHEMA}.jobs where state <> 'dead' and payload ->> 'die' is not null`,
  );
  if (row!.count >= 3) return;
  const way = WAYS[next % WAYS.length]!;
  next += 1;
  await storm.producers.add({ die: true }, { die: way });
  storm.history.fault(`poison: ${way}`);
};
