// The transcript: what was said in each chat. A row is inserted in the commit of what it belongs to (an update's end, a
// notice), together with the job that sends it; the unique index is why each is said once.
import type { Holdfast, JobKind, SqlTransaction } from "holdfast";
import { chatOf, summaryOf, type Update, userOf } from "./update.ts";

export type Purpose = "reply" | "slow" | "gave-up" | "failed" | "sign-in";

export interface SendPayload {
  message: string;
}

/** Telegram's own limit for one message. */
const MAX_TEXT = 4_096;
/** Longer answers end here: a bot that writes a book is broken. */
const MAX_PARTS = 5;

export interface Incoming {
  bot: string;
  update: Update;
  state: "received" | "handled" | "failed" | "refused";
  jobId?: string | null;
  /** Instead of what the user wrote: secrets are not kept. */
  body?: string;
}

/** True if nothing was known of this update's end before. */
export async function recordUpdate(tx: SqlTransaction, incoming: Incoming): Promise<boolean> {
  const { bot, update, state, jobId = null, body = summaryOf(update) } = incoming;
  const { rowCount } = await tx.query(
    `insert into :schema.telegram_messages as m (bot, update_id, chat_id, user_name, purpose, body, state, job_id)
     values ($1, $2, $3, $4, 'update', $5, $6, $7)
     on conflict (bot, update_id, purpose, part) do update set state = excluded.state
       where m.state = 'received' and excluded.state <> 'received'`,
    [bot, update.update_id, chatOf(update), userOf(update)?.name ?? null, body, state, jobId],
  );
  return rowCount > 0;
}

export interface Outgoing {
  bot: string;
  update: Update;
  purpose: Purpose;
  text: string;
}

/** Inserts the message and the job that sends it, unless this was said already. True if it is new. */
export async function say(
  hf: Holdfast,
  tx: SqlTransaction,
  send: JobKind<SendPayload>,
  outgoing: Outgoing,
): Promise<boolean> {
  const { bot, update, purpose, text } = outgoing;
  const chat = chatOf(update);
  if (chat === null || text.trim() === "") return false;
  for (const [part, body] of inParts(text).entries()) {
    const { rows } = await tx.query<{ id: string }>(
      `insert into :schema.telegram_messages (bot, update_id, chat_id, purpose, part, body, state)
       values ($1, $2, $3, $4, $5, $6, 'waiting')
       on conflict (bot, update_id, purpose, part) do nothing returning id::text as id`,
      [bot, update.update_id, chat, purpose, part, body],
    );
    const id = rows[0]?.id;
    if (id === undefined) return false;
    // Not the group of the chat's updates: that one holds the update which has something to say.
    await hf.enqueue(send, { message: id }, { tx, group: `out:${bot}:${chat}` });
  }
  return true;
}

/** Not in the middle of a character, and at the end of a line where there is one. */
export function inParts(text: string): string[] {
  const parts: string[] = [];
  let rest = text.replaceAll("\0", "\ufffd").toWellFormed().trim();
  while (rest !== "" && parts.length < MAX_PARTS) {
    if (rest.length <= MAX_TEXT) {
      parts.push(rest);
      break;
    }
    const line = rest.lastIndexOf("\n", MAX_TEXT);
    let end = line > MAX_TEXT / 2 ? line : MAX_TEXT;
    if (/[\uD800-\uDBFF]/.test(rest[end - 1]!)) end -= 1;
    parts.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return parts;
}
