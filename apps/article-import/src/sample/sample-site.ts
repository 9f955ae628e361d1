// A web site on this machine, for a first import without a network, for tests and for the storm: good pages, and every way
// in which pages go wrong. It remembers what it was asked for.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { article, consentWall, germanArticle, hostileArticle } from "./pages.ts";

export interface SampleSiteOptions {
  /** Where it is if that is free; anywhere if not. */
  port?: number;
  /** How long the slow page takes. */
  slowMs?: number;
}

const PREFERRED_PORT = 7_410;
const HOST = "127.0.0.1";
const HTML = "text/html; charset=utf-8";
const HUGE_BYTES = 64 * 1_048_576;
/** One piece of the bomb is so many bytes of nothing, and it is sent so often: 10 GB. */
const BOMB_PIECE = 10 * 1_048_576;
const BOMB_PIECES = 1_024;

export class SampleSite {
  readonly url: string;
  /** How often each path was asked for. */
  readonly asked = new Map<string, number>();
  /** When each request came, in order. */
  readonly times: { path: string; at: number; agent: string }[] = [];
  /** What it answers to /robots.txt. */
  robots = { status: 200, text: "User-agent: *\nDisallow: /private/\n" };
  /** The most requests that were being answered at the same time. */
  mostOpen = 0;
  #open = 0;
  readonly #server: Server;
  readonly #slowMs: number;

  private constructor(server: Server, slowMs: number) {
    this.#server = server;
    this.#slowMs = slowMs;
    this.url = `http://${HOST}:${(server.address() as AddressInfo).port}`;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response));
  }

  static async start({ port = PREFERRED_PORT, slowMs = 4_000 }: SampleSiteOptions = {}): Promise<SampleSite> {
    const server = createServer();
    const listen = (at: number): Promise<void> =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(at, HOST, () => {
          server.removeListener("error", reject);
          resolve();
        });
      });
    await listen(port).catch(() => listen(0));
    server.unref();
    return new SampleSite(server, slowMs);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Something of everything, as somebody would paste it. */
  links(): string[] {
    const articles = Array.from({ length: 12 }, (_, index) => `/articles/${index + 1}`);
    const others = ["/german", "/consent", "/slow", "/flaky/1", "/busy/1", "/missing", "/gone", "/loop", "/huge"];
    const more = ["/paper.pdf", "/private/diary", "/inside", "/moved/3", "/articles/1?utm_source=sample"];
    return [...articles, ...others, ...more].map((path) => this.url + path);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? "/", this.url).pathname;
    const count = (this.asked.get(path) ?? 0) + 1;
    this.asked.set(path, count);
    this.times.push({ path, at: performance.now(), agent: String(request.headers["user-agent"]) });
    this.#open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.#open);
    response.on("close", () => (this.#open -= 1));
    response.on("error", () => {});
    const send = (status: number, body: string | Buffer, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { "content-type": HTML, ...headers }).end(body);
    };
    const [, first = "", second = ""] = path.split("/");
    const n = Number(second);
    switch (first) {
      case "robots.txt":
        return send(this.robots.status, this.robots.text, { "content-type": "text/plain" });
      case "articles":
      case "many":
        return n >= 1 ? send(200, article(n)) : send(404, "No such article");
      case "german":
        return send(200, germanArticle(), { "content-type": "text/html; charset=iso-8859-1" });
      case "consent":
        return send(200, consentWall());
      case "hostile":
        return send(200, hostileArticle());
      case "private":
        return send(200, article(5));
      case "slow":
        return void setTimeout(() => send(200, article(7)), this.#slowMs).unref();
      case "never":
        return;
      case "gone":
        return send(410, "Gone");
      case "locked":
        return send(403, "Not for you");
      case "down":
        return send(500, "Broken");
      case "empty":
        return send(200, "<html><body></body></html>");
      case "loop":
        return send(302, "", { location: "/loop" });
      case "moved":
        return send(301, "", { location: `/articles/${n}` });
      case "inside":
        return send(302, "", { location: "http://169.254.169.254/latest/meta-data/" });
      case "to":
        // As it stands there, but for what no header can hold.
        return send(302, "", {
          location: encodeURI(new URL(request.url ?? "/", this.url).searchParams.get("url") ?? "/"),
        });
      case "flaky":
        return count < 3 ? send(503, "Come again") : send(200, article(8));
      case "busy":
        return count < 2 ? send(429, "Slowly", { "retry-after": "2" }) : send(200, article(9));
      case "paper.pdf":
        return send(200, "%PDF-1.7", { "content-type": "application/pdf" });
      case "notes.txt":
        return send(200, "A plain note.\n\nWith enough words in it to be something that can be read later.", {
          "content-type": "text/plain",
        });
      case "huge":
        return pour(response, {}, Buffer.alloc(65_536, "<p>more and more of the same "), HUGE_BYTES / 65_536);
      case "bomb":
        return pour(response, { "content-encoding": "gzip" }, gzipSync(Buffer.alloc(BOMB_PIECE)), BOMB_PIECES);
      default:
        return send(404, "No such page");
    }
  }
}

/** The same piece again and again, as fast as it is taken. */
function pour(response: ServerResponse, headers: Record<string, string>, piece: Buffer, times: number): void {
  response.writeHead(200, { "content-type": HTML, ...headers });
  let left = times;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= 1;
      if (!response.write(piece)) {
        response.once("drain", more);
        return;
      }
    }
    response.end();
  };
  more();
}
