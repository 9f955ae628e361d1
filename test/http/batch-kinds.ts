// Batch kinds for tests of the API.
import { defineBatch, Fatal } from "#src/index.js";
import { z } from "zod";
import { KINDS } from "./api.ts";

export const importer = defineBatch("articles.import", {
  schema: z.object({ url: z.string(), password: z.string().optional() }),
  concurrency: 3,
  attempts: 1,
  outcomes: { saved: {}, duplicate: {}, "consent-wall": { countsAs: "saved", warning: true } },
  run({ payload: { url } }) {
    if (url.startsWith("bad")) throw new Fatal(`cannot read ${url}`);
    if (url.startsWith("known")) return "duplicate";
    if (url.startsWith("wall")) return "consent-wall";
    return { outcome: "saved", result: { title: `About ${url}` } };
  },
});

/** No worker knows it: its items wait. */
export const idle = defineBatch("idle", { concurrency: 2, run: () => {} });

export const BATCH_KINDS = [...KINDS, importer, idle];

export const urls = (...names: string[]): { url: string }[] => names.map((url) => ({ url }));
export const lines = (items: readonly unknown[]): string => items.map((item) => JSON.stringify(item)).join("\n");
export const NDJSON = { "content-type": "application/x-ndjson" };
