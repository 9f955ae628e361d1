// PGlite as a wire: bytes of PostgreSQL's protocol in, bytes out. It is the same in a thread and in the main one.
//
// Promises: a message is answered in full or the engine is dead; an engine that died (a FATAL, a PANIC, a trap in
// WebAssembly) says so and answers nothing more. PGlite itself would swallow these and ask a dead backend for ever.
//
// What PGlite 0.5 does not have: nothing can interrupt a statement (statement_timeout, lock_timeout and
// pg_cancel_backend have no effect), and a FATAL timeout (idle_in_transaction_session_timeout, transaction_timeout)
// ends the engine: do not set them here.
import { readFile, rename, writeFile } from "node:fs/promises";
import { PGlite, type PGliteOptions } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";
import { unpackSeed } from "./embedded-seed.ts";

/** PGlite's own: a longjmp of PostgreSQL, that is an ordinary ERROR on its way to the main loop. */
const LONGJMP = 100;
const SMALL_REPLY = 64 * 1024;
/** A start that recovers would leave a timer behind, which keeps a process alive. */
const SETTINGS = ["-c", "log_startup_progress_interval=0"];

export class Engine {
  readonly #pglite: PGlite;
  #reply = new Uint8Array(SMALL_REPLY);
  #size = 0;

  private constructor(pglite: PGlite, said: string[]) {
    this.#pglite = pglite;
    guard(pglite, said);
  }

  /** Makes a database in an empty or missing folder. */
  static async initialise(pgdata: string, seed: string | null): Promise<void> {
    if (seed !== null) unpackSeed(seed, pgdata);
    else await (await Engine.open(pgdata)).close();
  }

  /** Nobody ever sees half of it. */
  static async writeSeed(path: string): Promise<void> {
    const engine = await Engine.openInMemory(null);
    await engine.#pglite.exec("checkpoint");
    const seed = await engine.#pglite.dumpDataDir("gzip");
    await engine.close();
    await writeFile(`${path}.${process.pid}`, new Uint8Array(await seed.arrayBuffer()));
    await rename(`${path}.${process.pid}`, path);
  }

  static open(pgdata: string): Promise<Engine> {
    return Engine.#start({ fs: new NodeFS(pgdata) });
  }

  static async openInMemory(seed: string | null): Promise<Engine> {
    if (seed === null) return Engine.#start({});
    return Engine.#start({ loadDataDir: new Blob([await readFile(seed)], { type: "application/x-gzip" }) });
  }

  static async #start(options: PGliteOptions): Promise<Engine> {
    const said: string[] = [];
    const onStderr = (line: string): boolean => {
      if (/FATAL|PANIC/.test(line) && said.push(line.replace(/^.*?(?=FATAL|PANIC)/, "")) > 3) said.shift();
      return false;
    };
    try {
      const startParams = [...PGlite.defaultStartParams, ...SETTINGS];
      const pglite = await PGlite.create({ ...options, startParams, onStderr });
      return new Engine(pglite, said);
    } catch (error) {
      throw new Error(whatWasSaid(said, error), { cause: error });
    }
  }

  async exec(message: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    this.#size = 0;
    // The stream variant, because the others also keep every parsed row for ever.
    await this.#pglite.execProtocolRawStream(message, { syncToFs: false, onRawData: this.#collect });
    const reply = this.#reply.slice(0, this.#size);
    if (this.#reply.length > SMALL_REPLY * 16) this.#reply = new Uint8Array(SMALL_REPLY);
    return reply;
  }

  /** With a checkpoint: the next start needs no recovery. */
  async close(): Promise<void> {
    await this.#pglite.close();
  }

  #collect = (bytes: Uint8Array): void => {
    const size = this.#size + bytes.length;
    if (size > this.#reply.length) {
      const larger = new Uint8Array(Math.max(size, this.#reply.length * 2));
      larger.set(this.#reply.subarray(0, this.#size));
      this.#reply = larger;
    }
    this.#reply.set(bytes, this.#size);
    this.#size = size;
  };
}

/**
 * PGlite catches whatever its main loop throws and calls it again; after anything but a longjmp that never ends. Its
 * catch block calls stackRestore, so an error thrown from there gets out.
 */
function guard(pglite: PGlite, said: string[]): void {
  const mod = pglite.Module;
  const { _PostgresMainLoopOnce: loopOnce, stackRestore } = mod;
  let dead: Error | null = null;
  Object.assign(mod, {
    _PostgresMainLoopOnce() {
      try {
        loopOnce();
      } catch (error) {
        if (statusOf(error) !== LONGJMP) {
          dead = new Error(whatWasSaid(said, error), { cause: error });
          Object.assign(mod, { _PostgresSendReadyForQueryIfNecessary: sayNothing, _pgl_pq_flush: sayNothing });
        }
        throw error;
      }
    },
    stackRestore(pointer: number) {
      if (dead) throw dead;
      return stackRestore(pointer);
    },
  } satisfies Partial<typeof mod>);
}

function sayNothing(): void {}

function statusOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "status" in error ? error.status : undefined;
}

/** PostgreSQL's own words; those of WebAssembly ("unreachable", "Aborted()") say nothing to anybody. */
function whatWasSaid(said: string[], error: unknown): string {
  if (said.length > 0) return said.join("; ");
  return error instanceof Error ? error.message : String(error);
}
