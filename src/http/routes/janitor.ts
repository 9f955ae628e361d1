// /api/v1/janitor.
import type { Holdfast } from "../../client/client.ts";
import { janitorContracts } from "../contracts/janitor.ts";
import { iso } from "../job-view.ts";
import { route } from "./route.ts";

export function makeJanitorRoutes(hf: Holdfast) {
  return {
    listChores: route(janitorContracts.listChores, async () => {
      const states = new Map((await hf.janitor.states()).map((state) => [state.chore, state]));
      return {
        body: {
          chores: hf.janitor.chores.map(({ name, everyMs, deadlineMs, batchSize, budgetMs, preview, everywhere }) => {
            const state = states.get(name);
            const { failures = 0, error = null } = state ?? {};
            const canPreview = preview !== undefined;
            const times = { succeededAt: iso(state?.succeededAt ?? null), nextAt: iso(state?.nextAt ?? null) };
            return {
              name,
              everyMs,
              deadlineMs,
              batchSize,
              budgetMs,
              canPreview,
              everywhere,
              ...times,
              failures,
              error,
            };
          }),
        },
      };
    }),
    choreHistory: route(janitorContracts.choreHistory, async ({ query }) => {
      const { runs, next } = await hf.janitor.history(query);
      return { body: { runs: runs.map((run) => ({ ...run, startedAt: run.startedAt.toISOString() })), next } };
    }),
    previewChores: route(janitorContracts.previewChores, async ({ query: { chore } }) => ({
      body: { previews: await hf.janitor.preview(chore) },
    })),
    runChores: route(janitorContracts.runChores, async ({ query: { chore } }) => ({
      body: { results: await hf.janitor.run(chore) },
    })),
  };
}
