// The log that the engine gets. Trouble that goes on (a database that is away) is told at once, and then every ten
// seconds with how often it came meanwhile; its stacks only with --verbose. Everything else passes unchanged.
import { recordError } from "../job/outcome.ts";
import type { Logger } from "../options.ts";
import type { Log } from "./log.ts";

const AGAIN_AFTER_MS = 10_000;

export function calmTrouble(log: Log, now: () => number = () => performance.now()): Logger {
  const told = new Map<string, { at: number; times: number }>();
  return {
    debug: (message, fields) => log.debug(message, fields),
    info: (message, fields) => log.info(message, fields),
    error: (message, fields) => log.error(message, fields),
    warn(message, fields = {}) {
      if (!message.startsWith("Trouble in ") || log.shows("debug")) return log.warn(message, fields);
      const { name, message: why, code } = recordError("error" in fields ? fields.error : undefined);
      const key = `${message}: ${why}`;
      const before = told.get(key);
      if (before && now() - before.at < AGAIN_AFTER_MS) {
        before.times += 1;
        return;
      }
      told.set(key, { at: now(), times: 1 });
      // What is over must not be remembered for ever.
      if (told.size > 100) told.clear();
      log.warn(message, { ...fields, error: { name, message: why, code }, times: before?.times });
    },
  };
}
