// A TCP proxy in front of PostgreSQL, in this process, with the faults a network has:
// - pause()/resume(): silence both ways or one way, nothing closed, nothing lost;
// - halfOpen(): the server's side is gone and the client is not told: what it says goes nowhere;
// - slow(): every piece arrives late, or at so many bytes a second; cutAfter(): reset in the middle of whatever is said;
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

/** `lose-reply`: pass this on, throw away what the other side answers until it is done answering, then reset the connection. */
export type Verdict = "pass" | "drop" | "cut" | "lose-reply";

/**
 * What a reply that was thrown away had said: the work is committed, or there was none (no statement returned or changed a row), or it is part of a transaction that went on, or it
 * failed, or the server was only ready for what comes next.
 */
export type LostReply = "committed" | "nothing" | "inside" | "failed" | "asks for more";

/** `lost` is called when the reply was thrown away; `instead` is passed on in place of what was said. */
export type Judgement =
  Verdict | { verdict: "lose-reply"; lost: (reply: LostReply) => void } | { verdict: "pass"; instead: Buffer };

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
  /**
   * Connections of which pause() keeps something back that was said since it was called, until resume(); and pieces that slow() has
   * made late, until it is called again.
   */
  readonly held: number;
  /** One way: the other one goes on. */
  pause(direction?: Piece["direction"]): void;
  resume(): void;
  /** How many connections it hit. */
  cut(): number;
  /** Connections that are open now; new ones work. How many it hit. */
  halfOpen(): number;
  /** From now on; `slow({})` ends it. */
  slow(how: { ms?: number; jitterMs?: number; bytesPerSecond?: number }): void;
  /** Once: whichever connection passes the next so many bytes is reset with a part of a piece delivered. */
  cutAfter(bytes: number): Promise<void>;
  refuse(refused: boolean): Promise<void>;
  onData(hook: ((piece: Piece) => Judgement) | undefined): void;
  /** Once: the next piece to the server that contains `text`. Resolves when its reply was thrown away. */
  loseReplyTo(text: string): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  id: number;
  client: Socket;
  /** None while it was accepted under pause(), or when it is half open. */
  server: Socket | undefined;
  isHalfOpen?: boolean;
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const upstream = new URL(target);
  const pairs = new Set<Pair>();
  let paused: Piece["direction"] | "both" | undefined;
  let lag: { ms?: number; jitterMs?: number; bytesPerSecond?: number } = {};
  let cutting: { left: number; done: () => void } | undefined;
  let accepted = 0;
  /** Who is not listened to, and how much it had said until then. A paused socket still reads some of what comes. */
  const hushed = new Map<Socket, number>();
  let late = 0;
  let hook: ((piece: Piece) => Judgement) | undefined;
  let trap: { text: string; sprung: () => void } | undefined;

  function judge(piece: Piece): { verdict: Verdict; lost?: (reply: LostReply) => void; instead?: Buffer } {
    if (trap && piece.direction === "to-server" && piece.data.includes(trap.text)) {
      const lost = trap.sprung;
      trap = undefined;
      return { verdict: "lose-reply", lost };
    }
    const judged = hook?.(piece) ?? "pass";
    return typeof judged === "string" ? { verdict: judged } : judged;
  }

  function reset(pair: Pair): void {
    pairs.delete(pair);
    abort(pair.client);
    if (pair.server) abort(pair.server);
  }

  function join(pair: Pair): void {
    const server = connect({ host: upstream.hostname, port: Number(upstream.port || 5432), noDelay: true });
    pair.server = server;
    let losing: { from: Socket; reply: Buffer; lost: ((reply: LostReply) => void) | undefined } | undefined;
    const relay = (from: Socket, to: Socket, direction: Piece["direction"]): void => {
      let last = Promise.resolve();
      let waiting = 0;
      const deliver = (data: Buffer): void => {
        const waitMs =
          (lag.ms ?? 0) +
          Math.random() * (lag.jitterMs ?? 0) +
          (lag.bytesPerSecond ? (data.length / lag.bytesPerSecond) * 1_000 : 0);
        if (waitMs === 0 && waiting === 0) return void to.write(data);
        waiting += 1;
        late += 1;
        last = last.then(async () => {
          await new Promise((resolve) => setTimeout(resolve, waitMs));
          waiting -= 1;
          if (!to.destroyed) to.write(data);
        });
      };
      from.on("data", (data: Buffer) => {
        if (pair.isHalfOpen) return;
        if (cutting && (cutting.left -= data.length) <= 0) {
          const { done, left } = cutting;
          cutting = undefined;
          to.write(data.subarray(0, data.length + left));
          reset(pair);
          return done();
        }
        if (losing?.from === from) {
          losing.reply = Buffer.concat([losing.reply, data]);
          const said = readReply(losing.reply);
          if (said === undefined) return;
          reset(pair);
          losing.lost?.(said);
          return;
        }
        const { verdict, lost, instead } = judge({ direction, data, connection: pair.id });
        if (verdict === "cut") return reset(pair);
        if (verdict === "drop") return;
        if (verdict === "lose-reply") losing = { from: to, reply: Buffer.alloc(0), lost };
        deliver(instead ?? data);
      });
      from.on("end", () => void last.then(() => to.end()));
      from.on("error", () => {
        if (!pair.isHalfOpen || from !== server) reset(pair);
      });
      from.on("close", () => {
        if (pair.isHalfOpen && from === server) return;
        pairs.delete(pair);
        to.destroy();
      });
    };
    relay(pair.client, server, "to-server");
    relay(server, pair.client, "to-client");
    hush(pair);
  }

  function hush({ client, server }: Pair): void {
    if (paused === "both" || paused === "to-server") hushOne(client);
    if (server && (paused === "both" || paused === "to-client")) hushOne(server);
  }

  function hushOne(socket: Socket): void {
    socket.pause();
    if (!hushed.has(socket)) hushed.set(socket, socket.bytesRead);
  }

  const listener = createServer({ noDelay: true }, (client) => {
    accepted += 1;
    const pair: Pair = { id: accepted, client, server: undefined };
    pairs.add(pair);
    client.on("error", () => reset(pair));
    if (paused === "both") hushOne(client);
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
    get held() {
      return [...hushed].filter(([socket, before]) => socket.bytesRead > before).length + late;
    },
    pause(direction) {
      hushed.clear();
      paused = direction ?? "both";
      for (const pair of pairs) hush(pair);
    },
    resume() {
      paused = undefined;
      hushed.clear();
      for (const pair of pairs) {
        if (!pair.server && !pair.isHalfOpen) join(pair);
        pair.client.resume();
        pair.server?.resume();
      }
    },
    cut() {
      const hit = pairs.size;
      for (const pair of pairs) reset(pair);
      return hit;
    },
    halfOpen() {
      let hit = 0;
      for (const pair of pairs) {
        if (pair.isHalfOpen || !pair.server) continue;
        pair.isHalfOpen = true;
        abort(pair.server);
        pair.server = undefined;
        hit += 1;
      }
      return hit;
    },
    slow(how) {
      lag = how;
      late = 0;
    },
    cutAfter(bytes) {
      return new Promise((resolve) => {
        cutting = { left: bytes, done: resolve };
      });
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

/** PostgreSQL's messages, up to the one with which it is done answering. Undefined: it has not come yet. */
function readReply(bytes: Buffer): LostReply | undefined {
  const [error, complete, copyIn, ready] = [0x45, 0x43, 0x47, 0x5a];
  const idle = 0x49;
  let hasFailed = false;
  let rows = 0;
  for (let at = 0; at + 5 <= bytes.length;) {
    const [type, length] = [bytes[at], bytes.readUInt32BE(at + 1)];
    if (type === copyIn) return "asks for more";
    // A COMMIT of what had failed already is answered with ROLLBACK.
    if (type === error || (type === complete && bytes.toString("latin1", at + 5, at + 13) === "ROLLBACK"))
      hasFailed = true;
    // Its tag ends in how many rows it was about; some have no number, and are about something.
    if (type === complete)
      rows += Number(/ (\d+)\0$/.exec(bytes.toString("latin1", at + 5, at + 1 + length))?.[1] ?? 1);
    if (type === ready && at + 5 < bytes.length) {
      if (hasFailed) return "failed";
      return bytes[at + 5] !== idle ? "inside" : rows > 0 ? "committed" : "nothing";
    }
    at += 1 + length;
  }
  return undefined;
}

/** By RST where Node can: it leaks the handle of a socket that is reset after end(). */
function abort(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
