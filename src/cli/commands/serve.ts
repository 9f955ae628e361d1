// dev, start and worker differ in what they say and in whether they serve HTTP; this is the rest.
import type { Log } from "../log.ts";
import { explain } from "../exit-codes.ts";
import { refuseAccidentalEmbedded } from "../settings.ts";
import { readLog, readSettings, type ServerOptions } from "./options.ts";

export async function runCommand(
  command: "dev" | "start" | "worker",
  options: ServerOptions & { once?: boolean },
): Promise<void> {
  const log = readLog(options);
  try {
    const { settings, isProduction, reload } = await readSettings(options);
    refuseAccidentalEmbedded(settings, isProduction);
    if (settings.jobs.source === "samples" && isProduction) {
      log.warn("There is no holdfast.config.ts here, or it lists no jobs: only the sample kinds run.");
    }
    if (options.once) {
      if (settings.healthPort.value !== undefined) log.warn("--once answers no health checks.");
      const { runOnce } = await import("../run-once.ts");
      process.exit(await runOnce(settings, log));
    }
    const { runServer } = await import("../run-server.ts");
    const code = await runServer({ command, settings, log, reload: command === "dev" ? reload : undefined });
    process.exit(code);
  } catch (error) {
    process.exit(say(error, log));
  }
}

function say(error: unknown, log: Log): number {
  const { message, hint, code, exitCode, isUnexpected } = explain(error);
  const stack = isUnexpected && error instanceof Error ? error.stack : undefined;
  log.error(message, { code, hint, stack: log.format === "json" || log.shows("debug") ? stack : undefined });
  return exitCode;
}
