// The way to the engine: through its thread, or, where the thread's file is missing (a bundler dropped it), to an
// engine in this thread. Both are a Link and differ only in what they block.
//
// Promises: replies arrive in the order of the messages; a dead engine is told once, to onDeath; close() never
// rejects, and says whether the engine has really ended.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Engine } from "./embedded-engine.ts";

export type Order =
  | { do: "initialise"; pgdata: string; seed: string | null }
  | { do: "open"; pgdata: string }
  | { do: "openInMemory"; seed: string | null }
  | { do: "close" };
export interface Answer {
  failed: string | null;
}

export interface Link {
  /** Makes a database in an empty folder and leaves it closed. `seed`: see embedded-seed.ts. */
  initialise(pgdata: string, seed: string | null): Promise<void>;
  open(pgdata: string): Promise<void>;
  openInMemory(seed: string | null): Promise<void>;
  send(message: Uint8Array<ArrayBuffer>): void;
  onReply: (reply: Uint8Array) => void;
  onDeath: (reason: Error) => void;
  /** Whether the process must stay alive for it. */
  hold(on: boolean): void;
  /** Ends the engine at once, as a crash would. Does nothing if it is in this thread. */
  kill(reason: Error): void;
  /** Ends the engine in the proper way, or by force when that takes longer. False: it may still be running. */
  close(timeoutMs: number): Promise<boolean>;
}

export interface LinkOptions {
  /** Where the thread's file is. null: no thread. */
  thread?: URL | null | undefined;
  onTrouble: (error: Error) => void;
}

const THREAD = new URL("./embedded-thread.js", import.meta.url);
/** Address space, used only if needed. With less, V8's limit comes before PostgreSQL's, and what is an error ends it. */
const STACK_MB = 256;

export async function startLink({ thread = THREAD, onTrouble }: LinkOptions): Promise<Link> {
  if (thread === null) return new LocalLink();
  try {
    if (thread.protocol !== "file:" || !existsSync(fileURLToPath(thread)))
      throw new Error(`${thread.href} is missing.`);
    return await ThreadLink.start(thread);
  } catch (error) {
    const message =
      "The thread of the embedded database cannot start, so the database runs in the main thread and blocks it during " +
      "every statement. If a bundler is used, keep holdfast out of the bundle (mark it as external).";
    onTrouble(new Error(message, { cause: error }));
    return new LocalLink();
  }
}

class ThreadLink implements Link {
  onReply: (reply: Uint8Array) => void = () => {};
  onDeath: (reason: Error) => void = () => {};
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  #failure: Error | null = null;
  #waiting: { resolve(answer: Answer): void; reject(reason: Error): void } | null = null;
  #closing = false;

  private constructor(file: URL) {
    this.#worker = new Worker(file, { name: "holdfast-embedded", resourceLimits: { stackSizeMb: STACK_MB } });
    this.#worker.on("message", (message: Answer | Uint8Array) => {
      if (message instanceof Uint8Array) this.onReply(message);
      else this.#waiting?.resolve(message);
    });
    this.#worker.on("error", (error) => (this.#failure = error));
    this.#ended = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.#failure ??= new Error("The thread of the embedded database ended.");
        this.#waiting?.reject(this.#failure);
        if (!this.#closing) this.onDeath(this.#failure);
        resolve();
      });
    });
  }

  static async start(file: URL): Promise<ThreadLink> {
    const link = new ThreadLink(file);
    await link.#answer();
    return link;
  }

  initialise(pgdata: string, seed: string | null): Promise<void> {
    return this.#obey({ do: "initialise", pgdata, seed });
  }

  open(pgdata: string): Promise<void> {
    return this.#obey({ do: "open", pgdata });
  }

  openInMemory(seed: string | null): Promise<void> {
    return this.#obey({ do: "openInMemory", seed });
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    this.#worker.postMessage(message, [message.buffer]);
  }

  hold(on: boolean): void {
    if (on) this.#worker.ref();
    else this.#worker.unref();
  }

  kill(reason: Error): void {
    this.#failure ??= reason;
    void this.#worker.terminate();
  }

  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    this.hold(true);
    await within(timeoutMs, this.#obey({ do: "close" }));
    void this.#worker.terminate();
    return within(timeoutMs, this.#ended);
  }

  async #obey(order: Order): Promise<void> {
    if (this.#failure) throw this.#failure;
    this.#worker.postMessage(order, []);
    const { failed } = await this.#answer();
    if (failed !== null) throw new Error(failed);
  }

  #answer(): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }
}

class LocalLink implements Link {
  onReply: (reply: Uint8Array) => void = () => {};
  onDeath: (reason: Error) => void = () => {};
  #engine: Engine | null = null;

  async initialise(pgdata: string, seed: string | null): Promise<void> {
    await (await loadEngine()).initialise(pgdata, seed);
  }

  async open(pgdata: string): Promise<void> {
    this.#engine = await (await loadEngine()).open(pgdata);
  }

  async openInMemory(seed: string | null): Promise<void> {
    this.#engine = await (await loadEngine()).openInMemory(seed);
  }

  send(message: Uint8Array): void {
    // Not at once: between two statements the event loop gets its turn.
    setImmediate(() => {
      if (this.#engine === null) return;
      this.#engine.exec(message).then(
        (reply) => this.onReply(reply),
        (error: Error) => {
          this.#engine = null;
          this.onDeath(error);
        },
      );
    });
  }

  hold(): void {
    // What was sent and not answered is in the event loop already; so are timers of PostgreSQL, for up to 10 s.
  }

  kill(): void {
    // Whoever could do it is waiting for it.
  }

  async close(): Promise<boolean> {
    const engine = this.#engine;
    this.#engine = null;
    await engine?.close().catch(() => {});
    return true;
  }
}

/** Only where it runs: PGlite is large. */
async function loadEngine(): Promise<typeof Engine> {
  return (await import("./embedded-engine.ts")).Engine;
}

/** Whether it is over, well or badly, by then. */
function within(ms: number, promise: Promise<void>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const over = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    promise.then(over, over);
  });
}
