// Real child processes that are killed, frozen and restarted. A child says what happens to it as JSON lines on its
// output; `until` waits for such a line, past ones included. killChildren() ends whatever a test left running, by its
// own id; a child whose parent is gone ends itself.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { QUICK_ENGINE } from "./quick-engine.ts";

export interface Said {
  what: string;
  /** When it arrived here, of Date.now(). */
  at: number;
  [field: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly said: readonly Said[];
  readonly errors: string;
  readonly isRunning: boolean;
  readonly exited: Promise<Exit>;
  /** The first line of this kind that matches, said already or to come. Fails when the child ends before. */
  until(what: string, matches?: (said: Said) => boolean, timeoutMs?: number): Promise<Said>;
  /** False: it had ended already. */
  kill(signal?: NodeJS.Signals): boolean;
}

const running = new Set<ChildProcess>();

export interface ChildConfig {
  name: string;
  /** A file that says how far its clock is off, in milliseconds; see crash/children/wrong-clock.cjs. */
  clock?: string;
  [field: string]: unknown;
}

/** Resolves when the child says that it is ready. */
export async function startChild(script: string, config: ChildConfig): Promise<Child> {
  const child = spawnChild(script, config);
  await child.until("ready");
  return child;
}

/** `script` is a file of test/crash/children; `config` is handed over as JSON. */
export function spawnChild(script: string, config: ChildConfig): Child {
  const path = fileURLToPath(new URL(`../crash/children/${script}`, import.meta.url));
  // Its input is a pipe from here: when it ends, the child knows that nobody wants it any more.
  const wrongClock = fileURLToPath(new URL("../crash/children/wrong-clock.cjs", import.meta.url));
  const child = spawn(
    process.execPath,
    [...QUICK_ENGINE, ...(config.clock === undefined ? [] : ["--require", wrongClock]), path, JSON.stringify(config)],
    { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, WRONG_CLOCK: config.clock } },
  );
  running.add(child);
  const said: Said[] = [];
  const hearers = new Set<() => void>();
  const tell = (): void => {
    for (const hear of hearers) hear();
  };
  let errors = "";
  let exit: Exit | undefined;
  child.stdin.on("error", () => {});
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text: string) => {
    errors = (errors + text).slice(-8_000);
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    said.push({ ...(JSON.parse(line) as { what: string }), at: Date.now() });
    tell();
  });
  const exited = once(child, "exit").then(([code, signal]) => {
    running.delete(child);
    exit = { code: code as number | null, signal: signal as NodeJS.Signals | null };
    tell();
    return exit;
  });

  const made: Child = {
    name: config.name,
    pid: child.pid!,
    said,
    get errors() {
      return errors;
    },
    get isRunning() {
      return exit === undefined;
    },
    exited,
    async until(what, matches = () => true, limitMs = 30_000) {
      const end = Date.now() + limitMs;
      for (;;) {
        const found = said.find((line) => line.what === what && matches(line));
        if (found) return found;
        if (exit) throw new Error(`${config.name} ended (${exit.code ?? exit.signal}) before "${what}".\n${errors}`);
        const left = end - Date.now();
        if (left <= 0) throw new Error(`${config.name} did not say "${what}" within ${limitMs} ms.\n${errors}`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(done, left);
          function done(): void {
            clearTimeout(timer);
            hearers.delete(done);
            resolve();
          }
          hearers.add(done);
        });
      }
    },
    kill: (signal = "SIGKILL") => exit === undefined && child.kill(signal),
  };
  return made;
}

export interface Supervised {
  /** The present one; it may be starting, or dead. */
  readonly child: Child;
  /** How often it was started. */
  readonly lives: number;
  /** No further lives: SIGTERM for the present one, and wait for it. */
  stop(): Promise<void>;
}

/** What a process manager does: starts the child again whenever it ends. */
export function supervise(script: string, config: ChildConfig): Supervised {
  let isOver = false;
  let lives = 0;
  let child: Child;
  const live = async (): Promise<void> => {
    do {
      lives += 1;
      child = spawnChild(script, { ...config, name: `${config.name}.${lives}` });
      await child.exited;
    } while (!isOver);
  };
  const over = live();
  return {
    get child() {
      return child;
    },
    get lives() {
      return lives;
    },
    async stop() {
      isOver = true;
      child.kill("SIGTERM");
      await over;
    },
  };
}

/** Ends every child that is still there. A frozen one cannot hear anything but SIGKILL. */
export async function killChildren(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    }),
  );
}
