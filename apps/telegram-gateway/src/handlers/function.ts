// Handler in TypeScript. Its signal is aborted when its time is over; one that does not heed it is not waited for, because
// Telegram, or the chat's next update, does.
import type { Answer, Bot, HandlerContext, HandlerFunction } from "../config/bot.ts";
import type { Update } from "../update.ts";

/** To put things away, and to say in its own words what was not finished. */
const GRACE_MS = 500;

export async function callFunction(
  { timeoutMs }: Bot,
  handler: HandlerFunction,
  update: Update,
  context: HandlerContext,
): Promise<Answer> {
  // By a timer of our own: Node 20 forgets a timeout that only any() knows of.
  const late = new AbortController();
  const error = new Error(`The handler took longer than ${timeoutMs} ms`);
  const timers = [setTimeout(() => late.abort(error), timeoutMs)];
  const over = new Promise<never>((_, reject) => {
    late.signal.addEventListener("abort", () => timers.push(setTimeout(() => reject(error), GRACE_MS)));
  });
  const signal = AbortSignal.any([context.signal, late.signal]);
  try {
    const made = await Promise.race([handler(update, { ...context, signal }), over]);
    return typeof made === "string" ? { text: made } : (made ?? {});
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}
