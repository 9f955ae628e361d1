// The notices that a PostgreSQL server sends, read off the wire: pieces of bytes in, whole texts out.

const NOTICE = 0x4e;
const MESSAGE = 0x4d;

export class NoticeReader {
  readonly #rest = new Map<number, Buffer>();

  /** What became complete with this piece of what the server says on this connection. */
  read(connection: number, piece: Buffer): string[] {
    let bytes = Buffer.concat([this.#rest.get(connection) ?? Buffer.alloc(0), piece]);
    const texts: string[] = [];
    while (bytes.length >= 5) {
      const end = 1 + bytes.readUInt32BE(1);
      if (bytes.length < end) break;
      if (bytes[0] === NOTICE) texts.push(...messageOf(bytes.subarray(5, end)));
      bytes = bytes.subarray(end);
    }
    this.#rest.set(connection, bytes);
    return texts;
  }
}

/** A notice is a list of fields: a letter, a text, a zero. */
function messageOf(fields: Buffer): string[] {
  for (let at = 0; at < fields.length && fields[at] !== 0;) {
    const end = fields.indexOf(0, at);
    if (fields[at] === MESSAGE) return [fields.toString("utf8", at + 1, end)];
    at = end + 1;
  }
  return [];
}
