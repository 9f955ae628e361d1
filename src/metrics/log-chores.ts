// One line for each run of a chore that did something; silence otherwise. What failed is told as trouble.
import type { Emitter } from "../shared/emitter.ts";
import type { HoldfastEvents } from "./events.ts";

interface InfoLog {
  info(message: string, fields?: object): void;
}

export function logChores(events: Emitter<HoldfastEvents>, log: InfoLog): void {
  events.on("chore.ran", ({ chore, rows, tookMs }) => {
    const done = Object.entries(rows).map(([outcome, count]) => `${outcome} ${count}`);
    if (done.length > 0) log.info(`Janitor: ${chore}: ${done.join(", ")}`, { chore, rows, tookMs: Math.round(tookMs) });
  });
}
