// Who listens to which channel of the one session. What a handler throws goes to onTrouble.
import { escapeIdentifier } from "pg";
import { OptionInvalid } from "../errors.ts";
import type { ListenHandlers } from "./db.ts";

const LONGEST_CHANNEL_BYTES = 63;

/** A listener of its own for each listen(), also when the handlers are the same. */
interface Entry {
  handlers: ListenHandlers;
}

export class Listeners {
  readonly #channels = new Map<string, Set<Entry>>();
  readonly #onTrouble: (error: Error) => void;

  constructor(onTrouble: (error: Error) => void) {
    this.#onTrouble = onTrouble;
  }

  get any(): boolean {
    return this.#channels.size > 0;
  }

  /** Returns the function that removes it, which says whether it was the last of its channel. */
  add(channel: string, handlers: ListenHandlers): () => boolean {
    const entry: Entry = { handlers };
    const entries = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, entries.add(entry));
    return () => {
      if (!entries.delete(entry) || entries.size > 0) return false;
      return this.#channels.delete(channel);
    };
  }

  /** What to send so that a new session listens to everything again. */
  statements(): string[] {
    return [...this.#channels.keys()].map((channel) => `listen ${escapeIdentifier(channel)}`);
  }

  message(channel: string, payload: string): void {
    for (const { handlers } of this.#channels.get(channel) ?? []) this.guard(() => handlers.onMessage(payload));
  }

  ready(): void {
    for (const { handlers } of this.#all()) this.guard(() => handlers.onReady?.());
  }

  down(reason: string): void {
    for (const { handlers } of this.#all()) this.guard(() => handlers.onDown?.(reason));
  }

  guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#onTrouble(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #all(): Entry[] {
    return [...this.#channels.values()].flatMap((entries) => [...entries]);
  }
}

export function checkChannel(channel: string): void {
  const bytes = Buffer.byteLength(channel);
  if (bytes > 0 && bytes <= LONGEST_CHANNEL_BYTES && !channel.includes("\0")) return;
  // PostgreSQL would cut a longer name off without an error.
  const message = `The channel ${JSON.stringify(channel.slice(0, 80))} has ${bytes} bytes, or a NUL.`;
  throw new OptionInvalid(message, `Write 1 to ${LONGEST_CHANNEL_BYTES} bytes without NUL.`);
}
