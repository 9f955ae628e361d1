// Batches: the item's type comes from its schema, the outcomes from the definition, and a batch kind is not enqueued.
import { z } from "zod";
import { defineBatch, defineJob, type Holdfast } from "#src/index.js";
import { expectType, type Same } from "./expect-type.ts";

declare const hf: Holdfast;

const imports = defineBatch("articles.import", {
  schema: z.object({ url: z.string() }),
  outcomes: { saved: {}, duplicate: {}, "consent-wall": { countsAs: "saved", warning: true } },
  handBack: { ackedAs: "saved" },
  async run(item) {
    expectType<Same<typeof item.payload, { url: string }>>();
    if (item.seq === 1) return "duplicate";
    if (item.seq === 2) return { outcome: "consent-wall", result: { words: 1 } };
    if (item.seq === 3) return await item.handBack("text");
    await item.transaction((tx) => item.complete(tx, "saved"));
    // @ts-expect-error -- not one of its outcomes
    await item.transaction((tx) => item.complete(tx, "lost"));
    return undefined;
  },
});

// @ts-expect-error -- not one of its outcomes
defineBatch("a", { outcomes: { saved: {} }, run: () => "lost" });
// @ts-expect-error -- not one of its outcomes
defineBatch("a", { outcomes: { saved: {} }, handBack: { ackedAs: "lost" }, run: () => "saved" });

void hf.batches.create(imports, [{ url: "https://a.example" }], { key: "k", total: 1 });
// @ts-expect-error -- an item has a url
void hf.batches.create(imports, [{ uri: "https://a.example" }]);
// @ts-expect-error -- a job kind is no batch kind
void hf.batches.create(defineJob("b", { run: () => undefined }), []);
// @ts-expect-error -- a batch kind is not enqueued
void hf.enqueue(imports, { url: "https://a.example" });
void hf.work([imports, defineJob("b", { run: () => undefined })]);

async function* stream(): AsyncGenerator<{ url: string }> {
  yield { url: "https://a.example" };
}
void hf.batches.create(imports, stream());
