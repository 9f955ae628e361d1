// Whether what goes to a stream is coloured: NO_COLOR says no, FORCE_COLOR says yes (0: no); otherwise what the terminal can.
import type { WriteStream } from "node:tty";

type Stream = Pick<WriteStream, "isTTY" | "hasColors">;

export function isColored(stream: Stream, env: NodeJS.ProcessEnv = process.env): boolean {
  if (env["NO_COLOR"]) return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined) return !/^(0|false)$/i.test(forced);
  return stream.isTTY && stream.hasColors();
}
