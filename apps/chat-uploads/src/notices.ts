// What a workspace is told, numbered in the order in which it became visible. A reader asks for what comes after the last
// number that it has dealt with, and can neither miss nor skip one.
import type { Holdfast, SqlTransaction } from "holdfast";
import { noSuchWorkspace } from "./refused.ts";

export interface FileFacts {
  file_id: string;
  name: string;
  mimeType: string;
  size: number;
  uri: string;
  sha256: string;
}

export interface MessageFacts {
  message_id: string;
  text: string;
  files: FileFacts[];
}

export type NewNotice =
  { method: "chat_upload_receive"; body: FileFacts } | { method: "chat_message"; body: MessageFacts };

export type Notice = NewNotice & { seq: number; created_at: string };

export const uriOf = (workspaceId: string, fileId: string): string => `platform-pending:${workspaceId}/${fileId}`;

/** Returns their numbers. From here to the commit nobody else adds one for this workspace. */
export async function addNotices(tx: SqlTransaction, workspaceId: string, notices: NewNotice[]): Promise<number[]> {
  const { rows } = await tx.query<{ last: string }>(
    `update :schema.chat_uploads_workspaces set last_notice = last_notice + $2 where id = $1
     returning last_notice::text as last`,
    [workspaceId, notices.length],
  );
  if (!rows[0]) throw noSuchWorkspace();
  const first = Number(rows[0].last) - notices.length + 1;
  const numbered = notices.map((notice, index) => ({ ...notice, seq: first + index }));
  await tx.query(
    `insert into :schema.chat_uploads_notices (workspace_id, seq, method, body, created_at)
     select $1::uuid, n.seq, n.method, n.body, :schema.clock()
     from jsonb_to_recordset($2::jsonb) as n(seq bigint, method text, body jsonb)`,
    [workspaceId, JSON.stringify(numbered)],
  );
  return numbered.map(({ seq }) => seq);
}

export async function readNotices(hf: Holdfast, workspaceId: string, after: number, limit: number): Promise<Notice[]> {
  const { rows } = await hf.sql.query<{ seq: string; method: Notice["method"]; body: never; created_at: Date }>(
    `select n.seq::text as seq, n.method, n.body, n.created_at from :schema.chat_uploads_notices n
     where n.workspace_id = $1 and n.seq > $2::bigint order by n.seq limit $3`,
    [workspaceId, String(after), limit],
  );
  return rows.map(({ seq, method, body, created_at }) => ({
    seq: Number(seq),
    method,
    body,
    created_at: created_at.toISOString(),
  }));
}

export async function readNotice(hf: Holdfast, workspaceId: string, seq: number): Promise<Notice | undefined> {
  return (await readNotices(hf, workspaceId, seq - 1, 1)).find((notice) => notice.seq === seq);
}
