// A large document against an embedder that is slow, fails, hangs, miscounts and is restarted, while the server is killed with
// SIGKILL twice.
//
//   npm run storm -w apps/api-catalog                            GitHub's API, a PostgreSQL of its own
//   STORM_OPERATIONS=300 DATABASE_URL=… npm run storm -w …       a part of it, another server
//
// All the while it is searched, and the answers say truly how much is there. At the end every operation has one vector, of
// its own text; no operation was sent to the embedder more often than its failures and the kills explain; and searches find
// what a comparison with every text finds.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { superviseServer } from "../../../test/support/supervise-server.mjs";
import { readDocument } from "./document.mjs";
import { startEmbedder, vectorOf } from "./embedder.mjs";

const require = createRequire(import.meta.url);
const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const TOKEN = "a-token-of-the-storm";
const SCHEMA = "storm";
const BATCH = 32;
const SPEC = "/api-catalogs/big/specs/github";
const QUESTIONS = ["list repository issues", "delete a gist", "get emojis", "merge a pull request", "rate limit"];

/** The nth call: most are well, some are not. Single texts are questions, and are answered. */
function misbehave({ n, texts }) {
  if (texts.length === 1) return "ok";
  if (n % 11 === 4) return "fail";
  if (n % 13 === 6) return "short";
  if (n % 17 === 8) return "hang";
  if (n % 19 === 10) return "drop";
  return { slow: 150 };
}

/**
 * Throws if anything is lost, doubled, embedded too often or not found.
 * @param {{ database: string, document: string, say?: (text: string) => void }} options
 */
export async function storm({ database, document, say = () => {} }) {
  const { Client } = require("pg");
  const sql = new Client({ connectionString: database });
  await sql.connect();
  const folder = await mkdtemp(join(tmpdir(), "catalog-storm-"));
  const embedder = await startEmbedder({ behave: misbehave });
  const source = join(here, "..", "src", "index.ts");
  await writeFile(
    join(folder, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { apiCatalog } from ${JSON.stringify(source)};
     export default defineConfig({
       schema: "${SCHEMA}",
       apps: [apiCatalog({
         embedder: { provider: "ollama", url: ${JSON.stringify(embedder.url)}, model: "storm" },
         batchSize: ${BATCH}, leaseDuration: "2s", embedTimeout: "1s", attempts: 50, ladder: ["200ms"],
       })],
     });`,
  );
  const server = await superviseServer({ cwd: folder, database, token: TOKEN });
  const watch = { searches: 0, wrong: [], isOver: false };
  let watching;
  try {
    await server.ready();
    const call = makeCall(server.url);
    await call("POST", "/api-catalogs", JSON.stringify({ id: "big" }));
    const { operations: total } = await call("PUT", SPEC, document);
    say(`${total} operations uploaded (${(document.length / 1e6).toFixed(1)} MB)`);
    const emojis = await call("GET", "/api-catalogs/big/search?q=emojis&by=words");
    if (emojis.hits[0]?.path !== "/emojis") throw new Error("Not found by words before");
    watching = keepSearching(sql, call, watch);

    await embedded(sql, total * 0.25);
    server.kill();
    say("The server was killed");
    await server.ready();
    await embedded(sql, total * 0.45);
    await embedder.restart(1_000);
    say("The embedder was restarted");
    await embedded(sql, total * 0.65);
    server.kill();
    say("The server was killed again");
    await server.ready();
    await embedded(sql, total);
    await finished(call);
    watch.isOver = true;
    await watching;
    return { operations: total, ...(await judge({ sql, call, embedder, total, kills: server.kills, watch })) };
  } finally {
    watch.isOver = true;
    await watching;
    await server.stop();
    await embedder.close();
    await sql.end();
    await rm(folder, { recursive: true, force: true });
  }
}

const makeCall = (url) => async (method, path, body) => {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const answer = await fetch(url + path, { method, headers, ...(body !== undefined && { body }) });
  const content = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(content)}`);
  return content;
};

/** Whenever the server is up, a search must be answered, and say truly how much is there: as the tables do, before and after. */
async function keepSearching(sql, call, watch) {
  while (!watch.isOver) {
    try {
      const before = await readTruth(sql);
      const answer = await call("GET", "/api-catalogs/big/search?q=repository&by=both");
      watch.searches += 1;
      watch.wrong.push(...falsehoods(answer, before, await readTruth(sql)));
    } catch (error) {
      // Killed: there is nobody to answer.
      if (!/fetch failed|terminated/.test(error.message)) watch.wrong.push(error.message);
    }
    await sleep(200);
  }
}

const readTruth = async (sql) =>
  (
    await sql.query(
      `select (select count(*)::int from ${SCHEMA}.catalog_vectors) as vectors,
         (select count(*)::int from ${SCHEMA}.catalog_operations) as operations,
         (select bool_and(indexed_at is not null) from ${SCHEMA}.catalog_specs) as "isComplete"`,
    )
  ).rows[0];

function* falsehoods({ hits, isComplete, unfinished, trouble }, before, after) {
  if (hits.length === 0) yield "a search found nothing";
  if (hits.some(({ by }) => by.length === 0)) yield "a hit has no reason";
  // Between the last vector and the end of the run that saved it, all is there already.
  const isAllThere = after.isComplete || after.vectors >= after.operations;
  if (isComplete && !isAllThere) yield `a search was called complete with ${after.vectors} vectors`;
  if (!isComplete && before.isComplete) yield "a search was called incomplete when all was there";
  // A server that has not heard from the embedder yet does not know whose vectors to count.
  if (isComplete || trouble !== null) return;
  const [{ embedded: said }] = unfinished;
  if (said < before.vectors || said > after.vectors) {
    yield `a search told of ${said} vectors; there were ${before.vectors} before it and ${after.vectors} after it`;
  }
}

const count = async (sql, text) => Number((await sql.query(text)).rows[0].n);

async function embedded(sql, wanted) {
  const end = Date.now() + 180_000;
  while ((await count(sql, `select count(*) as n from ${SCHEMA}.catalog_vectors`)) < Math.floor(wanted)) {
    if (Date.now() > end) throw new Error(`Still not ${Math.floor(wanted)} vectors`);
    await sleep(30);
  }
}

async function finished(call) {
  const end = Date.now() + 60_000;
  for (;;) {
    const { jobs } = await call("GET", "/api-catalogs/big/embedding-jobs");
    if (jobs.every(({ state }) => state === "done")) return;
    if (Date.now() > end) throw new Error(`Not done: ${JSON.stringify(jobs)}`);
    await sleep(100);
  }
}

async function judge({ sql, call, embedder, total, kills, watch }) {
  const wrong = [...new Set(watch.wrong)];
  const n = await count(sql, `select count(*) as n from ${SCHEMA}.catalog_vectors`);
  const right = await count(
    sql,
    `select count(*) as n from ${SCHEMA}.catalog_vectors v join ${SCHEMA}.catalog_operations o using (spec_id, operation)
     join ${SCHEMA}.catalog_specs s on s.id = v.spec_id and s.model = v.model where v.hash = o.hash`,
  );
  if (n !== total || right !== total) wrong.push(`${n} vectors, ${right} of them right, for ${total} operations`);

  const texts = [...embedder.seen].filter(([line]) => / \//.test(line));
  if (texts.length !== total) wrong.push(`the embedder saw ${texts.length} operations`);
  const sum = (of) => texts.reduce((all, [, each]) => all + of(each), 0);
  const [sent, failed] = [sum((each) => each.sent), sum((each) => each.failed)];
  // Sent again although it had been answered well: only what a killed process had not saved yet.
  const unexplained = sum((each) => Math.max(0, each.answered - 1));
  if (unexplained > kills * BATCH) wrong.push(`${unexplained} were embedded again without a reason`);

  const contents = (await sql.query(`select operation, content from ${SCHEMA}.catalog_operations`)).rows;
  for (const question of QUESTIONS) {
    const best = nearest(question, contents);
    const path = `/api-catalogs/big/search?q=${encodeURIComponent(question)}&by=meaning&limit=1`;
    const { hits, isComplete } = await call("GET", path);
    const hit = `${hits[0]?.method} ${hits[0]?.path}`;
    if (!isComplete || !best.includes(hit)) wrong.push(`"${question}" found ${hit} instead of ${best.join(" or ")}`);
  }
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong: ${wrong.slice(0, 10).join("; ")}`);
  const { attempt } = (await call("GET", "/api-catalogs/big/embedding-jobs")).jobs[0];
  const calls = {};
  for (const { how, count: size } of embedder.calls) if (size > 1) calls[how] = (calls[how] ?? 0) + 1;
  return { sent, failed, againAfterKills: unexplained, attempts: attempt, kills, calls, searches: watch.searches };
}

/** By comparison with every text; several if they are equally near. */
function nearest(question, contents) {
  const unit = (vector) => {
    const length = Math.hypot(...vector);
    return vector.map((each) => each / length);
  };
  const wanted = unit(vectorOf(question));
  const scores = contents.map(({ operation, content }) => {
    const vector = unit(vectorOf(content));
    return { operation, score: wanted.reduce((all, each, at) => all + each * vector[at], 0) };
  });
  const best = Math.max(...scores.map(({ score }) => score));
  return scores.filter(({ score }) => score > best - 1e-5).map(({ operation }) => operation);
}

async function runAlone() {
  const { startPostgres } = await import(join(root, "test", "support", "postgres-server.mjs"));
  const say = (text) => process.stdout.write(`${text}\n`);
  const server = process.env.DATABASE_URL ? undefined : await startPostgres();
  const began = Date.now();
  try {
    const database = process.env.DATABASE_URL ?? server.url("postgres");
    const given = process.env.STORM_OPERATIONS;
    const document = await readDocument(given ? Number(given) : undefined);
    const result = await storm({ database, document, say });
    say(`${JSON.stringify(result)}; ${Math.round((Date.now() - began) / 1_000)} s`);
    say("Every operation has one vector, of its own text, and none was embedded again without a reason.");
  } finally {
    await server?.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runAlone();
