// What `pg` takes for its socket, when the other end is a Link. One message is on its way at a time: what is written
// meanwhile travels together in the next one.
import { Duplex } from "node:stream";
import type { Link } from "./embedded-link.ts";

type Written = (error?: Error | null) => void;

/** Rows beyond this are parsed in several turns of the event loop. */
const SLICE = 256 * 1024;

export class Wire extends Duplex {
  readonly #link: Link;
  #written: Written | null = null;

  constructor(link: Link) {
    super();
    this.#link = link;
    link.onReply = (reply) => this.#receive(Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength));
  }

  connect(): void {
    setImmediate(() => this.emit("connect"));
  }

  setNoDelay(): void {}
  setKeepAlive(): void {}
  ref(): void {}
  unref(): void {}

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, written: Written): void {
    this.#send([chunk], written);
  }

  override _writev(chunks: { chunk: Buffer }[], written: Written): void {
    const buffers = chunks.map(({ chunk }) => chunk);
    this.#send(buffers, written);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#written = null;
    done(error);
  }

  #send(chunks: Buffer[], written: Written): void {
    this.#written = written;
    // A copy with a buffer of its own: it is handed over to the thread.
    const message = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
    let at = 0;
    for (const chunk of chunks) {
      message.set(chunk, at);
      at += chunk.length;
    }
    this.#link.send(message);
  }

  #receive(reply: Buffer): void {
    if (this.destroyed) return;
    this.push(reply.subarray(0, SLICE));
    if (reply.length > SLICE) {
      setImmediate(() => this.#receive(reply.subarray(SLICE)));
      return;
    }
    const written = this.#written;
    this.#written = null;
    written?.();
  }
}
