// GET /workspaces/:id/inbox?after=SEQ&wait=25s: what a workspace is told, after the last that it has dealt with. It waits
// until there is something. Asking is also the sign of life that senders see.
import { type AppRequest, type AppRoute, durationMs } from "holdfast";
import { forWorkspace } from "../access.ts";
import type { Desk, DeskOf } from "../desk.ts";
import { type Notice, readNotices } from "../notices.ts";
import { answering, Refused, workspaceIdOf } from "../refused.ts";
import { findWorkspace } from "../workspaces.ts";

const LONGEST_WAIT_MS = 60_000;
const LOOK_EVERY_MS = 2_000;
const PAGE = 100;

export function makeInboxRoute(deskOf: DeskOf): AppRoute {
  return {
    method: "GET",
    path: "/workspaces/:id/inbox",
    auth: forWorkspace,
    handle: answering(async (request) => {
      const desk = deskOf(request.hf);
      const { id } = await findWorkspace(desk.hf, workspaceIdOf(request));
      const after = readNumber(request.query.get("after") ?? "0");
      const notices = await waitFor(desk, id, after, readWait(request.query.get("wait")), request);
      return { notices: notices.map((notice) => ({ ...notice, activity_type: "a2a_receive" })) };
    }),
  };
}

async function waitFor(
  { hf, announcements }: Desk,
  id: string,
  after: number,
  waitMs: number,
  { request: { signal }, caller }: AppRequest,
): Promise<Notice[]> {
  const until = performance.now() + waitMs;
  for (;;) {
    // Listening before looking: what is announced in between is heard.
    const pause = Math.min(until - performance.now(), LOOK_EVERY_MS * (0.75 + Math.random() / 2));
    const { heard, cancel } = announcements.next(id, Math.max(0, pause), signal);
    try {
      // A person who looks is no sign of the workspace's life.
      if (caller?.recipient === id) await hf.inbox(id).arrival({ timeoutMs: 0 });
      const notices = await readNotices(hf, id, after, PAGE);
      if (notices.length > 0 || pause <= 0 || signal.aborted || announcements.isClosed) return notices;
      await heard;
    } finally {
      cancel();
    }
  }
}

function readNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Refused(400, "CHAT_AFTER", `after is ${JSON.stringify(text.slice(0, 40))}.`, "Give the seq of a notice.");
}

function readWait(text: string | null): number {
  if (text === null) return 0;
  try {
    return Math.min(durationMs("wait", text), LONGEST_WAIT_MS);
  } catch {
    throw new Refused(400, "CHAT_WAIT", `wait is ${JSON.stringify(text.slice(0, 40))}.`, 'Give "25s", say.');
  }
}
