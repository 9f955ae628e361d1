// The kind that sends: one job for each message, in order within a chat. Telegram knows no idempotency: if this process
// dies between Telegram's answer and the commit, the message is sent again. Everything before that is exactly once.
import { defineJob, type Holdfast, type JobKind } from "holdfast";
import type { Api } from "grammy";
import { asRetry, hopeless } from "./api.ts";
import type { SendPayload } from "./messages.ts";

export const OUT_QUEUE = "telegram-out";

interface Row {
  bot: string;
  chat_id: string;
  body: string;
  state: string;
}

export interface SenderInput {
  hf: Holdfast;
  /** undefined: there is no such bot any more. */
  apiOf(bot: string): Api | undefined;
}

export function makeSender({ hf, apiOf }: SenderInput): JobKind<SendPayload> {
  return defineJob<SendPayload>("telegram.send", {
    queue: OUT_QUEUE,
    attempts: 12,
    backoff: ["1s", "5s", "30s", "2m", "10m", "1h"],
    timeout: "2m",
    async run(job) {
      const { rows } = await hf.sql.query<Row>(
        "select bot, chat_id::text as chat_id, body, state from :schema.telegram_messages where id = $1",
        [job.payload.message],
      );
      const row = rows[0];
      // Purged, or sent by a run whose end was not heard of.
      if (row?.state !== "waiting") return;
      const api = apiOf(row.bot);
      if (!api) throw new Error(`There is no bot "${row.bot}" in the configuration`);
      let telegramId: number | null = null;
      let error: string | undefined;
      try {
        telegramId = (await api.sendMessage(row.chat_id, row.body, {}, job.signal as never)).message_id;
      } catch (thrown) {
        error = hopeless(thrown);
        if (error === undefined) throw asRetry(thrown);
        job.log.warn("A message cannot be delivered", { bot: row.bot, chat: row.chat_id, error });
      }
      await job.transaction(async (tx) => {
        await hf.sql.on(tx).query(
          `update :schema.telegram_messages
           set state = $2, error = $3, telegram_id = $4, sent_at = case when $2 = 'sent' then :schema.clock() end
           where id = $1`,
          [job.payload.message, error === undefined ? "sent" : "undeliverable", error ?? null, telegramId],
        );
        await job.complete(tx, { sent: error === undefined });
      });
    },
  });
}
