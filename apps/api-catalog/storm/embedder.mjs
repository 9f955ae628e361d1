// A local embedder over HTTP that speaks as Ollama and as OpenAI do, and misbehaves as it is told. It notes every text it was
// sent and what became of it, so that it can be said afterwards how often each was embedded, and why.
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const DIMENSION = 128;

/** Hashed words: texts with the same words are near each other. */
export function vectorOf(text, dimension = DIMENSION) {
  const vector = Array.from({ length: dimension }, () => 0);
  for (const word of text.toLowerCase().split(/[^a-z0-9]+/)) {
    if (word === "") continue;
    let hash = 7;
    for (const letter of word) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
    vector[hash % dimension] += 1;
  }
  vector[0] += 0.01;
  return vector;
}

/**
 * `behave({ n, texts })` says what happens to the nth call: "ok", { slow: ms }, "fail", "busy", "hang", "short", "zero",
 * "drop" or "garbage".
 * @typedef {(call: { n: number, texts: string[], model: string }) => string | { slow: number }} Behave
 * @typedef {{ sent: number, answered: number, failed: number }} Seen
 * @param {{ behave?: Behave, dimension?: number, port?: number }} [options]
 */
export async function startEmbedder({ behave = () => "ok", dimension = DIMENSION, port = 0 } = {}) {
  // By the first line of a text: how often it was sent, answered well, and not.
  /** @type {Map<string, Seen>} */
  const seen = new Map();
  /** @type {{ n: number, count: number, how: string, model: string, key: string | undefined }[]} */
  const calls = [];
  // `most`: how many calls there were at the same time.
  /** @type {{ behave: Behave, dimension: number, n: number, now: number, most: number }} */
  const state = { behave, dimension, n: 0, now: 0, most: 0 };
  let server;
  let address = port;

  const note = (texts, field) => {
    for (const text of texts) {
      const [line] = text.split("\n");
      const each = seen.get(line) ?? { sent: 0, answered: 0, failed: 0 };
      each[field] += 1;
      seen.set(line, each);
    }
  };

  async function handle(request, response) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const { input, model } = JSON.parse(Buffer.concat(pieces).toString("utf8"));
    const texts = Array.isArray(input) ? input : [input];
    const n = ++state.n;
    const how = state.behave({ n, texts, model });
    calls.push({
      n,
      count: texts.length,
      how: typeof how === "string" ? how : "slow",
      model,
      key: request.headers.authorization,
    });
    note(texts, "sent");
    state.most = Math.max(state.most, ++state.now);
    let isGone = false;
    response.once("close", () => {
      state.now -= 1;
      isGone = !response.writableFinished;
    });
    if (typeof how === "object") await sleep(how.slow);
    if (how === "hang") {
      note(texts, "failed");
      return;
    }
    if (isGone || response.destroyed) {
      note(texts, "failed");
      return;
    }
    const ok = how === "ok" || typeof how === "object";
    note(texts, ok ? "answered" : "failed");
    if (how === "drop") return void response.destroy();
    if (how === "fail") return void response.writeHead(500).end("out of memory");
    if (how === "busy") return void response.writeHead(429, { "retry-after": "1" }).end("slow down");
    if (how === "garbage") return void response.writeHead(200).end("<html>not json");
    let vectors = texts.map((text) => vectorOf(text, state.dimension));
    if (how === "short") vectors = vectors.slice(1);
    if (how === "zero") vectors[0] = vectors[0].map(() => 0);
    const answer = request.url.endsWith("/api/embed")
      ? { model, embeddings: vectors }
      : { data: vectors.map((embedding, index) => ({ index, embedding })).toReversed() };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  }

  async function listen() {
    server = createServer((request, response) => {
      handle(request, response).catch(() => response.destroy());
    });
    server.listen(address, "127.0.0.1");
    await once(server, "listening");
    address = server.address().port;
  }
  async function close() {
    server.closeAllConnections();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  }
  await listen();
  return {
    get url() {
      return `http://127.0.0.1:${address}`;
    },
    seen,
    calls,
    state,
    /** Gone for so long, then back at the same place. */
    async restart(downMs) {
      await close();
      await sleep(downMs);
      await listen();
    },
    close,
  };
}
