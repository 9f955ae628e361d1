// How much of what a comparison with every vector finds is found by pgvector, and how fast, on GitHub's API.
//
//   npm run recall -w apps/api-catalog                     with the pgvector of npm
//   DATABASE_URL=… npm run recall -w apps/api-catalog      a server's, in a schema of its own that is dropped afterwards
//   RECALL_DIMENSION=3072 …                                other dimensions (512); RECALL_COPIES=10 … a larger catalog (1)
import { performance } from "node:perf_hooks";
import { createJiti } from "jiti";
import { open, prepareApps } from "holdfast";
import { startPgvectorServer } from "./pgvector-server.mjs";
import { readDocument } from "./document.mjs";

const jiti = createJiti(import.meta.url);
const source = (path) => jiti.import(new URL(`../src/${path}`, import.meta.url).pathname);
const dimension = Number(process.env.RECALL_DIMENSION ?? 512);
const copies = Number(process.env.RECALL_COPIES ?? 1);
const QUESTIONS = 200;
const say = (text) => process.stdout.write(`${text}\n`);

const server = process.env.DATABASE_URL ? undefined : await startPgvectorServer();
const hf = await open({ database: process.env.DATABASE_URL ?? server.url, schema: "recall" });
try {
  const { apiCatalog } = await source("index.ts");
  const { parseDocument } = await source("parse/parse-document.ts");
  const { makeSpecs } = await source("specs.ts");
  const { makeModel } = await source("model.ts");
  const { makeEmbedder } = await source("embedders/options.ts");
  const { search } = await source("search.ts");
  const embedder = { provider: "lexical", dimension };
  const app = apiCatalog({ embedder, batchSize: 200, pgvector: "create" }, {});
  const kinds = await prepareApps(hf, [app]);
  const text = await readDocument();
  const document = await parseDocument(text);
  const specs = makeSpecs(hf, kinds[0]);
  await specs.makeCatalog("big", "big");
  for (let copy = 0; copy < copies; copy += 1)
    await specs.put("big", `github-${copy}`, `${text}${" ".repeat(copy)}`, document);
  const total = document.operations.length * copies;
  const count = async (where) =>
    (await hf.sql.query(`select count(*)::int as n from :schema.catalog_vectors where ${where}`)).rows[0].n;
  await hf.janitor.run("catalog-nearest");
  const worker = await hf.work(kinds);
  while ((await count("true")) < total) await new Promise((resolve) => setTimeout(resolve, 200));
  while ((await count("near is null")) > 0) await hf.janitor.run("catalog-nearest");
  await worker.stop();
  const { rows } = await hf.sql.query("select extversion as version from pg_extension where extname = 'vector'");
  const model = makeModel(makeEmbedder(embedder), 10_000);

  const step = Math.max(1, Math.floor(document.operations.length / QUESTIONS));
  const questions = document.operations.filter((_, n) => n % step === 0).map(({ summary, path }) => summary || path);
  const found = { 10: 0, 100: 0 };
  const wanted = { 10: 0, 100: 0 };
  const took = { auto: 0, off: 0 };
  for (const question of questions) {
    const lists = {};
    for (const pgvector of ["auto", "off"]) {
      const began = performance.now();
      const { hits, nearest } = await search(hf, model, {
        catalog: "big",
        text: question,
        by: "meaning",
        limit: 100,
        pgvector,
      });
      took[pgvector] += performance.now() - began;
      if (nearest !== (pgvector === "off" ? "exact" : "pgvector")) throw new Error(`Found by ${nearest}`);
      lists[pgvector] = hits;
    }
    for (const most of [10, 100]) {
      // Whoever is as near as the last of the exact list is as right.
      const exact = lists.off.slice(0, most);
      const last = exact.at(-1)?.score ?? 0;
      wanted[most] += exact.length;
      found[most] += lists.auto.slice(0, most).filter(({ score }) => score >= last - 1e-4).length;
    }
  }
  const share = (most) => (found[most] / wanted[most]).toFixed(4);
  const ms = (how) => (took[how] / questions.length).toFixed(1);
  say(
    `pgvector ${String(rows[0].version)}, ${total} operations of ${dimension} numbers, ${questions.length} questions: ` +
      `recall ${share(10)} of 10 and ${share(100)} of 100; ${ms("auto")} ms a search, ${ms("off")} ms by comparing all`,
  );
} finally {
  await hf.sql.query("drop schema :schema cascade").catch(() => undefined);
  await hf.close();
  await server?.close();
}
