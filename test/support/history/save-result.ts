// A result file for the figures, if they are wanted: see scripts/faults.mjs, which adds them up.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

export async function saveResult(part: string, seed: number, result: object): Promise<string | undefined> {
  const out = process.env["FAULT_OUT"];
  if (!out) return undefined;
  await mkdir(out, { recursive: true });
  await writeFile(join(out, `${part}-${seed}.json`), `${JSON.stringify({ part, seed, ...result }, null, 1)}\n`);
  return join(out, `${part}-${seed}`);
}
