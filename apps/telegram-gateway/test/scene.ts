// The gateway as somebody has it: the app on a real database, its HTTP server, and the stand-in for Telegram.
import { afterAll } from "vitest";
import { prepareApps, startApps, type AnyJobKind, type Logger } from "holdfast";
import { serve } from "holdfast/http";
import { runDue, type DueRuns, type TestHoldfast } from "holdfast/testing";
import { type BotOptions, type GatewayOptions, StandIn, type StandInOptions, telegramGateway } from "../src/index.ts";

export const SECRET = "a-secret-that-telegram-shows";
export const TOKEN = "12345:the-token-of-this-test-bot";
export const ADMIN = "a-token-for-the-gateway-tests";

export function bot(options: Omit<BotOptions, "token" | "secret">): BotOptions {
  return { token: TOKEN, secret: SECRET, requireAuth: false, ...options };
}

/** What Telegram would send. */
export function message(updateId: number, text: string, chat = 7, more: object = {}): object {
  return {
    update_id: updateId,
    message: {
      message_id: updateId,
      date: 1_700_000_000,
      chat: { id: chat, type: "private" },
      from: { id: chat, is_bot: false, first_name: "Ada" },
      text,
      ...more,
    },
  };
}

export interface Scene {
  readonly url: string;
  readonly standIn: StandIn;
  readonly kinds: AnyJobKind[];
  post(slug: string, body: object | string, secret?: string | null): Promise<{ status: number; came?: string }>;
  /** Runs what is due. */
  runDue(): Promise<DueRuns>;
  /** The texts that were sent, in order. */
  texts(chat?: number): string[];
  get<T>(path: string): Promise<T>;
}

export async function openScene(
  hf: TestHoldfast,
  options: GatewayOptions,
  standInOptions: StandInOptions = {},
  log?: Logger,
): Promise<Scene> {
  const standIn = await StandIn.start({ pauseMs: 20, ...standInOptions });
  const app = telegramGateway({ apiRoot: standIn.url, ...options }, {});
  const kinds = await prepareApps(hf, [app]);
  const server = await serve({ hf, kinds, apps: [app], port: 0, token: ADMIN });
  const stopApps = await startApps(hf, [app], { url: server.url, ...(log && { log }) });
  afterAll(async () => {
    await stopApps();
    await server.close();
    await standIn.close();
  });
  return {
    url: server.url,
    standIn,
    kinds,
    async post(slug, body, secret = SECRET) {
      const answer = await fetch(`${server.url}/telegram/${slug}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(secret === null ? {} : { "x-telegram-bot-api-secret-token": secret }),
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
      const said = (await answer.json()) as { came?: string };
      return { status: answer.status, ...(said.came === undefined ? {} : { came: said.came }) };
    },
    runDue: () => runDue(hf, kinds),
    texts: (chat) =>
      standIn.sent.filter((sent) => chat === undefined || sent.chat === String(chat)).map((sent) => sent.text),
    async get<T>(path: string) {
      const answer = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${ADMIN}` } });
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      return (await answer.json()) as T;
    },
  };
}

interface Overview {
  bots: { bot: string; counts: Record<string, number> }[];
}

export async function countsOf(scene: Scene, slug: string): Promise<Record<string, number>> {
  const { bots } = await scene.get<Overview>("/telegram-gateway/overview");
  return bots.find((entry) => entry.bot === slug)!.counts;
}
