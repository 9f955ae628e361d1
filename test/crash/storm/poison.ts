// Jobs that end their process: by a signal, by abort(), by using up its memory, by an endless loop. Each ends dead, and nobody else pays for it.
import type { Fault } from "./faults.ts";
import { SCHEMA, type Storm } from "./storm.ts";

const WAYS = ["loop", "memory", "abort", "kill"] as const;

async function feed(storm: Storm, way: (typeof WAYS)[number]): Promise<void> {
  await storm.producers.add({ die: true, onDead: true }, { die: way });
  storm.history.fault(`poison: ${way}`);
}

/** However slow the machine is, there is one of each: what they come to takes longer than the storm may. */
export async function feedOneOfEach(storm: Storm): Promise<void> {
  for (const way of WAYS) await feed(storm, way);
}

export const feedPoison: Fault = async (storm) => {
  // Not more than three at a time: each takes its process along, four times most of them.
  const [row] = await storm.ask<{ count: number }>(
    `select count(*)::integer as count from ${SCHEMA}.jobs where state <> 'dead' and payload ->> 'die' is not null`,
  );
  if (row!.count >= 3) return;
  await feed(storm, storm.random.pick(WAYS));
};
