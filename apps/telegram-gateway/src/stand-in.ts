// A stand-in for Telegram: the few methods of its Bot API that the gateway calls, and its habit of delivering an update
// again until it hears a 2xx, one after the other within a chat. For `holdfast dev` and for tests; it keeps everything in
// memory and listens on this machine only.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface SentMessage {
  token: string;
  chat: string;
  text: string;
  messageId: number;
  at: number;
}

interface Webhook {
  url: string;
  secret: string;
}

export interface SaidUpdate {
  update_id: number;
  message: {
    message_id: number;
    date: number;
    chat: { id: number; type: "private"; first_name: string };
    from: { id: number; is_bot: false; first_name: string };
    text: string;
  };
}

export interface Delivery {
  updateId: number;
  /** What the webhook answered at last; 0 if nobody did. */
  status: number;
  /** What the gateway says became of it. */
  came: string | undefined;
  tries: number;
}

export interface StandInOptions {
  /** Tokens it knows; anything else is 401, as with Telegram. All, if not given. */
  tokens?: readonly string[];
  /** What it answers instead of sending, for tests. */
  onSend?: (message: SentMessage) => { status: number; description: string; retryAfter?: number } | undefined;
  /** How often an update is tried again, and after how long. */
  tries?: number;
  pauseMs?: number;
}

const MAX_BODY = 1_048_576;
const KEPT = 10_000;

export class StandIn {
  readonly sent: SentMessage[] = [];
  readonly webhooks = new Map<string, Webhook>();
  #server: Server;
  #options: StandInOptions;
  #nextMessage = 1;
  // Newer than all updates of an earlier life: the gateway remembers those.
  #nextUpdate = Math.floor(Date.now() / 1_000);
  #updates = new Map<number, { token: string; update: SaidUpdate }>();
  #chats = new Map<string, Promise<unknown>>();
  #url = "";

  private constructor(options: StandInOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => reply(response, 400, undefined, String(error)));
    });
  }

  static async start(options: StandInOptions = {}): Promise<StandIn> {
    const made = new StandIn(options);
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    const address = made.#server.address();
    made.#url = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`;
    return made;
  }

  /** For `apiRoot`. */
  get url(): string {
    return this.#url;
  }

  /** Somebody writes to a bot. Resolves when the update was taken, or given up. */
  async say(token: string, who: { chat: number; name: string }, text: string): Promise<Delivery> {
    const { chat, name } = who;
    const update: SaidUpdate = {
      update_id: this.#nextUpdate++,
      message: {
        message_id: this.#nextMessage++,
        date: Math.floor(Date.now() / 1_000),
        chat: { id: chat, type: "private", first_name: name },
        from: { id: chat, is_bot: false, first_name: name },
        text,
      },
    };
    this.#updates.set(update.update_id, { token, update });
    for (const old of this.#updates.keys()) {
      if (this.#updates.size <= KEPT) break;
      this.#updates.delete(old);
    }
    // One after the other within a chat, as Telegram does it.
    const lane = `${token} ${chat}`;
    const before = this.#chats.get(lane) ?? Promise.resolve();
    const delivery = before.then(() => this.deliver(token, update));
    const settled = delivery.catch(() => {});
    this.#chats.set(lane, settled);
    return await delivery;
  }

  /** The same update once more, as after a lost answer. undefined: it is not known here. */
  async again(updateId: number): Promise<Delivery | undefined> {
    const known = this.#updates.get(updateId);
    return known && (await this.deliver(known.token, known.update));
  }

  async deliver(token: string, update: { update_id: number }): Promise<Delivery> {
    const webhook = this.webhooks.get(token);
    if (!webhook) throw new Error("This bot has no webhook.");
    const { tries = 5, pauseMs = 500 } = this.#options;
    let status = 0;
    let came: string | undefined;
    let tried = 0;
    while (tried < tries) {
      tried += 1;
      try {
        const answer = await fetch(webhook.url, {
          method: "POST",
          headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": webhook.secret },
          body: JSON.stringify(update),
          signal: AbortSignal.timeout(60_000),
        });
        status = answer.status;
        const said = (await answer.json().catch(() => ({}))) as { came?: string };
        came = said.came;
        if (answer.ok) break;
      } catch {
        status = 0;
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return { updateId: update.update_id, status, came, tries: tried };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const match = /^\/bot(\d+:[\w-]+)\/(\w+)$/.exec(request.url ?? "");
    const [, token = "", method = ""] = match ?? [];
    if (!match || (this.#options.tokens && !this.#options.tokens.includes(token))) {
      return reply(response, 401, undefined, "Unauthorized");
    }
    const body = await readBody(request);
    if (method === "sendMessage") return this.#send(response, token, body);
    if (method === "setWebhook") {
      this.webhooks.set(token, { url: textIn(body, "url"), secret: textIn(body, "secret_token") });
      return reply(response, 200, true);
    }
    if (method === "deleteWebhook") {
      this.webhooks.delete(token);
      return reply(response, 200, true);
    }
    if (method === "getWebhookInfo") {
      const url = this.webhooks.get(token)?.url ?? "";
      return reply(response, 200, { url, has_custom_certificate: false, pending_update_count: 0 });
    }
    if (method === "getMe") {
      const id = Number(token.split(":")[0]);
      return reply(response, 200, { id, is_bot: true, first_name: `bot ${id}`, username: `bot_${id}` });
    }
    reply(response, 404, undefined, "Not Found: method not found");
  }

  #send(response: ServerResponse, token: string, body: Record<string, unknown>): void {
    const message = {
      token,
      chat: textIn(body, "chat_id"),
      text: textIn(body, "text"),
      messageId: this.#nextMessage++,
      at: Date.now(),
    };
    const refused = this.#options.onSend?.(message);
    if (refused) return reply(response, refused.status, undefined, refused.description, refused.retryAfter);
    this.sent.push(message);
    if (this.sent.length > KEPT) this.sent.shift();
    const chat = { id: Number(message.chat), type: "private" };
    reply(response, 200, {
      message_id: message.messageId,
      date: Math.floor(Date.now() / 1_000),
      chat,
      text: message.text,
    });
  }
}

function reply(
  response: ServerResponse,
  status: number,
  result?: unknown,
  description?: string,
  retryAfter?: number,
): void {
  const isOk = status === 200;
  const body = isOk
    ? { ok: true, result }
    : {
        ok: false,
        error_code: status,
        description,
        ...(retryAfter === undefined ? {} : { parameters: { retry_after: retryAfter } }),
      };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function textIn(body: Record<string, unknown>, name: string): string {
  const value = body[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > MAX_BODY) throw new Error("too large");
    pieces.push(piece);
  }
  const text = Buffer.concat(pieces).toString("utf8");
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}
