// POST /telegram/:bot. The secret is compared before the body is read. Then the gates: who may talk to the bot, who is
// signed in. An async bot's update is enqueued under (bot, update_id), and Telegram hears 200 only after the commit;
// whatever fails before that is a 503, and Telegram sends the update again.
import { timingSafeEqual } from "node:crypto";
import {
  type AppRequest,
  type AppRoute,
  DatabaseUnavailable,
  type Holdfast,
  type JobKind,
  type JobLog,
  PayloadInvalid,
  StateConflict,
} from "holdfast";
import type { Bot, Gateway } from "./config/bot.ts";
import type { Counted, Counts } from "./counts.ts";
import { callHandler } from "./handlers/call.ts";
import { recordUpdate, say, type SendPayload } from "./messages.ts";
import { NOTICE_KIND } from "./notice.ts";
import { groupOf, type UpdatePayload } from "./run-update.ts";
import { OUT_QUEUE } from "./send.ts";
import { digest, type Sessions } from "./sessions.ts";
import { chatOf, parseUpdate, textOf, type Update, userOf } from "./update.ts";

export interface Desk {
  hf: Holdfast;
  gateway: Gateway;
  kinds: ReadonlyMap<string, JobKind<UpdatePayload>>;
  send: JobKind<SendPayload>;
  sessions: Sessions;
  counts: Counts;
  log: JobLog;
  /** False where the sample bots have no stand-in: they answer nobody. */
  isOpen: boolean;
}

const SECRET_HEADER = "x-telegram-bot-api-secret-token";
const NOBODY = digest("");

/** `deskOf`: what belongs to the client that serves the request. */
export function makeWebhook(deskOf: (hf: Holdfast) => Desk): AppRoute {
  return {
    method: "POST",
    path: "/telegram/:bot",
    auth(request, { params, hf }) {
      const { gateway, isOpen } = deskOf(hf);
      const bot = gateway.bots.get(params["bot"] ?? "");
      const shown = digest(request.headers.get(SECRET_HEADER) ?? "");
      // An unknown bot takes as long as a known one, and is answered the same.
      const isRight = timingSafeEqual(shown, bot ? digest(bot.secret) : NOBODY);
      return isRight && bot !== undefined && isOpen;
    },
    handle: (request) => take(deskOf(request.hf), request),
  };
}

async function take(desk: Desk, request: AppRequest): Promise<unknown> {
  const bot = desk.gateway.bots.get(request.params["bot"] ?? "")!;
  const update = parseUpdate(await readText(request));
  if (!update) return Response.json({ ok: false, description: "This is not an update." }, { status: 400 });
  try {
    const came = await accept(desk, bot, update);
    desk.counts.add(bot.slug, came);
    return { ok: true, came };
  } catch (error) {
    if (error instanceof PayloadInvalid) {
      // It would be redelivered for a day, and never fit.
      desk.log.error("An update cannot be stored", { bot: bot.slug, update: update.update_id, error: error.message });
      desk.counts.add(bot.slug, "unstorable");
      return { ok: true, came: "unstorable" };
    }
    desk.counts.add(bot.slug, "unavailable");
    const isExpected = error instanceof DatabaseUnavailable || error instanceof StateConflict;
    desk.log[isExpected ? "warn" : "error"]("An update was not accepted; Telegram sends it again", {
      bot: bot.slug,
      update: update.update_id,
      error: error instanceof Error ? error.message : String(error),
    });
    return Response.json({ ok: false, description: "Not now." }, { status: 503, headers: { "retry-after": "5" } });
  }
}

async function accept(desk: Desk, bot: Bot, update: Update): Promise<Counted> {
  const user = userOf(update);
  const { allowedUsers } = desk.gateway;
  if (allowedUsers && (user === null || !allowedUsers.has(user.id))) return "dropped";
  if (bot.handler === "auth") return user === null ? "dropped" : await signIn(desk, bot, update, user.id);
  if (bot.requiresAuth && (user === null || !(await desk.sessions.isSignedIn(user.id)))) {
    if (user === null) return "dropped";
    return await answer(desk, bot, update, "refused", "sign-in", desk.gateway.texts.signIn);
  }
  return bot.isAsync ? await enqueue(desk, bot, update) : await handleNow(desk, bot, update);
}

async function enqueue({ hf, kinds }: Desk, bot: Bot, update: Update): Promise<Counted> {
  const chat = chatOf(update);
  const payload: UpdatePayload = { bot: bot.slug, update };
  const { created, conflict } = await hf.enqueue(kinds.get(bot.slug)!, payload, {
    key: `${bot.slug}:${update.update_id}`,
    onDead: { kind: NOTICE_KIND, queue: OUT_QUEUE, payload },
    ...(chat === null ? {} : { group: groupOf(bot.slug, chat) }),
  });
  if (created) return "accepted";
  return conflict ? "conflict" : "duplicate";
}

/** A bot that is not async: the answer and the update's end in one commit, before Telegram hears 200. */
async function handleNow(desk: Desk, bot: Bot, update: Update): Promise<Counted> {
  const { hf, send, gateway, log } = desk;
  if (await isKnown(desk, bot, update)) return "duplicate";
  let made;
  try {
    made = await callHandler(bot, update, {
      bot: bot.slug,
      text: textOf(update),
      attempt: 1,
      // Nobody takes the work away from it: an update that Telegram no longer waits for is delivered again.
      signal: new AbortController().signal,
      log,
    });
  } catch (error) {
    log.warn("A bot failed", { bot: bot.slug, update: update.update_id, error: String(error) });
    return await answer(desk, bot, update, "failed", "failed", gateway.texts.failed);
  }
  const { text = "", commit } = made;
  const isNew = await hf.sql.transaction(async (tx) => {
    if (!(await recordUpdate(tx, { bot: bot.slug, update, state: "handled" }))) return false;
    await commit?.(tx);
    await say(hf, tx, send, { bot: bot.slug, update, purpose: "reply", text });
    return true;
  });
  hf.wake();
  return isNew ? "handled" : "duplicate";
}

async function signIn(desk: Desk, bot: Bot, update: Update, user: number): Promise<Counted> {
  if (await isKnown(desk, bot, update)) return "duplicate";
  const { texts } = desk.gateway;
  const shown = textOf(update)
    .replace(/^\/(start|auth|login)(@\w+)?\s*/, "")
    .trim();
  if (shown === "") return await answer(desk, bot, update, "refused", "sign-in", texts.signIn, HIDDEN);
  const came = await desk.sessions.signIn(user, shown);
  const text = { "signed-in": texts.signedIn, wrong: texts.wrongSecret, "too-many": texts.tooManyTries }[came];
  return await answer(desk, bot, update, came === "signed-in" ? "handled" : "refused", "sign-in", text, HIDDEN);
}

/** What is shown of a message that may hold the secret. */
const HIDDEN = "•••";

async function answer(
  { hf, send }: Desk,
  bot: Bot,
  update: Update,
  state: "handled" | "failed" | "refused",
  purpose: "sign-in" | "failed",
  text: string,
  body?: string,
): Promise<Counted> {
  const isNew = await hf.sql.transaction(async (tx) => {
    const incoming = { bot: bot.slug, update, state, ...(body === undefined ? {} : { body }) };
    if (!(await recordUpdate(tx, incoming))) return false;
    await say(hf, tx, send, { bot: bot.slug, update, purpose, text });
    return true;
  });
  hf.wake();
  return isNew ? state : "duplicate";
}

async function isKnown({ hf }: Desk, bot: Bot, update: Update): Promise<boolean> {
  const { rowCount } = await hf.sql.query(
    "select 1 from :schema.telegram_messages where bot = $1 and update_id = $2 and purpose = 'update' and part = 0",
    [bot.slug, update.update_id],
  );
  return rowCount > 0;
}

async function readText({ bytes }: AppRequest): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes()) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}
