// The handler on a port, with node:http. Without a token it starts only on the embedded tier and on loopback. Slow and
// silent clients are cut off; close() takes no new requests, lets those under way finish, and does not wait for ever.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { hostname } from "node:os";
import { getRequestListener } from "@hono/node-server";
import { OptionInvalid } from "../errors.ts";
import { addressOf, listen, refuseOpenDoor } from "./address.ts";
import { isLoopback } from "./browsers.ts";
import { type HandlerOptions, makeHandler } from "./handler.ts";

/** What `serve` takes: the options of the handler, and where to listen. */
export interface ServeOptions extends Omit<HandlerOptions, "allowAddresses" | "anonymous"> {
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 7070; 0 lets the system choose. */
  port?: number;
}

/** What `serve` gives. */
export interface HttpServer {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** True if other machines can reach it. */
  readonly isOpen: boolean;
  /** True if it asks nobody for a token. */
  readonly isAnonymous: boolean;
  /** From the next request on with these. Event streams that are open end; their readers come back by themselves. */
  update(changes: Pick<HandlerOptions, "kinds" | "apps" | "settings">): void;
  close(): Promise<void>;
}

export const SERVE_DEFAULTS = { host: "127.0.0.1", port: 7070 } as const satisfies Partial<ServeOptions>;

const HEADERS_WITHIN_MS = 10_000;
/** The last resort: bodies have limits of their own, and answer with a sentence (body.ts). */
const REQUEST_WITHIN_MS = 3_600_000;
const SHORTEST_TOKEN = 16;
const KEEP_ALIVE_MS = 5_000;
const CLOSE_WITHIN_MS = 3_000;

/** The HTTP API and the dashboard on a port of their own. Refuses to listen beyond loopback without a token. */
export async function serve(options: ServeOptions): Promise<HttpServer> {
  const { host = SERVE_DEFAULTS.host, port = SERVE_DEFAULTS.port, ...handlerOptions } = options;
  const { hf, token, authorize } = handlerOptions;
  const place = { host, port };
  const address = await addressOf(place);
  const isOpen = !isLoopback(address);
  const isClosed = token !== undefined || authorize !== undefined || (await hf.tokens.hasUnscoped());
  if (!isClosed && !options.healthOnly) refuseOpenDoor(host, address, hf.tier);
  if (isOpen && token !== undefined && token.length < SHORTEST_TOKEN) {
    throw new OptionInvalid(
      `The host ${host} can be reached by other machines, and the token has ${token.length} characters.`,
      `Use at least ${SHORTEST_TOKEN}: openssl rand -hex 32 makes a good one.`,
    );
  }
  const named = [host, ...(isOpen ? [hostname()] : [])].filter((name) => isIP(name) !== 0 || /^[\w.-]+$/.test(name));
  const fixed: HandlerOptions = {
    ...handlerOptions,
    anonymous: !isClosed,
    allowedHosts: [...named, ...(handlerOptions.allowedHosts ?? [])],
    allowAddresses: isOpen,
  };
  let handler = makeHandler(fixed);
  const server = createServer(
    {
      headersTimeout: HEADERS_WITHIN_MS,
      requestTimeout: REQUEST_WITHIN_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 5_000,
    },
    toNodeHandler((request) => handler(request)),
  );
  const closeServer = prepareClose(server);
  await listen(server, place, address);
  const at = server.address();
  const boundPort = typeof at === "object" && at !== null ? at.port : port;
  const shown = isIP(host) === 6 ? `[${host}]` : host;
  return {
    url: `http://${shown}:${boundPort}`,
    host,
    port: boundPort,
    isOpen,
    isAnonymous: !isClosed,
    update(changes) {
      const before = handler;
      handler = makeHandler({ ...fixed, ...changes });
      before.endStreams();
    },
    close() {
      handler.endStreams();
      return closeServer();
    },
  };
}

/** For node:http, Express and everything else that takes (request, response). */
export function toNodeHandler(
  handler: (request: Request) => Promise<Response>,
): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener((request) => handler(request), {
    overrideGlobalObjects: false,
    errorHandler: () =>
      Response.json(
        {
          error: {
            code: "HOLDFAST_HTTP_REQUEST_UNREADABLE",
            message: "The request cannot be read: its Host or its path is malformed.",
            hint: "Send a plain HTTP request to the address that the server printed at start.",
          },
        },
        { status: 400 },
      ),
  });
  return (request, response) => void listener(request, response);
}

/** Connections with a request under way end with its answer; all others, also those that never said a word, at once. */
function prepareClose(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>();
  const busy = new Set<Socket>();
  let closing: Promise<void> | undefined;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    busy.add(socket);
    response.once("close", () => {
      busy.delete(socket);
      if (closing) socket.destroySoon();
    });
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => server.closeAllConnections(), CLOSE_WITHIN_MS);
      server.close(() => {
        clearTimeout(timer);
        resolve();
      });
      for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
    });
  return () => (closing ??= close());
}
