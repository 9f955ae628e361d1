// The same deed for each of several ids: one that cannot be done must not keep the others from it, and the exit code is
// that of the first that failed.
import { explain } from "./exit-codes.ts";
import { type DataFlags, isForPrograms, noteError, print, printData } from "./output.ts";

/** `act` answers with a sentence about what it did. */
export async function actOnEach(
  ids: readonly string[],
  flags: DataFlags & { verbose?: boolean },
  act: (id: string) => Promise<string>,
): Promise<void> {
  const results: { id: string; ok: boolean; message: string }[] = [];
  for (const id of ids) {
    try {
      const message = await act(id);
      results.push({ id, ok: true, message });
      if (!isForPrograms(flags)) print(message);
    } catch (error) {
      const { message, exitCode } = explain(error);
      results.push({ id, ok: false, message });
      process.exitCode ||= exitCode;
      if (!isForPrograms(flags)) noteError(error, flags.verbose === true);
    }
  }
  printData(flags, results, results);
}
