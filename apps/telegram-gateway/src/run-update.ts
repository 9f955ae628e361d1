// The kinds that handle updates, one for each async bot, so that each has its own ladder, limits and figures. A run ends
// with one commit: the update's row, the answer, the job that sends it, the handler's own effects, the completion.
import { defineJob, type Duration, Fatal, Gone, type Holdfast, type JobContext, type JobKind } from "holdfast";
import type { Bot, Texts } from "./config/bot.ts";
import { callHandler } from "./handlers/call.ts";
import { recordUpdate, say, type SendPayload } from "./messages.ts";
import { textOf, type Update } from "./update.ts";

export const QUEUE = "telegram";

export interface UpdatePayload {
  bot: string;
  update: Update;
}

export interface RunUpdateInput {
  hf: Holdfast;
  bot: Bot;
  texts: Texts;
  send: JobKind<SendPayload>;
}

/** A chat's updates are handled one after the other. */
export const groupOf = (slug: string, chat: number | string): string => `${slug}:${chat}`;

export const kindName = (slug: string): string => `telegram.bot.${slug}`;

export function makeUpdateKind({ hf, bot, texts, send }: RunUpdateInput): JobKind<UpdatePayload> {
  return defineJob<UpdatePayload>(kindName(bot.slug), {
    queue: QUEUE,
    attempts: bot.attempts,
    backoff: [...bot.ladder],
    // The handler has its own limit; this is for one that does not keep it.
    timeout: `${bot.timeoutMs + 30_000}ms` satisfies Duration,
    async run(job) {
      const { update } = job.payload;
      const patience = makePatience(bot.slowAfterMs, () => tellSlow(job));
      try {
        const answer = await callHandler(bot, update, {
          bot: bot.slug,
          text: textOf(update),
          attempt: job.attempt,
          signal: job.signal,
          log: job.log,
        });
        await patience.end();
        await job.transaction(async (tx) => {
          const sql = hf.sql.on(tx);
          await recordUpdate(sql, { bot: bot.slug, update, state: "handled", jobId: job.id });
          await answer.commit?.(sql);
          await say(hf, sql, send, { bot: bot.slug, update, purpose: "reply", text: answer.text ?? "" });
          await job.complete(tx, { text: answer.text ?? null });
        });
        hf.wake();
      } catch (error) {
        await patience.end();
        // The next try is half a minute away or more: the user should not wonder meanwhile.
        if (job.attempt < job.maxAttempts && !job.signal.aborted && !isLast(error)) await tellSlow(job);
        throw error;
      }
    },
  });

  /** Once in the life of an update, by the unique index; never the reason why a run fails. */
  async function tellSlow(job: JobContext<UpdatePayload>): Promise<void> {
    const { update } = job.payload;
    try {
      await job.transaction(async (tx) => {
        const sql = hf.sql.on(tx);
        await recordUpdate(sql, { bot: bot.slug, update, state: "received", jobId: job.id });
        await say(hf, sql, send, { bot: bot.slug, update, purpose: "slow", text: texts.slow });
      });
      hf.wake();
    } catch (error) {
      job.log.warn("The user could not be told that it takes longer", { error: String(error) });
    }
  }
}

/** Given up, or nothing is left to do: no try follows. Also if it is wrapped, as Holdfast itself sees it. */
function isLast(error: unknown): boolean {
  let link = error;
  for (let depth = 0; depth < 10 && link instanceof Error; depth += 1) {
    if (link instanceof Fatal || link instanceof Gone) return true;
    link = link.cause;
  }
  return false;
}

/** Calls `tell` after a while, unless it ended before; `end` waits for a call that is under way. */
function makePatience(ms: number, tell: () => Promise<void>): { end(): Promise<void> } {
  let telling: Promise<void> | undefined;
  const timer = setTimeout(() => {
    telling = tell();
  }, ms);
  return {
    async end() {
      clearTimeout(timer);
      await telling;
    },
  };
}
