// A workspace's own view of the server, over HTTP, with its own token.
import { HoldfastError, NotFound } from "holdfast";
import type { Notice } from "../notices.ts";

export interface WorkspaceApi {
  /** What comes after this number; waits up to `wait` for something. */
  inbox(after: number, wait: string, signal: AbortSignal): Promise<Notice[]>;
  /** From this byte on. NotFound when its time is over. */
  content(fileId: string, start: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** NotFound when its time is over. */
  ack(fileId: string, signal: AbortSignal): Promise<void>;
  /** Says something in the chat; the same id again is the same message. */
  say(text: string, id: string, signal: AbortSignal): Promise<void>;
}

/** The server takes neither this token nor this workspace: asking again does not help. */
export class AccessRefused extends HoldfastError {
  readonly code = "CHAT_ACCESS_REFUSED";
}

const ANSWER_WITHIN_MS = 30_000;
const POLL_WITHIN_MS = 90_000;
/** A download that is silent for so long has broken off. */
const SILENT_MS = 30_000;

export function makeWorkspaceApi(url: string, token: string | undefined, workspace: string): WorkspaceApi {
  const root = `${url.replace(/\/+$/, "")}/workspaces/${encodeURIComponent(workspace)}`;
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function reach(path: string, request: RequestInit & { signal: AbortSignal }): Promise<Response> {
    const headers = { ...authorization, ...(request.headers as Record<string, string> | undefined) };
    // The token is for this server only.
    const response = await fetch(`${root}${path}`, { ...request, headers, redirect: "error" });
    if (response.ok) return response;
    const text = (await response.text().catch(() => "")).slice(0, 2_000);
    throw refusal(response.status, text);
  }

  const within = (ms: number, signal: AbortSignal): AbortSignal => {
    // By a timer of our own: Node 20 forgets a timeout that only any() knows of.
    const late = new AbortController();
    setTimeout(() => late.abort(new DOMException("It took too long.", "TimeoutError")), ms).unref();
    return AbortSignal.any([signal, late.signal]);
  };

  return {
    async inbox(after, wait, signal) {
      const response = await reach(`/inbox?after=${after}&wait=${wait}`, { signal: within(POLL_WITHIN_MS, signal) });
      return ((await response.json()) as { notices: Notice[] }).notices;
    },
    async *content(fileId, start, signal) {
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(new Error("The download fell silent.")), SILENT_MS);
      try {
        const response = await reach(`/pending-uploads/${encodeURIComponent(fileId)}/content`, {
          headers: start > 0 ? { range: `bytes=${start}-` } : {},
          signal: AbortSignal.any([signal, silence.signal]),
        });
        if (start > 0 && response.status !== 206) throw new Error("The server did not go on where it was asked to.");
        for await (const piece of response.body ?? []) {
          timer.refresh();
          yield piece as Uint8Array;
        }
      } finally {
        clearTimeout(timer);
      }
    },
    async ack(fileId, signal) {
      const path = `/pending-uploads/${encodeURIComponent(fileId)}/ack`;
      await (await reach(path, { method: "POST", signal: within(ANSWER_WITHIN_MS, signal) })).arrayBuffer();
    },
    async say(text, id, signal) {
      const response = await reach("/chat/messages", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ id, text }),
        signal: within(ANSWER_WITHIN_MS, signal),
      });
      await response.arrayBuffer();
    },
  };
}

function refusal(status: number, text: string): Error {
  let message = `The server answered ${status}.`;
  let hint = "";
  let code = "";
  try {
    const { error } = JSON.parse(text) as { error: { message: string; hint: string; code: string } };
    ({ message, hint, code } = error);
  } catch {
    // Not from Holdfast: a proxy, perhaps.
  }
  if (status === 404 && code === "CHAT_FILE_UNKNOWN") return new NotFound(message, hint);
  const isFinal = status === 401 || status === 403 || code === "CHAT_WORKSPACE_UNKNOWN" || code === "CHAT_WORKSPACE_ID";
  return isFinal ? new AccessRefused(message, hint) : new Error(message);
}
