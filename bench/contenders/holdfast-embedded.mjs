// Holdfast on the embedded database: durable against the death of its process, not of the machine.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setup as setupOnServer } from "./holdfast.mjs";

export async function setup(url, tuning) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const contender = await setupOnServer(`embedded:${folder}`, tuning);
  return {
    ...contender,
    // What it keeps can be counted by itself only, and it is closed by then: the handlers' own count stands.
    counts: async () => ({ unfinished: 0, finished: null }),
  };
}
