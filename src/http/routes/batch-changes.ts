// /api/v1/batches/changes and /commands.
import type { ChangesOptions } from "../../batches/changes.ts";
import type { Holdfast } from "../../client/client.ts";
import { OptionInvalid } from "../../errors.ts";
import { isBatchKind } from "../../job/define-batch.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import type { Caller } from "../../shared/caller.ts";
import { toChangesView } from "../batch-view.ts";
import { batchChangeContracts } from "../contracts/batch-changes.ts";
import type { ChangeStreams } from "../change-streams.ts";
import { makeEyes } from "../eyes.ts";
import { given } from "../given.ts";
import { refuseOtherOwner } from "../own.ts";
import { mediaRoute, route } from "./route.ts";

export function makeBatchChangeRoutes(hf: Holdfast, kinds: readonly AnyJobKind[], streams: ChangeStreams) {
  const batchKinds = kinds.filter(isBatchKind);
  const eyesOf = makeEyes(kinds);
  return {
    listChanges: route(batchChangeContracts.listChanges, async ({ query: { owner, ...rest } }, { caller }) => {
      const options = given<ChangesOptions>({ ...rest, owner: ownerOf(owner, caller) });
      return { body: toChangesView(await hf.batches.changes(options), eyesOf(caller)) };
    }),
    streamChanges: mediaRoute(batchChangeContracts.streamChanges, async ({ query }, { caller, request }) => {
      const owner = ownerOf(query.owner, caller);
      const headers = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
      // A HEAD is a question about the headers; a stream that nobody reads would stay open.
      if (request.method === "HEAD") return new Response(null, { headers });
      const since = request.headers.get("last-event-id") ?? query.since;
      return new Response(await streams.open({ owner, since, eyes: eyesOf(caller) }), { headers });
    }),
    applyCommands: route(batchChangeContracts.applyCommands, async ({ body }, { caller }) => {
      const owner = ownerOf(body.owner ?? undefined, caller);
      if (owner === undefined) throw new OptionInvalid("The body has no owner.", "Say whose batches they are about.");
      const { client, commands } = body;
      return { body: await hf.batches.apply({ owner, client, commands, kinds: batchKinds }) };
    }),
  };
}

function ownerOf(asked: string | undefined, caller: Caller): string | undefined {
  refuseOtherOwner(asked ?? caller.owner, caller);
  return asked ?? caller.owner ?? undefined;
}
