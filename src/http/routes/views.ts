// /api/v1/views.
import type { Holdfast } from "../../client/client.ts";
import type { NewView, View } from "../../client/views.ts";
import { NotFound } from "../../errors.ts";
import type { Caller } from "../../shared/caller.ts";
import { viewContracts, type ViewBody } from "../contracts/views.ts";
import { given } from "../given.ts";
import { iso } from "../job-view.ts";
import { forbidden } from "../own.ts";
import type { ViewStreams } from "../view-streams.ts";
import { mediaRoute, route } from "./route.ts";

export function makeViewRoutes(hf: Holdfast, streams: ViewStreams) {
  async function found(view: string): Promise<View> {
    const seen = await hf.views.read(view);
    if (seen) return seen;
    throw new NotFound("There is nothing to see here, or not any more.", "Let the app give you a new view.");
  }

  /** Somebody else's batch is the same 404 as none. */
  async function checkOwner({ job, batch }: NewView, { owner }: Caller): Promise<void> {
    if (owner === null) return;
    if (job !== undefined) {
      throw forbidden("A token that is bound to an owner cannot sign a view of a job.", "Give one of its batches.");
    }
    if (batch === undefined || (await hf.batches.get(batch))?.owner === owner) return;
    throw new NotFound(`There is no batch ${batch}.`, "Check the id.");
  }

  return {
    signView: route(viewContracts.signView, async ({ body }, { caller }) => {
      const wanted = given<NewView>(body);
      await checkOwner(wanted, caller);
      const { view, expiresAt } = await hf.views.sign(wanted);
      const answer = { view, path: `/api/v1/views/${view}`, expiresAt: expiresAt.toISOString() };
      return { status: 201, body: answer };
    }),
    readView: route(viewContracts.readView, async ({ params: { view } }) => ({ body: toBody(await found(view)) })),
    watchView: mediaRoute(viewContracts.watchView, async ({ params: { view } }, { request }) => {
      const first = await found(view);
      const headers = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
      if (request.method === "HEAD") return new Response(null, { headers });
      return new Response(streams.open(view, first), { headers });
    }),
  };
}

function toBody(view: View): ViewBody {
  return { ...view, nextAt: iso(view.nextAt), startedAt: iso(view.startedAt), finishedAt: iso(view.finishedAt) };
}
