// Delivery to a workspace that has a callback URL: a job for each notice, one after the other within a workspace, so that
// a file is there before the message that mentions it. The URL is somebody else's choice, so it is called through the
// guard: public addresses only, checked when it connects.
import { defineJob, Fatal, Gone, type Holdfast, type JobKind, NotFound, RetryAfter } from "holdfast";
import { FetchRefused, type GuardedAnswer, type GuardedFetch } from "holdfast/guarded-fetch";
import { type FileFacts, type Notice, readNotice } from "./notices.ts";
import { Refused } from "./refused.ts";
import { findWorkspace, type Workspace } from "./workspaces.ts";

export interface PushPayload {
  workspaceId: string;
  seq: number;
}

/** What trying again cannot change. */
const HOPELESS = new Set([400, 405, 410, 411, 413, 414, 415, 422]);

export function makePush(hf: Holdfast, post: GuardedFetch): JobKind<PushPayload> {
  return defineJob<PushPayload>("chat-uploads.push", {
    queue: "chat-uploads",
    attempts: 9,
    // About 15 hours in all: a file is kept for a day.
    backoff: ["10s", "30s", "2m", "10m", "30m", "1h", "4h", "9h"],
    timeout: "15m",
    async run({ payload: { workspaceId, seq }, signal, attempt }) {
      const workspace = await findWorkspace(hf, workspaceId).catch((error: unknown) => {
        throw error instanceof Refused ? new Gone("The workspace is gone") : error;
      });
      const notice = await readNotice(hf, workspaceId, seq);
      if (!notice) throw new Gone("The notice is gone");
      if (workspace.callbackUrl === null) throw new Fatal("The workspace has no callback URL any more");
      const headers = headersOf(workspace, notice, attempt);
      if (notice.method === "chat_message") {
        const body = JSON.stringify({ method: notice.method, ...notice.body });
        await send(post, workspace.callbackUrl, { ...headers, "content-type": "application/json" }, body, signal);
        return;
      }
      await postFile(workspace.callbackUrl, notice.body, headers, signal);
    },
  });

  async function postFile(
    url: string,
    file: FileFacts,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<void> {
    const inbox = hf.inbox(headers["x-workspace-id"]!);
    const opened = await inbox.open(file.file_id).catch((error: unknown) => {
      throw error instanceof NotFound ? new Gone("The file's time is over") : error;
    });
    const sent = {
      ...headers,
      "content-type": file.mimeType === "" ? "application/octet-stream" : file.mimeType,
      "content-length": String(file.size),
      "x-file-id": file.file_id,
      "x-file-name": file.name,
      "x-file-uri": file.uri,
      "repr-digest": `sha-256=:${Buffer.from(file.sha256, "hex").toString("base64")}:`,
    };
    await send(post, url, sent, opened.stream(), signal);
    // It has said that it has it.
    await inbox.ack(file.file_id).catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error;
    });
  }
}

function headersOf({ id, callbackToken }: Workspace, { seq, method }: Notice, attempt: number): Record<string, string> {
  return {
    "x-workspace-id": id,
    "x-event": method,
    // The same in every try.
    "idempotency-key": `${id}:${seq}`,
    "x-attempt": String(attempt),
    ...(callbackToken === null ? {} : { authorization: `Bearer ${callbackToken}` }),
  };
}

async function send(
  post: GuardedFetch,
  url: string,
  headers: Record<string, string>,
  body: string | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  let answer: GuardedAnswer;
  try {
    answer = await post(url, { method: "POST", headers, body, signal });
  } catch (error) {
    // The address, not the weather.
    throw error instanceof FetchRefused ? new Fatal(error.message, { cause: error }) : error;
  }
  const { status } = answer;
  const retryAfter = answer.headers.get("retry-after") ?? "";
  answer.cancel();
  if (status >= 200 && status < 300) return;
  const message = `The workspace answered ${status}`;
  if (HOPELESS.has(status)) throw new Fatal(message);
  if ((status === 429 || status === 503) && /^\d{1,5}$/.test(retryAfter))
    throw new RetryAfter(`${Number(retryAfter)}s`, message);
  throw new Error(message);
}
