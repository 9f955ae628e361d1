// Pause, resume, cancel, retry, delete; and that a page may be imported again.
import type { AppRoute } from "holdfast";
import { canonicalise } from "../links/canonical.ts";
import { toImport } from "./look.ts";
import { type Asked, bodyOf, type DeskOf, findImport, makeRoute, noImport, refuse } from "./routes.ts";

const MOST_FORGOTTEN = 1_000;

export function makeActRoutes(deskOf: DeskOf): AppRoute[] {
  const verb = (name: string, act: (asked: Asked, id: string, by: string) => Promise<unknown>): AppRoute =>
    makeRoute(deskOf, {
      method: "POST",
      path: `/imports/:id/${name}` as const,
      async answer(asked) {
        const batch = await findImport(asked);
        if (!batch) return noImport();
        return await act(asked, batch.id, asked.request.caller?.name ?? asked.owner);
      },
    });
  return [
    verb("pause", async ({ hf }, id, by) => toImport(await hf.batches.pause(id, { by }))),
    verb("resume", async ({ hf }, id, by) => toImport(await hf.batches.resume(id, { by }))),
    verb("cancel", async ({ hf }, id, by) => toImport(await hf.batches.cancel(id, { by }))),
    verb("retry-failed", async ({ hf }, id, by) => {
      const { retried, batch } = await hf.batches.retryFailed(id, { by });
      return { ...toImport(batch), retried };
    }),
    makeRoute(deskOf, {
      method: "POST",
      path: "/imports/:id/items/:seq/retry",
      async answer(asked) {
        const batch = await findImport(asked);
        const seq = Number(asked.request.params["seq"]);
        if (!batch || !Number.isSafeInteger(seq) || seq < 1) return noImport();
        const by = asked.request.caller?.name ?? asked.owner;
        const { retried } = await asked.hf.batches.retryFailed(batch.id, { by, seqs: [seq] });
        return { retried };
      },
    }),
    makeRoute(deskOf, {
      method: "DELETE",
      path: "/imports/:id",
      async answer(asked) {
        const batch = await findImport(asked);
        if (batch) await asked.hf.batches.delete(batch.id, { by: asked.request.caller?.name ?? asked.owner });
        return { deleted: batch !== undefined };
      },
    }),
    makeRoute(deskOf, {
      method: "POST",
      path: "/forget",
      async answer(asked) {
        const { urls } = await bodyOf(asked);
        if (!Array.isArray(urls) || urls.length > MOST_FORGOTTEN || !urls.every((url) => typeof url === "string")) {
          return refuse(
            422,
            "URLS_INVALID",
            `urls is a list of up to ${MOST_FORGOTTEN} addresses.`,
            "Split a longer list.",
          );
        }
        const known = urls.map((url) => canonicalise(url)).flatMap((each) => ("url" in each ? [each.url] : []));
        await asked.library.forget(asked.owner, known);
        return { forgotten: known.length };
      },
    }),
  ];
}
