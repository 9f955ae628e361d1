// What the page shows: the bots with their counts, the last updates with where they stand, one chat as it was. Where an
// update stands is read from its job, never from a copy.
import type { Holdfast, Job } from "holdfast";
import { type Gateway, handlerName } from "./config/bot.ts";
import type { Counts } from "./counts.ts";
import { groupOf, QUEUE, type UpdatePayload } from "./run-update.ts";
import { chatOf, summaryOf, userOf } from "./update.ts";

export interface Badge {
  status: string;
  /** Of the job: to retry it. */
  job: string | null;
  attempt: number;
  maxAttempts: number;
  error: string | null;
  /** When it is tried next. */
  nextAt: string | null;
}

export interface ShownUpdate extends Badge {
  bot: string;
  update: number;
  chat: string | null;
  user: string | null;
  text: string;
  at: string;
}

export interface ShownMessage {
  id: string;
  from: "user" | "bot";
  purpose: string;
  text: string;
  state: string;
  error: string | null;
  at: string;
  update: number;
  badge: Badge | null;
}

const LISTED = 50;
const OPEN_LOOKED_AT = 200;
const SHOWN_TEXT = 500;

/** The one clock that counts: the page reckons from it when a retry is due. */
export async function databaseNow(hf: Holdfast): Promise<Date> {
  const { rows } = await hf.sql.query<{ now: Date }>("select :schema.clock() as now");
  return rows[0]!.now;
}

export async function lookAtBots(gateway: Gateway, counts: Counts): Promise<object[]> {
  const byBot = await counts.read();
  return [...gateway.bots.values()].map((bot) => ({
    bot: bot.slug,
    handler: handlerName(bot),
    async: bot.isAsync,
    requireAuth: bot.requiresAuth,
    attempts: bot.attempts,
    ladder: bot.ladder,
    counts: byBot[bot.slug] ?? {},
  }));
}

interface Row {
  id: string;
  bot: string;
  update_id: string;
  chat_id: string | null;
  user_name: string | null;
  purpose: string;
  body: string;
  state: string;
  error: string | null;
  job_id: string | null;
  created_at: Date;
}

const COLUMNS = `id::text as id, bot, update_id::text as update_id, chat_id::text as chat_id, user_name, purpose, body,
  state, error, job_id::text as job_id, created_at`;

/** Newest first: what was handled at once, and what became a job. */
export async function lookAtUpdates(hf: Holdfast): Promise<ShownUpdate[]> {
  const { jobs } = await hf.jobs.list({ queue: QUEUE, limit: LISTED });
  const { rows } = await hf.sql.query<Row>(
    `select ${COLUMNS} from :schema.telegram_messages where purpose = 'update' and job_id is null order by id desc limit $1`,
    [LISTED],
  );
  const atOnce = rows.map((row): ShownUpdate => ({
    bot: row.bot,
    update: Number(row.update_id),
    chat: row.chat_id,
    user: row.user_name,
    text: row.body.slice(0, SHOWN_TEXT),
    at: row.created_at.toISOString(),
    ...badgeOfRow(row),
  }));
  return [...jobs.map((job) => shownUpdate(job)), ...atOnce]
    .toSorted((a, b) => (a.at < b.at ? 1 : -1))
    .slice(0, LISTED);
}

/** Oldest first: the last messages of one chat, and the updates in it that wait. */
export async function lookAtChat(hf: Holdfast, bot: string, chat: string): Promise<ShownMessage[]> {
  const open = await openUpdates(hf, groupOf(bot, chat));
  const { rows } = await hf.sql.query<Row>(
    `select ${COLUMNS} from :schema.telegram_messages where bot = $1 and chat_id = $2::bigint order by id desc limit 100`,
    [bot, chat],
  );
  const shown: ShownMessage[] = [];
  const recorded = new Set<string>();
  for (const row of rows) {
    if (row.purpose === "update") recorded.add(row.update_id);
    shown.push({
      id: row.id,
      from: row.purpose === "update" ? "user" : "bot",
      purpose: row.purpose,
      text: row.body,
      state: row.state,
      error: row.error,
      at: row.created_at.toISOString(),
      update: Number(row.update_id),
      badge: row.purpose === "update" ? await badgeOf(hf, row, open) : null,
    });
  }
  for (const job of open.values()) {
    const { update } = job.payload as UpdatePayload;
    if (recorded.has(String(update.update_id))) continue;
    shown.push({
      id: job.id,
      from: "user",
      purpose: "update",
      text: summaryOf(update),
      state: "received",
      error: null,
      at: job.createdAt.toISOString(),
      update: update.update_id,
      badge: badgeOfJob(job),
    });
  }
  // What the user wrote stands where it arrived: its row may be as young as its answer.
  return shown
    .map((message) => ({ message, order: `${message.at}${message.from === "user" ? "0" : "1"}` }))
    .toSorted((a, b) => (a.order < b.order ? -1 : 1))
    .map(({ message }) => message);
}

async function openUpdates(hf: Holdfast, group: string): Promise<Map<string, Job>> {
  const state = ["pending", "running", "dead"] as const;
  const { jobs } = await hf.jobs.list({ queue: QUEUE, group, state, limit: OPEN_LOOKED_AT });
  return new Map(jobs.map((job) => [job.id, job]));
}

async function badgeOf(hf: Holdfast, row: Row, open: ReadonlyMap<string, Job>): Promise<Badge> {
  if (row.job_id === null || row.state === "handled") return badgeOfRow(row);
  const job = open.get(row.job_id) ?? (await hf.jobs.get(row.job_id));
  return job ? badgeOfJob(job) : badgeOfRow(row);
}

function badgeOfRow({ state, job_id: job }: Row): Badge {
  const status = state === "handled" ? "done" : state === "received" ? "gone" : state;
  return { status, job, attempt: 1, maxAttempts: 1, error: null, nextAt: null };
}

function badgeOfJob(job: Job): Badge {
  const { status } = job;
  return {
    status,
    job: job.id,
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    error: job.state === "done" ? null : (job.lastError?.message.split("\n")[0]?.slice(0, 300) ?? null),
    nextAt: status === "retrying" || status === "scheduled" ? job.runAt.toISOString() : null,
  };
}

function shownUpdate(job: Job): ShownUpdate {
  const { bot, update } = job.payload as UpdatePayload;
  const chat = chatOf(update);
  return {
    bot,
    update: update.update_id,
    chat: chat === null ? null : String(chat),
    user: userOf(update)?.name ?? null,
    text: summaryOf(update).slice(0, SHOWN_TEXT),
    at: job.createdAt.toISOString(),
    ...badgeOfJob(job),
  };
}
