// The job whose process is killed at every step: a step, four chunks, and completion in one commit with a row of its own.
// Every write appends to `effects`, so that a second time would show. `at(place, chunk)` is told where the run is.
import { defineJob } from "../../../dist/index.js";

export const ITEMS = ["a", "b", "c", "d", "e", "f", "g"];
export const SIZE = 2;

export const TABLES = `
  create table effects (seq serial, job uuid not null, what text not null);
  create table vectors (job uuid not null, item text not null, vector integer not null, primary key (job, item));`;

export function defineEmbedding(kind, lease, at) {
  return defineJob(kind, {
    lease,
    attempts: 3,
    backoff: ["50ms"],
    async run(job) {
      const effect = (tx, what) => tx.query("insert into effects (job, what) values ($1, $2)", [job.id, what]);
      await at("claimed");
      await job.step("begin", (tx) => effect(tx, "begin"));
      for await (const chunk of job.chunks("embed", ITEMS, { size: SIZE, note: "operations" })) {
        await at("in-chunk", chunk);
        await chunk.save(async (tx) => {
          for (const item of chunk.items) {
            await effect(tx, `embed ${item}`);
            await tx.query("insert into vectors values ($1, $2, $3)", [job.id, item, item.charCodeAt(0)]);
          }
          await at("in-save", chunk);
        });
        await at("saved", chunk);
      }
      await at("before-complete");
      await job.transaction(async (tx) => {
        await effect(tx, "complete");
        await job.complete(tx, { embedded: ITEMS.length });
        await at("in-complete");
      });
      return "the result that complete() gave is the one that counts";
    },
  });
}
