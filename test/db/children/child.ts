// Child processes of the tests of the embedded database: starts one, reads its lines, and leaves none behind.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { QUICK_ENGINE } from "../../support/quick-engine.ts";

export interface Child {
  readonly pid: number;
  /** What it has printed so far. */
  readonly lines: string[];
  /** The first line, now or later, that begins like this. Rejects when the child ends without it. */
  line(beginning: string): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** Ends its input, which asks it to finish. */
  finish(): void;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
});

export function startChild(script: string, args: string[]): Child {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [...QUICK_ENGINE, path, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  running.add(child);
  const lines: string[] = [];
  let errors = "";
  const changed = new Set<() => void>();
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => {
    lines.push(line);
    for (const look of changed) look();
  });
  child.stderr.on("data", (text: Buffer) => (errors += text.toString()));
  const readAll = once(reader, "close");
  const ended = once(child, "exit").then(async ([code, signal]: (number | NodeJS.Signals | null)[]) => {
    running.delete(child);
    await readAll;
    for (const look of changed) look();
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  return {
    pid: child.pid ?? 0,
    lines,
    ended,
    line(beginning) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => line.startsWith(beginning));
          if (found === undefined) return;
          changed.delete(look);
          resolve(found);
        };
        changed.add(look);
        look();
        void ended.then(() => reject(new Error(`${script} ended without "${beginning}":\n${errors}`)));
      });
    },
    kill: (signal) => child.kill(signal),
    finish: () => child.stdin.end(),
  };
}
