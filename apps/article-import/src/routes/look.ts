// What the page shows: who you are, your imports, one import, its links.
import type { AppRoute, Batch, BatchItem, BatchListOptions } from "holdfast";
import { KIND } from "../kind-name.ts";
import { type DeskOf, findImport, makeRoute, noImport } from "./routes.ts";

const FILTERS: Readonly<Record<string, BatchListOptions>> = {
  all: {},
  active: { state: ["queued", "running", "paused"] },
  done: { state: ["done", "cancelled"] },
  errors: { withErrors: true },
};
const PAGE = 30;
const ITEM_PAGE = 100;

export function makeLookRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    makeRoute(deskOf, {
      method: "GET",
      path: "/me",
      answer: ({ owner, options, sample }) => ({
        owner,
        worker: !options.workerDisabled,
        maxLinks: options.maxLinks,
        sample: sample ? { url: sample.url, links: sample.links() } : null,
      }),
    }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/imports",
      async answer({ hf, owner, request: { query } }) {
        const filter = FILTERS[query.get("filter") ?? "all"] ?? {};
        const cursor = query.get("cursor");
        const { batches, next } = await hf.batches.list({
          ...filter,
          kind: KIND,
          owner,
          limit: PAGE,
          ...(cursor !== null && { cursor }),
        });
        return { imports: batches.map(toImport), next };
      },
    }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/imports/:id",
      async answer(asked) {
        const batch = await findImport(asked);
        return batch ? toImport(batch) : noImport();
      },
    }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/imports/:id/items",
      async answer(asked) {
        const { hf, request } = asked;
        const batch = await findImport(asked);
        if (!batch) return noImport();
        const state = request.query.get("state") ?? "";
        const cursor = request.query.get("cursor");
        const { items, next } = await hf.batches.items(batch.id, {
          limit: ITEM_PAGE,
          ...(state !== "" && { state }),
          ...(cursor !== null && { cursor }),
        });
        return { items: items.map(toItem), next };
      },
    }),
  ];
}

export function toImport(batch: Batch) {
  const { id, state, reason, total, counts, countedAs, warnings, ended, rate, etaMs, completions, version } = batch;
  const { createdAt, startedAt, finishedAt } = batch;
  const { name } = batch.fields;
  return {
    id,
    name: typeof name === "string" ? name : null,
    state,
    reason,
    total,
    counts,
    countedAs,
    warnings,
    ended,
    rate,
    etaMs,
    completions,
    version,
    createdAt,
    startedAt,
    finishedAt,
  };
}

function toItem({ seq, state, payload, attempt, bounces, error, result, runAt, endedAt, parcelId }: BatchItem) {
  const { url, title } = payload as { url: string; title?: string };
  const { device } = (result ?? {}) as { device?: unknown };
  return {
    seq,
    url,
    title: title ?? null,
    state,
    attempt,
    bounces,
    parcelId,
    endedAt,
    // Between two tries.
    nextAt: state === "pending" && attempt > 0 ? runAt : null,
    error: error && { code: error.code ?? error.reason ?? error.name, message: error.message.slice(0, 500) },
    device: typeof device === "string" ? device : null,
  };
}
