// A result file for the figures, if they are wanted: see scripts/faults.mjs, which adds them up. It says what it is about:
// when it was, and which commit, engine and judge.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { provenance } from "../../../scripts/faults/provenance.mjs";

export async function saveResult(part: string, seed: number, result: object): Promise<string | undefined> {
  const out = process.env["FAULT_OUT"];
  if (!out) return undefined;
  await mkdir(out, { recursive: true });
  const whole = { part, seed, ...provenance(), ...result };
  await writeFile(join(out, `${part}-${seed}.json`), `${JSON.stringify(whole, null, 1)}\n`);
  return join(out, `${part}-${seed}`);
}
