// One update through its bot's handler, whichever it is: each keeps the bot's time limit itself, and says so in its own
// words. Not `auth`: sign-ins never become jobs.
import type { Answer, Bot, HandlerContext } from "../config/bot.ts";
import type { Update } from "../update.ts";
import { callFunction } from "./function.ts";
import { callHttp } from "./http.ts";
import { callScript } from "./script.ts";

export async function callHandler(bot: Bot, update: Update, context: HandlerContext): Promise<Answer> {
  const { handler } = bot;
  if (typeof handler === "function") return await callFunction(bot, handler, update, context);
  if (handler === "http") return await callHttp(bot, update, context);
  if (handler === "script") return await callScript(bot, update, context);
  return context.text === "" ? {} : { text: context.text };
}
