// Keeps an engine with its session: opens the folder, opens it again when the engine has died, ends an engine that is
// stuck in a statement nobody waits for any more, and closes it.
//
// Promises: one engine at a time (the next is not started before the last has ended); when it cannot be opened again,
// the calls that needed it fail with DatabaseUnavailable, and a later one tries again, at most once a second; a database
// in memory is never replaced by an empty one.
import { Closed, DatabaseUnavailable, HoldfastError } from "../errors.ts";
import { formatDuration } from "../shared/duration.ts";
import { Deadline } from "./embedded-deadline.ts";
import { cannotOpen, readyPgdata, writeNote } from "./embedded-folder.ts";
import { type Link, startLink } from "./embedded-link.ts";
import type { Listeners } from "./embedded-listeners.ts";
import { findSeed } from "./embedded-seed.ts";
import { Session } from "./embedded-session.ts";

export interface HostSettings {
  /** null: in memory. */
  folder: string | null;
  openTimeoutMs: number;
  thread?: URL | null | undefined;
  seed?: string | undefined;
  onTrouble: (error: Error) => void;
}

const REOPEN_PAUSE_MS = 1_000;
/** An engine that did not open has nothing to close. */
const CLOSE_FAILED_MS = 1_000;
/** PGlite's first answer: "PostgreSQL 18.6 (PGlite 0.5.16) on wasm32…". */
const VERSION = /^PostgreSQL (\S+) \(PGlite (\S+)\)/;

export class Host {
  /** False: an engine could not be ended, and may still write. */
  ended = true;
  readonly #settings: HostSettings;
  readonly #listeners: Listeners;
  #link: Link | null = null;
  #session: Session | null = null;
  #opening: Promise<Session> | null = null;
  #failed: { at: number; error: unknown } | null = null;
  #held = false;
  #closed = false;

  constructor(settings: HostSettings, listeners: Listeners) {
    this.#settings = settings;
    this.#listeners = listeners;
  }

  /** The session there is, or after the engine died a new one. */
  session(): Session | Promise<Session> {
    if (this.#session) return this.#session;
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  /** Whether the process must stay alive for it. */
  hold(on: boolean): void {
    this.#held = on;
    this.#link?.hold(on);
  }

  async close(timeoutMs: number): Promise<void> {
    await this.#opening?.catch(() => {});
    this.#closed = true;
    if (this.#link && !(await this.#link.close(timeoutMs))) this.ended = false;
    this.#session?.end(new Closed("The embedded database is closed.", "Wait for your calls before closing it."));
  }

  async #open(): Promise<Session> {
    const { folder, openTimeoutMs } = this.#settings;
    if (this.#link && folder === null) {
      const message = "The embedded database in memory has stopped, and what it held is gone.";
      throw new DatabaseUnavailable(message, "Open a new one; use a folder for what must last.");
    }
    if (this.#failed && (!this.ended || performance.now() - this.#failed.at < REOPEN_PAUSE_MS))
      throw this.#failed.error;
    const link = await startLink(this.#settings);
    try {
      const session = await inTime(openTimeoutMs, this.#connect(link));
      this.#link = link;
      this.#session = session;
      this.#failed = null;
      link.hold(this.#held);
      this.#listeners.ready();
      return session;
    } catch (cause) {
      this.ended = await link.close(CLOSE_FAILED_MS);
      const refused = cause instanceof HoldfastError ? cause : cannotOpen(folder ?? "memory", cause);
      // After a good start it is an outage, which may end: a full disk, for example.
      const error = this.#link === null ? refused : new DatabaseUnavailable(refused.message, refused.hint, { cause });
      this.#failed = { at: performance.now(), error };
      throw error;
    }
  }

  async #connect(link: Link): Promise<Session> {
    const { folder, openTimeoutMs } = this.#settings;
    const session = new Session(link, {
      onNotification: (channel, payload) => this.#listeners.message(channel, payload),
      onStuck: () => {
        if (folder !== null) link.kill(new Error("a statement went on long after its time"));
      },
    });
    link.onDeath = (reason) => this.#died(session, reason);
    const seed = findSeed(this.#settings.seed);
    if (folder === null) await link.openInMemory(seed);
    else await link.open(await readyPgdata(folder, (path) => link.initialise(path, seed)));
    await session.connect();
    const deadline = new Deadline(openTimeoutMs, "running");
    try {
      for (const statement of this.#listeners.statements()) await session.run(deadline, statement);
      if (folder !== null) {
        const { rows } = await session.run<{ version: string }>(deadline, "select version() as version");
        const [, pgVersion = "", pgliteVersion = ""] = VERSION.exec(rows[0]?.version ?? "") ?? [];
        await writeNote(folder, { pgliteVersion, pgVersion });
      }
    } finally {
      deadline.clear();
    }
    if (session.ended) throw session.ended;
    return session;
  }

  #died(session: Session, reason: Error): void {
    const message = `The embedded database has stopped (${reason.message}).`;
    const hint = "Make the call again, if what was under way may happen twice: the database is opened anew.";
    const error = new DatabaseUnavailable(message, hint, { cause: reason });
    session.end(error);
    if (this.#session !== session || this.#closed) return;
    this.#session = null;
    this.#settings.onTrouble(error);
    this.#listeners.down(message);
    // Nobody may call for a while, but notifications are waited for.
    if (this.#listeners.any) void Promise.resolve(this.session()).catch(() => {});
  }
}

async function inTime<T>(ms: number, opening: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `The embedded database did not start within ${formatDuration(ms)}.`;
    timer = setTimeout(() => reject(new DatabaseUnavailable(message, "Start again; give it more time.")), ms);
  });
  try {
    return await Promise.race([opening, late]);
  } finally {
    clearTimeout(timer);
  }
}
