// One update through its bot's handler, whichever it is. Not `auth`: sign-ins never become jobs.
import type { Answer, Bot, HandlerContext } from "../config/bot.ts";
import type { Update } from "../update.ts";
import { callHttp } from "./http.ts";
import { callScript } from "./script.ts";

export async function callHandler(bot: Bot, update: Update, context: HandlerContext): Promise<Answer> {
  const { handler } = bot;
  if (typeof handler === "function") {
    const made = await handler(update, context);
    return typeof made === "string" ? { text: made } : (made ?? {});
  }
  if (handler === "http") return await callHttp(bot, update, context);
  if (handler === "script") return await callScript(bot, update, context);
  return context.text === "" ? {} : { text: context.text };
}
