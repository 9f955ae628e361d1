// /api/v1/actions.
import type { Holdfast } from "../../client/client.ts";
import type { JobFilterOptions } from "../../client/job-filter.ts";
import { NotFound } from "../../errors.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import type { Action } from "../../store/actions/rows.ts";
import { actionContracts, type ActionView } from "../contracts/actions.ts";
import { makeEyes } from "../eyes.ts";
import { given } from "../given.ts";
import { iso } from "../job-view.ts";
import { refuseHidden } from "../refuse-hidden.ts";
import { route } from "./route.ts";

export function makeActionRoutes(hf: Holdfast, kinds: readonly AnyJobKind[]) {
  const eyesOf = makeEyes(kinds);
  return {
    startAction: route(
      actionContracts.startAction,
      async ({ body: { verb, filter, perMinute, title } }, { caller }) => {
        refuseHidden(filter, eyesOf(caller));
        const action = await hf.actions.start({
          verb,
          filter: given<JobFilterOptions>(filter),
          perMinute: perMinute ?? undefined,
          title: title ?? undefined,
          by: caller.name,
        });
        return { status: 201, body: toView(action) };
      },
    ),
    listActions: route(actionContracts.listActions, async ({ query }) => {
      const { actions, next } = await hf.actions.list(query);
      return { body: { actions: actions.map(toView), next } };
    }),
    readAction: route(actionContracts.readAction, async ({ params: { id } }) => {
      const action = await hf.actions.get(id);
      if (!action) throw new NotFound(`There is no action ${id}.`, "Actions are kept for 90 days; check the id.");
      return { body: toView(action) };
    }),
    cancelAction: route(actionContracts.cancelAction, async ({ params: { id } }) => ({
      body: toView(await hf.actions.cancel(id)),
    })),
  };
}

function toView({
  id,
  verb,
  title,
  state,
  askedBy,
  perMinute,
  done,
  skipped,
  expected,
  error,
  ...times
}: Action): ActionView {
  const rest = { id, verb, title, state, askedBy, perMinute, done, skipped, expected, error };
  return { ...rest, createdAt: times.createdAt.toISOString(), finishedAt: iso(times.finishedAt) };
}
