// The chat as the page shows it: the last messages, their files, and for each file where it stands.
import type { Holdfast, Parcel } from "holdfast";
import type { Desk } from "./desk.ts";
import { fileStatus } from "./file-status.ts";
import { uriOf } from "./notices.ts";
import type { Workspace } from "./workspaces.ts";

const MESSAGES = 50;
const PARCELS = 500;

interface MessageRow {
  id: string;
  author: "person" | "workspace";
  text: string;
  created_at: Date;
}

interface FileRow {
  id: string;
  message_id: string;
  name: string;
  type: string;
  size: string;
  push_job_id: string | null;
}

export async function lookAtChat(desk: Desk, workspace: Workspace): Promise<object> {
  const { hf, offlineAfterMs } = desk;
  const { id: workspaceId } = workspace;
  const [now, messages, stats] = await Promise.all([
    databaseNow(hf),
    lastMessages(hf, workspaceId),
    hf.inbox(workspaceId).stats(),
  ]);
  const files = await filesOf(hf, messages);
  const parcels = await parcelsOf(hf, workspaceId, files);
  const shown = new Map<string, object[]>();
  for (const file of files) {
    const parcel = parcels.get(file.id);
    const isOpen = parcel?.state === "waiting" || parcel?.state === "fetched";
    const job = isOpen && file.push_job_id !== null ? await hf.jobs.get(file.push_job_id) : undefined;
    const status = fileStatus({ parcel, job, polledAt: stats.polledAt, now, offlineAfterMs });
    const of = shown.get(file.message_id) ?? [];
    shown.set(file.message_id, of);
    const { id, name, type, size } = file;
    of.push({ id, uri: uriOf(workspaceId, id), name, mimeType: type, size: Number(size), status });
  }
  const silentMs = stats.polledAt === null ? null : now.getTime() - stats.polledAt.getTime();
  return {
    now,
    workspace: {
      ...publicFacts(workspace),
      polledAt: stats.polledAt,
      isThere: silentMs !== null && silentMs < offlineAfterMs,
      waiting: stats.waiting + stats.fetched,
      stuck: stats.stuck?.message ?? null,
    },
    messages: messages.map(({ id, author, text, created_at: at }) => ({
      id,
      author,
      text,
      at,
      files: shown.get(id) ?? [],
    })),
  };
}

/** Without what nobody has to see. */
export function publicFacts({ id, name, mode, callbackUrl, createdAt }: Workspace): object {
  const callback = callbackUrl === null ? null : new URL(callbackUrl).host;
  return { id, name, delivery_mode: mode, callback, createdAt };
}

export async function databaseNow(hf: Holdfast): Promise<Date> {
  return (await hf.sql.query<{ now: Date }>("select :schema.clock() as now")).rows[0]!.now;
}

async function lastMessages(hf: Holdfast, workspaceId: string): Promise<MessageRow[]> {
  const { rows } = await hf.sql.query<MessageRow>(
    `select id, author, text, created_at from :schema.chat_uploads_messages
     where workspace_id = $1 order by created_at desc, id desc limit ${MESSAGES}`,
    [workspaceId],
  );
  return rows.toReversed();
}

async function filesOf(hf: Holdfast, messages: MessageRow[]): Promise<FileRow[]> {
  if (messages.length === 0) return [];
  const { rows } = await hf.sql.query<FileRow>(
    `select id, message_id, name, type, size::text as size, push_job_id from :schema.chat_uploads_files
     where message_id = any($1::uuid[]) order by message_id, place`,
    [messages.map(({ id }) => id)],
  );
  return rows;
}

/** The newest in one question; what is older, one by one. */
async function parcelsOf(hf: Holdfast, workspaceId: string, files: FileRow[]): Promise<Map<string, Parcel>> {
  if (files.length === 0) return new Map();
  const inbox = hf.inbox(workspaceId);
  const { parcels } = await inbox.list({ order: "newest", limit: Math.min(PARCELS, files.length + 50) });
  const known = new Map(parcels.map((parcel) => [parcel.id, parcel]));
  for (const { id } of files) {
    if (known.has(id)) continue;
    const parcel = await inbox.get(id);
    if (parcel) known.set(id, parcel);
  }
  return known;
}
