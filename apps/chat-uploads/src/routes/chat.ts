// The chat: what was said, with where each file stands; and saying something. Whoever has the workspace's own token speaks
// for the workspace.
import type { AppRoute } from "holdfast";
import { forWorkspace } from "../access.ts";
import type { DeskOf } from "../desk.ts";
import { limitsOf } from "../limits.ts";
import { lookAtChat } from "../look.ts";
import { addMessage, readNewMessage } from "../messages.ts";
import { answering, workspaceIdOf } from "../refused.ts";
import { findWorkspace } from "../workspaces.ts";

export function makeChatRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    {
      method: "GET",
      path: "/workspaces/:id/chat",
      auth: forWorkspace,
      handle: answering(async (request) => {
        const desk = deskOf(request.hf);
        return await lookAtChat(desk, await findWorkspace(desk.hf, workspaceIdOf(request)));
      }),
    },
    {
      method: "POST",
      path: "/workspaces/:id/chat/messages",
      auth: forWorkspace,
      handle: answering(async (request) => {
        const desk = deskOf(request.hf);
        const workspace = await findWorkspace(desk.hf, workspaceIdOf(request));
        const most = limitsOf(desk.hf).max_attachments_per_message;
        const message = readNewMessage(await request.json(), workspace.id, most);
        const author = request.caller?.recipient === workspace.id ? "workspace" : "person";
        const { id, created } = await addMessage(desk, workspace, author, message);
        return Response.json({ id }, { status: created ? 201 : 200 });
      }),
    },
  ];
}
