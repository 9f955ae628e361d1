// Telegram's API, through grammY: one client for each bot, and what its errors mean for the job that sends.
import { Api, GrammyError } from "grammy";
import { RetryAfter } from "holdfast";
import type { Bot } from "./config/bot.ts";

const TIMEOUT_SECONDS = 30;

export function makeApi({ token }: Pick<Bot, "token">, apiRoot: string): Api {
  return new Api(token, { apiRoot, timeoutSeconds: TIMEOUT_SECONDS });
}

/** What Telegram says about this very message or chat: trying again cannot change it. undefined: anything else. */
export function hopeless(error: unknown): string | undefined {
  if (!(error instanceof GrammyError)) return undefined;
  // 401 and 404 are about the bot's token: that is mended, and then the message goes out.
  return error.error_code === 400 || error.error_code === 403 ? error.description.slice(0, 500) : undefined;
}

/** Telegram says by itself when to come back. */
export function asRetry(error: unknown): unknown {
  const seconds = error instanceof GrammyError ? error.parameters.retry_after : undefined;
  if (seconds === undefined || seconds <= 0) return error;
  return new RetryAfter(`${Math.min(seconds, 86_400)}s`, "Telegram asks for a pause", { cause: error });
}
