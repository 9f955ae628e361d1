// Embeds what is missing of one spec, chunk by chunk, and makes it canonical in one commit.
//
// What is missing is what has no vector of its present text, model and epoch: an attempt that failed leaves the chunks
// before, and the next one goes on behind them, also when all is embedded again by force. While the model stays, new vectors
// are seen at once; those of another model are seen when all of them are there.
import { type Duration, Gone, type Holdfast, type JobContext } from "holdfast";
import type { Model } from "./model.ts";
import type { PgvectorUse } from "./pgvector/chore.ts";
import { copySaved } from "./pgvector/copy-saved.ts";
import { countMissing, type MissingOperation, readMissing, saveVectors } from "./vectors.ts";

export interface EmbedPayload {
  spec: string;
  catalog: string;
  revision: string;
  epoch: string;
}

export interface EmbedTools {
  hf: Holdfast;
  model: Model;
  batchSize: number;
  embedTimeout: Duration;
  pgvector: PgvectorUse;
}

interface SpecNow {
  revision: string;
  epoch: string;
}

export async function embedSpec(job: JobContext<EmbedPayload>, tools: EmbedTools): Promise<void> {
  const { hf, model, batchSize, embedTimeout, pgvector } = tools;
  const { spec } = job.payload;
  const { rows } = await hf.sql.query<SpecNow>(
    "select revision::text, epoch::text from :schema.catalog_specs where id = $1",
    [spec],
  );
  const began = rows[0];
  if (!began) throw new Gone("The spec was deleted.");
  const label = await model.label(job.signal);
  const generation = await job.generation(`catalog ${spec}`);
  const missing = await readMissing(hf.sql, { spec, model: label, epoch: began.epoch });
  const key = ({ hash }: MissingOperation): string => `${began.epoch} ${label} ${hash}`;
  const options = { size: batchSize, callTimeout: embedTimeout, key, note: "operations to embed" };
  for await (const chunk of job.chunks("embed", missing, options)) {
    const vectors = await chunk.call((items, signal) =>
      model.embed(
        label,
        items.map(({ content }) => content),
        signal,
        chunk.start,
      ),
    );
    if (vectors === undefined) continue;
    await chunk.save((tx) =>
      saveVectors(hf.sql.on(tx), {
        spec,
        model: label,
        epoch: began.epoch,
        generation: generation.number,
        items: chunk.items,
        vectors,
        try: { job: job.id, attempt: job.attempt },
      }),
    );
    if (pgvector !== "off") await copySaved(hf, { spec, label, limit: chunk.items.length });
  }
  await job.transaction(async (tx) => {
    const sql = hf.sql.on(tx);
    const now = (
      await sql.query<SpecNow>(
        "select revision::text, epoch::text from :schema.catalog_specs where id = $1 for update",
        [spec],
      )
    ).rows[0];
    if (!now) throw new Gone("The spec was deleted while it was being embedded.");
    const left = await countMissing(sql, { spec, model: label, epoch: now.epoch });
    const isEdited = now.revision !== began.revision || now.epoch !== began.epoch;
    if (left > 0 && !isEdited) throw new Error(`${left} operations have no vector after all were embedded.`);
    // Edited meanwhile: whoever did asked for another run, and what was seen stays until that one ends.
    await sql.query("update :schema.catalog_specs set fruitful_job_id = null, fruitful_attempt = null where id = $1", [
      spec,
    ]);
    if (left === 0 && (await generation.makeCurrent(tx))) await replace(sql, spec, label);
    await job.complete(tx, { embedded: missing.length, left });
  });
}

/** The canonical state: one model, and nothing that left the document. */
async function replace(sql: ReturnType<Holdfast["sql"]["on"]>, spec: string, label: string): Promise<void> {
  await sql.query(
    `update :schema.catalog_specs
     set model = $2, indexed_at = :schema.clock(), failures = 0, parked_until_at = null, parked_job_id = null where id = $1`,
    [spec, label],
  );
  await sql.query(
    `delete from :schema.catalog_vectors v where v.spec_id = $1 and (v.model <> $2 or not exists (
       select 1 from :schema.catalog_operations o where o.spec_id = v.spec_id and o.operation = v.operation))`,
    [spec, label],
  );
}
