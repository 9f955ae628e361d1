// The routes behind the page. Reading wants a viewer; typing a message wants an operator, and the stand-in of `holdfast
// dev`.
import type { AppRequest, AppRoute, Holdfast } from "holdfast";
import type { Desk } from "./webhook.ts";
import { databaseNow, lookAtBots, lookAtChat, lookAtUpdates } from "./look.ts";
import type { StandIn } from "./stand-in.ts";

export interface PageDesk extends Desk {
  standIn: StandIn | undefined;
}

const MAX_TYPED = 4_096;

export function makePageRoutes(deskOf: (hf: Holdfast) => PageDesk): AppRoute[] {
  return [
    {
      method: "GET",
      path: "/telegram-gateway/overview",
      auth: "token",
      async handle({ hf }) {
        const { gateway, counts, standIn } = deskOf(hf);
        const now = await databaseNow(hf);
        const bots = await lookAtBots(gateway, counts);
        const updates = await lookAtUpdates(hf);
        return { now: now.toISOString(), canType: standIn !== undefined, isSample: gateway.isSample, bots, updates };
      },
    },
    {
      method: "GET",
      path: "/telegram-gateway/chats/:bot/:chat",
      auth: "token",
      async handle({ hf, params: { bot = "", chat = "" } }) {
        if (!/^-?\d{1,18}$/.test(chat)) return refuse(400, "A chat is a number.");
        const now = await databaseNow(hf);
        return { now: now.toISOString(), bot, chat, messages: await lookAtChat(hf, bot, chat) };
      },
    },
    {
      method: "POST",
      path: "/telegram-gateway/say",
      auth: "token",
      handle: (request) => type(deskOf(request.hf), request),
    },
    {
      method: "POST",
      path: "/telegram-gateway/again",
      auth: "token",
      async handle({ hf, json }) {
        const { standIn } = deskOf(hf);
        if (!standIn) return refuse(409, "There is no stand-in here: it is part of holdfast dev.");
        const { update } = ((await json()) ?? {}) as { update?: unknown };
        const delivery = await standIn.again(Number(update));
        return delivery ?? refuse(404, "The stand-in does not know this update; it forgets when it ends.");
      },
    },
  ];
}

async function type({ standIn, gateway }: PageDesk, { json }: AppRequest): Promise<unknown> {
  if (!standIn) return refuse(409, "There is no stand-in here: it is part of holdfast dev.");
  const body = await json();
  const given = (body !== null && typeof body === "object" ? body : {}) as Record<string, unknown>;
  const bot = gateway.bots.get(String(given["bot"]));
  const { chat, name = "You", text } = given;
  if (!bot) return refuse(422, "There is no such bot.");
  if (!Number.isSafeInteger(chat)) return refuse(422, "A chat is a whole number.");
  if (typeof text !== "string" || text.trim() === "" || text.length > MAX_TYPED) {
    return refuse(422, `Write 1 to ${MAX_TYPED} characters.`);
  }
  return await standIn.say(bot.token, { chat: chat as number, name: String(name).slice(0, 64) }, text);
}

function refuse(status: number, message: string): Response {
  return Response.json({ error: { code: "TELEGRAM_REFUSED", message, hint: "" } }, { status });
}
