// What follows when an update is given up: a job that was inserted in the commit of the death. It tells the user, once,
// also if somebody retries the dead job and it dies again.
import { defineJob, type Holdfast, type JobKind } from "holdfast";
import type { Texts } from "./config/bot.ts";
import { recordUpdate, say, type SendPayload } from "./messages.ts";
import type { UpdatePayload } from "./run-update.ts";
import { OUT_QUEUE } from "./send.ts";

export const NOTICE_KIND = "telegram.gave-up";

interface NoticePayload {
  job: { id: string };
  payload: UpdatePayload;
}

export function makeNotice(hf: Holdfast, texts: Texts, send: JobKind<SendPayload>): JobKind<NoticePayload> {
  return defineJob<NoticePayload>(NOTICE_KIND, {
    queue: OUT_QUEUE,
    async run(job) {
      const { bot, update } = job.payload.payload;
      await job.transaction(async (tx) => {
        const sql = hf.sql.on(tx);
        await recordUpdate(sql, { bot, update, state: "received", jobId: job.payload.job.id });
        const told = await say(hf, sql, send, { bot, update, purpose: "gave-up", text: texts.gaveUp });
        await job.complete(tx, { told });
      });
      hf.wake();
    },
  });
}
