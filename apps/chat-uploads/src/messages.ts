// What was said in a chat, and which files it mentions. A message of a person is a notice for the workspace, in the same
// commit; the numbers of its files' notices are smaller, because the files were there before.
import { randomUUID } from "node:crypto";
import type { SqlTransaction } from "holdfast";
import type { Desk } from "./desk.ts";
import { addNotices, type FileFacts, uriOf } from "./notices.ts";
import { isUuid, Refused } from "./refused.ts";
import { cleanMessage, MAX_TEXT } from "./text.ts";
import type { Workspace } from "./workspaces.ts";

export interface NewMessage {
  /** Given again, it is the same message. */
  id: string;
  text: string;
  fileIds: string[];
}

export function readNewMessage(body: unknown, workspaceId: string, mostFiles: number): NewMessage {
  const given = (body !== null && typeof body === "object" ? body : {}) as Record<string, unknown>;
  const { id = randomUUID(), text = "", files = [] } = given;
  const refuse = (message: string, hint: string): Refused => new Refused(422, "CHAT_MESSAGE_INVALID", message, hint);
  if (!isUuid(id)) throw refuse("id is not a UUID.", "Leave it out, or make one.");
  if (typeof text !== "string" || text.length > MAX_TEXT) {
    throw refuse(`text is not a text of up to ${MAX_TEXT} characters.`, "Write less, or send a file.");
  }
  if (!Array.isArray(files) || files.length > mostFiles) {
    throw refuse(`files is not a list of up to ${mostFiles} URIs.`, "Send them in several messages.");
  }
  const fileIds = files.map((uri: unknown) => {
    const fileId = typeof uri === "string" ? (uri.split("/").at(-1) ?? "").toLowerCase() : "";
    // Of another workspace: as unknown as any other.
    if (!isUuid(fileId) || uri !== uriOf(workspaceId, fileId)) throw unknownFile(uri);
    return fileId;
  });
  if (new Set(fileIds).size !== fileIds.length) throw refuse("A file is mentioned twice.", "Mention each once.");
  const cleaned = cleanMessage(text);
  if (cleaned.trim() === "" && fileIds.length === 0) throw refuse("The message is empty.", "Write something.");
  return { id: id.toLowerCase(), text: cleaned, fileIds };
}

export async function addMessage(
  desk: Desk,
  { id: workspaceId, mode, callbackUrl }: Workspace,
  author: "person" | "workspace",
  { id, text, fileIds }: NewMessage,
): Promise<{ id: string; created: boolean }> {
  const { hf, push } = desk;
  const created = await hf.sql.transaction(async (tx) => {
    const { rowCount } = await tx.query(
      `insert into :schema.chat_uploads_messages (id, workspace_id, author, text, created_at)
       values ($1, $2, $3, $4, :schema.clock()) on conflict (id) do nothing`,
      [id, workspaceId, author, text],
    );
    if (rowCount === 0) {
      const { rows } = await tx.query(
        "select 1 from :schema.chat_uploads_messages where id = $1 and workspace_id = $2 and author = $3",
        [id, workspaceId, author],
      );
      if (rows.length === 0) throw idTaken(id);
      return false;
    }
    const files = await attach(tx, workspaceId, id, fileIds);
    if (author === "workspace") return true;
    const [seq] = await addNotices(tx, workspaceId, [
      { method: "chat_message", body: { message_id: id, text, files } },
    ]);
    if (mode === "push" && callbackUrl !== null) {
      const payload = { workspaceId, seq: seq! };
      await hf.enqueue(push, payload, { key: `${workspaceId}:${seq!}`, group: workspaceId, tx });
    }
    return true;
  });
  if (created) {
    hf.wake();
    desk.announcements.announce({ workspaceId, what: "message", ids: [id] });
  }
  return { id, created };
}

interface FileRow {
  id: string;
  name: string;
  type: string;
  size: string;
  sha256: string;
}

async function attach(tx: SqlTransaction, workspaceId: string, messageId: string, ids: string[]): Promise<FileFacts[]> {
  if (ids.length === 0) return [];
  const { rows } = await tx.query<FileRow>(
    `update :schema.chat_uploads_files f set message_id = $2, place = g.place
     from unnest($3::uuid[]) with ordinality as g(id, place)
     where f.id = g.id and f.workspace_id = $1 and f.message_id is null
     returning f.id, f.name, f.type, f.size::text as size, f.sha256`,
    [workspaceId, messageId, ids],
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = found.get(id);
    if (!row) throw unknownFile(uriOf(workspaceId, id));
    const { name, type: mimeType, size, sha256 } = row;
    return { file_id: id, name, mimeType, size: Number(size), uri: uriOf(workspaceId, id), sha256 };
  });
}

const idTaken = (id: string): Refused =>
  new Refused(409, "CHAT_MESSAGE_ID_TAKEN", `The id ${id} belongs to another message.`, "Leave it out, or make one.");

function unknownFile(uri: unknown): Refused {
  return new Refused(
    422,
    "CHAT_FILE_UNKNOWN",
    `${JSON.stringify(uri)?.slice(0, 200) ?? "undefined"} is no file of this workspace that waits for its message.`,
    "Upload it first; a file is sent with one message.",
  );
}
