// Workspaces for people: add one, see them; in `holdfast dev`, start and stop the sample.
import type { AppRoute } from "holdfast";
import { forPeople } from "../access.ts";
import type { DeskOf } from "../desk.ts";
import { publicFacts } from "../look.ts";
import { answering, Refused, workspaceIdOf } from "../refused.ts";
import { addWorkspace, listWorkspaces, readNewWorkspace } from "../workspaces.ts";

export function makeWorkspaceRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    {
      method: "GET",
      path: "/workspaces",
      auth: forPeople,
      handle: answering(async ({ hf }) => {
        const { sample } = deskOf(hf);
        const workspaces = (await listWorkspaces(hf)).map(publicFacts);
        return { workspaces, sample: sample ? { id: sample.id, mood: sample.mood } : null };
      }),
    },
    {
      method: "POST",
      path: "/workspaces",
      auth: forPeople,
      handle: answering(async ({ hf, json }) => {
        const added = await addWorkspace(hf, readNewWorkspace(await json()));
        return Response.json({ ...publicFacts(added), token: added.token }, { status: 201 });
      }),
    },
    {
      method: "POST",
      path: "/workspaces/:id/sample",
      auth: forPeople,
      handle: answering(async (request) => {
        const { sample } = deskOf(request.hf);
        if (!sample || sample.id !== workspaceIdOf(request)) {
          throw new Refused(409, "CHAT_NO_SAMPLE", "This is not the sample workspace.", "It is part of holdfast dev.");
        }
        const body = (await request.json()) as { mood?: unknown } | null;
        const mood = body?.mood;
        if (mood !== "running" && mood !== "stopped" && mood !== "stuck") {
          throw new Refused(422, "CHAT_MOOD", "mood is none.", "Send running, stopped or stuck.");
        }
        await sample.be(mood);
        return { id: sample.id, mood: sample.mood };
      }),
    },
  ];
}
