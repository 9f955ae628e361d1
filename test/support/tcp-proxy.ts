// A TCP proxy in front of PostgreSQL, in this process, with the faults a network has:
// - pause()/resume(): silence both ways, nothing closed, nothing lost (a half-open connection until resumed);
// - cut(): every connection is reset; refuse(true): new connections get ECONNREFUSED until refuse(false);
// - onData(hook): decide about each piece of bytes, so that a fault can be tied to what is being said;
// - loseReplyTo("COMMIT"): that statement reaches the server and is answered, and the answer never arrives.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface Piece {
  direction: "to-server" | "to-client";
  data: Buffer;
  /** Counts up from 1 in the order in which connections were made. */
  connection: number;
}

/** `lose-reply`: pass this on, throw the next bytes of the other side away, then reset the connection. */
export type Verdict = "pass" | "drop" | "cut" | "lose-reply";

export interface TcpProxy {
  readonly port: number;
  /** `url` with the proxy's address in place of the server's. */
  through(url: string): string;
  /** Connections open now. */
  readonly open: number;
  /** By its number, see Piece. */
  isOpen(connection: number): boolean;
  /** Connections accepted since the start. */
  readonly accepted: number;
  pause(): void;
  resume(): void;
  cut(): void;
  refuse(refused: boolean): Promise<void>;
  onData(hook: ((piece: Piece) => Verdict) | undefined): void;
  /** Once: the next piece to the server that contains `text`. Resolves when its reply was thrown away. */
  loseReplyTo(text: string): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  id: number;
  client: Socket;
  /** None while it was accepted under pause(). */
  server: Socket | undefined;
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const upstream = new URL(target);
  const pairs = new Set<Pair>();
  let paused = false;
  let accepted = 0;
  let hook: ((piece: Piece) => Verdict) | undefined;
  let trap: { text: string; sprung: () => void } | undefined;

  function judge(piece: Piece): { verdict: Verdict; lost?: () => void } {
    if (trap && piece.direction === "to-server" && piece.data.includes(trap.text)) {
      const lost = trap.sprung;
      trap = undefined;
      return { verdict: "lose-reply", lost };
    }
    return { verdict: hook?.(piece) ?? "pass" };
  }

  function reset(pair: Pair): void {
    pairs.delete(pair);
    abort(pair.client);
    if (pair.server) abort(pair.server);
  }

  function join(pair: Pair): void {
    const server = connect({ host: upstream.hostname, port: Number(upstream.port || 5432), noDelay: true });
    pair.server = server;
    let losing: { from: Socket; lost: (() => void) | undefined } | undefined;
    const relay = (from: Socket, to: Socket, direction: Piece["direction"]): void => {
      from.on("data", (data: Buffer) => {
        if (losing?.from === from) {
          reset(pair);
          losing.lost?.();
          return;
        }
        const { verdict, lost } = judge({ direction, data, connection: pair.id });
        if (verdict === "cut") return reset(pair);
        if (verdict === "drop") return;
        if (verdict === "lose-reply") losing = { from: to, lost };
        to.write(data);
      });
      from.on("end", () => to.end());
      from.on("error", () => reset(pair));
      from.on("close", () => {
        pairs.delete(pair);
        to.destroy();
      });
    };
    relay(pair.client, server, "to-server");
    relay(server, pair.client, "to-client");
  }

  const listener = createServer({ noDelay: true }, (client) => {
    accepted += 1;
    const pair: Pair = { id: accepted, client, server: undefined };
    pairs.add(pair);
    client.on("error", () => reset(pair));
    if (paused) client.pause();
    else join(pair);
  });
  async function listen(port: number): Promise<void> {
    listener.listen(port, "127.0.0.1");
    await once(listener, "listening");
  }
  await listen(0);
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const { port } = address;

  return {
    port,
    through(url) {
      const changed = new URL(url);
      changed.hostname = "127.0.0.1";
      changed.port = String(port);
      return changed.href;
    },
    get open() {
      return pairs.size;
    },
    isOpen(connection) {
      return [...pairs].some(({ id }) => id === connection);
    },
    get accepted() {
      return accepted;
    },
    pause() {
      paused = true;
      for (const { client, server } of pairs) {
        client.pause();
        server?.pause();
      }
    },
    resume() {
      paused = false;
      for (const pair of pairs) {
        if (!pair.server) join(pair);
        pair.client.resume();
        pair.server?.resume();
      }
    },
    cut() {
      for (const pair of pairs) reset(pair);
    },
    async refuse(refused) {
      if (refused !== listener.listening) return;
      // close() calls back only when the last connection is gone, but stops listening at once.
      if (refused) listener.close();
      else await listen(port);
    },
    onData(next) {
      hook = next;
    },
    loseReplyTo(text) {
      return new Promise((resolve) => {
        trap = { text, sprung: resolve };
      });
    },
    async close() {
      for (const pair of pairs) reset(pair);
      if (!listener.listening) return;
      const closed = once(listener, "close");
      listener.close();
      await closed;
    },
  };
}

/** By RST where Node can: it leaks the handle of a socket that is reset after end(). */
function abort(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
