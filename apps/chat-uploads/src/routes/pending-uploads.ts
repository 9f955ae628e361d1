// GET …/pending-uploads/:file_id/content and POST …/ack: what a workspace does with a file that waits for it. An ack reads
// no content. Somebody else's file is as unknown as one that never was; that it was asked for is in the log.
import { type AppRequest, type AppRoute, NotFound } from "holdfast";
import { sendContent } from "holdfast/http";
import { forWorkspace } from "../access.ts";
import type { Desk, DeskOf } from "../desk.ts";
import { answering, fileIdOf, noSuchFile, workspaceIdOf } from "../refused.ts";

export function makePendingUploadRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    {
      method: "GET",
      path: "/workspaces/:id/pending-uploads/:file_id/content",
      auth: forWorkspace,
      handle: answering((request) => content(deskOf(request.hf), request)),
    },
    {
      method: "POST",
      path: "/workspaces/:id/pending-uploads/:file_id/ack",
      auth: forWorkspace,
      handle: answering((request) => ack(deskOf(request.hf), request)),
    },
  ];
}

async function content(desk: Desk, request: AppRequest): Promise<Response> {
  const workspaceId = workspaceIdOf(request);
  const fileId = fileIdOf(request);
  try {
    return await sendContent(desk.hf.inbox(workspaceId), fileId, request.request);
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
    await logForeign(desk, workspaceId, fileId);
    throw noSuchFile();
  }
}

async function ack(desk: Desk, request: AppRequest): Promise<unknown> {
  const workspaceId = workspaceIdOf(request);
  const fileId = fileIdOf(request);
  const inbox = desk.hf.inbox(workspaceId);
  const known = await inbox.get(fileId);
  if (!known || known.state === "expired") {
    await logForeign(desk, workspaceId, fileId);
    // Fetched in time, and swept before the ack came.
    if (known?.reason === "fetched, never acked") return { acked: true, raced: true };
    throw noSuchFile();
  }
  try {
    const { gone } = await inbox.ack(fileId);
    return gone ? { acked: true, raced: true } : { acked: true };
  } catch (error) {
    if (error instanceof NotFound) return { acked: true, raced: true };
    throw error;
  }
}

async function logForeign({ hf, log }: Desk, workspaceId: string, fileId: string): Promise<void> {
  const { rows } = await hf.sql.query<{ owner: string }>(
    "select workspace_id as owner from :schema.chat_uploads_files where id = $1 and workspace_id <> $2",
    [fileId, workspaceId],
  );
  if (rows[0]) log.warn("A workspace asked for a file of another one", { workspaceId, fileId, owner: rows[0].owner });
}
