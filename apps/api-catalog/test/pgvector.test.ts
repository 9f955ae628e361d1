// Search with pgvector, on real ones: the one of npm (PGlite), and a server's if TEST_PGVECTOR_URL names one (a superuser's, of a
// server that has the extension; a database is made and dropped). What it finds is what a comparison with all finds, and
// whatever happens to the extension, nobody sees an error.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "pg";
import type { Holdfast, SqlTransaction } from "holdfast";
import { openTest } from "holdfast/testing";
import { makeEmbedder } from "../src/embedders/options.ts";
import { makeModel, type Model } from "../src/model.ts";
import { findPgvector, indexedAs, readAvailable, vectorModelOf, whyNot } from "../src/pgvector/detect.ts";
import { fillNear } from "../src/pgvector/fill.ts";
import { readNearest } from "../src/pgvector/nearest.ts";
import { makeIndex } from "../src/pgvector/prepare.ts";
import { search } from "../src/search.ts";
import { startEmbedder } from "../storm/embedder.mjs";
import { startPgvectorServer } from "../storm/pgvector-server.mjs";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { until } from "../../../test/support/until.ts";
import { CATALOG, makeDocument, openScene, type Scene } from "./scene.ts";

const SERVER = process.env["TEST_PGVECTOR_URL"];
const DIMENSION = 64;
const LABEL = `ollama:tiny:${DIMENSION}`;
const COUNT = 1_050;
const WORDS = "invoice refund customer parcel tariff ledger harbour violin copper meadow signal lantern".split(" ");
/** Texts of a few words out of many, with some that are in many of them: as texts are. */
const about = (n: number): string =>
  [1, 2, 3, 4].map((each) => `w${(n * 7_919 * each + each * 104_729) % 997}`).join(" ") + ` ${WORDS[n % WORDS.length]}`;
const ZEBRA = "GET things 0007 reads the zebra of Zanzibar";
const QUESTIONS = [3, 77, 512, 700, 901].map(about);

interface Place {
  url: string;
  close(): Promise<void>;
}

async function onServer(): Promise<Place> {
  const name = `pgvector_${randomUUID().slice(0, 8)}`;
  const run = async (text: string): Promise<void> => {
    const client = new Client({ connectionString: SERVER });
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  };
  await run(`create database ${name}`);
  const url = new URL(SERVER!);
  url.pathname = `/${name}`;
  return { url: url.href, close: () => run(`drop database ${name} with (force)`) };
}

const PLACES: [string, (() => Promise<Place>) | undefined][] = [
  ["the one of npm", startPgvectorServer],
  [
    SERVER === undefined ? "a server: TEST_PGVECTOR_URL is not set" : "a server",
    SERVER === undefined ? undefined : onServer,
  ],
];

describe.each(PLACES)("pgvector (%s)", (where, start) => {
  if (!start) {
    test.skip(where);
    return;
  }
  let place: Place;
  let hf: Holdfast;
  let scene: Scene;
  let model: Model;
  let embedder: Awaited<ReturnType<typeof startEmbedder>>;

  beforeAll(async () => {
    place = await start();
    hf = await openTest({ database: place.url });
    embedder = await startEmbedder({ dimension: DIMENSION });
    const provided = { provider: "ollama", url: embedder.url, model: "tiny" } as const;
    scene = await openScene(hf, { embedder: provided, batchSize: 200, reconcileEvery: "1h" });
    model = makeModel(makeEmbedder(provided)!, 5_000);
  }, 60_000);
  afterAll(async () => {
    await scene?.stopWork();
    await embedder?.close();
    await hf?.close();
    await place?.close();
  });

  const put = (name: string, document: object, catalog = CATALOG) =>
    scene.call("PUT", `/${catalog}/specs/${name}`, document);
  const names = async (catalog: string, text: string, pgvector: "auto" | "off") => {
    const { hits, nearest } = await search(hf, model, { catalog, text, by: "meaning", limit: 50, pgvector });
    return { nearest, hits: hits.map(({ spec, path }) => `${spec} ${path}`), scores: hits.map(({ score }) => score) };
  };
  const equalsExact = async (catalog = CATALOG): Promise<void> => {
    for (const text of QUESTIONS) {
      const [near, exact] = [await names(catalog, text, "auto"), await names(catalog, text, "off")];
      expect([near.nearest, exact.nearest]).toEqual(["pgvector", "exact"]);
      expect(near.hits).toHaveLength(50);
      // Of those that are equally near as the last, any is right.
      expect(near.scores, text).toEqual(exact.scores.map((score) => expect.closeTo(score, 3)));
      const nearer = exact.hits.filter((_, at) => exact.scores[at]! > exact.scores.at(-1)! + 0.001);
      expect(near.hits, text).toEqual(expect.arrayContaining(nearer));
    }
  };
  const lacking = async (label = LABEL): Promise<number> =>
    (
      await hf.sql.query<{ n: number }>(
        "select count(*)::int as n from :schema.catalog_vectors where model = $1 and near is null",
        [label],
      )
    ).rows[0]!.n;
  /** The chore prepares and begins; it rests between its steps, and a test does not wait for that. */
  const filled = async (): Promise<void> => {
    const before = await lacking().catch(() => Infinity);
    await hf.janitor.run("catalog-nearest");
    expect(await lacking()).toBeLessThanOrEqual(Math.max(0, before - 1));
    const known = vectorModelOf(LABEL);
    const pgvector = (await findPgvector(hf.sql, known))!;
    while ((await fillNear(hf, pgvector, { model: known, limit: 500 })) > 0);
    expect(await lacking()).toBe(0);
  };
  const indexes = async (): Promise<string[]> =>
    (
      await hf.sql.query<{ label: string }>(
        `select obj_description(indexrelid, 'pg_class') as label from pg_index join pg_class c on c.oid = indexrelid
         where indrelid = to_regclass(':schema.catalog_vectors') and relname like 'catalog_near_%' order by 1`,
      )
    ).rows.map(({ label }) => label);
  const health = async () => (await scene.call("GET", `/${CATALOG}/embedding-health`)).body.pgvector;

  test("a database that got it later: searched without it, then prepared, filled and used", async () => {
    await put("things", makeDocument(COUNT, about));
    await scene.reaches("things", "indexed", 60_000);
    expect(await health()).toMatchObject({ version: null, why: expect.stringMatching(/create extension vector/) });
    expect((await names(CATALOG, "copper", "auto")).nearest).toBe("exact");

    await hf.sql.query('create schema "Ext of others"');
    await hf.sql.query('create extension vector schema "Ext of others"');
    expect(await health()).toMatchObject({ version: null, why: expect.stringMatching(/not prepared it yet/) });
    await filled();
    expect(await health()).toMatchObject({ version: expect.stringMatching(/^0\.\d/), why: null });
    expect(await indexes()).toEqual([LABEL]);
    await equalsExact();
    const { body } = await scene.call("GET", `/${CATALOG}/search?q=copper&by=meaning`);
    expect(body).toMatchObject({ nearest: "pgvector", isComplete: true });
  }, 60_000);

  test("the index is what it is found by", async () => {
    const known = vectorModelOf(LABEL);
    const wanted = (await model.embedQuery("copper", AbortSignal.timeout(1_000))).vectors[0]!;
    const { rows } = await hf.sql.query<{ id: string }>("select id from :schema.catalog_specs");
    const plans: string[] = [];
    await hf.sql.transaction(async (tx) => {
      const explaining: SqlTransaction = {
        async query<Row>(text: string, values?: readonly unknown[]) {
          if (!text.includes("order by")) return await tx.query<Row>(text, values);
          // Small tables are read whole otherwise.
          await tx.query("select set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)");
          const explained = await tx.query<{ "QUERY PLAN": string }>(`explain ${text}`, values);
          plans.push(explained.rows.map((row) => row["QUERY PLAN"]).join("\n"));
          return await tx.query<Row>(text, values);
        },
      };
      const pgvector = (await findPgvector(tx, known))!;
      const specs = rows.map(({ id }) => id);
      await readNearest(explaining, pgvector, { model: known, specs, wanted, limit: 50, most: COUNT });
    });
    expect(plans).toHaveLength(1);
    expect(plans[0]).toMatch(/Index Scan using catalog_near_/);
  });

  test("a text that changed: its old vector is forgotten, the new one is copied in the run; what left is gone", async () => {
    await put(
      "things",
      makeDocument(COUNT - 5, (n) => (n === 7 ? "the zebra of Zanzibar" : about(n))),
    );
    await until("the new text to be embedded", async () => {
      const { hits } = await names(CATALOG, ZEBRA, "auto");
      return hits[0]?.startsWith("things /things/0007");
    });
    await scene.reaches("things", "indexed");
    expect(await lacking()).toBe(0);
    await equalsExact();
    // By whoever writes, also one that knows nothing of pgvector.
    await hf.sql.query(
      `update :schema.catalog_vectors set vector = (select vector from :schema.catalog_vectors where operation = 'GET /things/0007')
       where operation = 'GET /things/0009'`,
    );
    expect(await lacking()).toBe(1);
    expect((await names(CATALOG, ZEBRA, "auto")).hits.slice(0, 2).sort()).toEqual([
      "things /things/0007",
      "things /things/0009",
    ]);
    await filled();
  });

  test("a catalog that is one of several finds as much as if it were alone", async () => {
    await scene.call("POST", "", { id: "second" });
    await put(
      "more",
      makeDocument(COUNT, (n) => `${about(n)} second`),
      "second",
    );
    await until(
      "both of them",
      async () => (await scene.call("GET", "/second/embedding-status")).body.counts.indexed === 1,
      60_000,
    );
    await filled();
    await equalsExact("second");
    await equalsExact();
    await scene.call("DELETE", "/second");
    await equalsExact();
  }, 90_000);

  test("dropped under a running system: searches and embedding go on; created again, it is used again", async () => {
    await hf.sql.query("drop extension vector cascade");
    const without = await names(CATALOG, "copper", "auto");
    expect(without.nearest).toBe("exact");
    expect(without.hits).toHaveLength(50);
    await put("things", makeDocument(COUNT, about));
    await until("a try without it", async () => (await scene.reaches("things", "indexed")).embedded === COUNT);
    await hf.janitor.run("catalog-nearest");
    await hf.sql.query("create extension vector");
    await filled();
    await equalsExact();
  }, 60_000);

  test("more numbers than an index takes: halves up to 4000, then compared inside the database", async () => {
    const { rows } = await hf.sql.query<{ id: string }>("select id from :schema.catalog_specs limit 1");
    for (const [dimension, type] of [
      [2_000, "vector"],
      [2_001, "halfvec"],
      [4_000, "halfvec"],
      [4_001, undefined],
    ] as const) {
      const known = vectorModelOf(`wide:${dimension}`);
      expect(indexedAs(known, "0.8.0")).toBe(type);
      await makeIndex(hf, (await findPgvector(hf.sql, known))!, known);
      const pgvector = (await findPgvector(hf.sql, known))!;
      expect(pgvector.hasIndex).toBe(type !== undefined);
      for (const at of [0, 1]) {
        const bytes = Buffer.from(Float32Array.from({ length: dimension }, (_, n) => (n === at ? 1 : 0)).buffer);
        await hf.sql.query(
          `insert into :schema.catalog_vectors (spec_id, model, operation, hash, epoch, generation, vector)
           values ($1, $2, $3, 'x', 1, 1, $4)`,
          [rows[0]!.id, known.label, `GET /things/000${at}`, bytes],
        );
      }
      expect(await fillNear(hf, pgvector, { model: known, limit: 10 })).toBe(2);
      const wanted = Float32Array.from({ length: dimension }, (_, n) => (n === 0 ? 0.6 : n === 1 ? 0.8 : 0));
      const near = await hf.sql.transaction((tx) =>
        readNearest(tx, pgvector, { model: known, specs: [rows[0]!.id], wanted, limit: 2, most: 2 }),
      );
      expect(near.map(({ operation, score }) => [operation, score.toFixed(4)])).toEqual([
        ["GET /things/0001", "0.8000"],
        ["GET /things/0000", "0.6000"],
      ]);
    }
    await hf.sql.query("delete from :schema.catalog_vectors where model like 'wide:%'");
    await hf.janitor.run("catalog-nearest");
    expect(await indexes()).toEqual([LABEL]);
  });

  test("another model: no search mixes the two, and the index of the old one goes", async () => {
    embedder.state.dimension = 32;
    embedder.state.behave = ({ texts }) => (texts.length > 1 ? { slow: 100 } : "ok");
    // The question is of the new model, and nothing is yet.
    expect((await names(CATALOG, "copper", "auto")).hits).toEqual([]);
    await scene.call("POST", `/${CATALOG}/specs/things/reembed`);
    await until(
      "the other model",
      async () => {
        await hf.janitor.run("catalog-nearest");
        const { rows } = await hf.sql.query("select model from :schema.catalog_specs where model <> 'ollama:tiny:32'");
        const { hits } = await names(CATALOG, "copper", "auto");
        expect([0, 50]).toContain(hits.length);
        return rows.length === 0 && (await lacking("ollama:tiny:32")) === 0;
      },
      60_000,
    );
    await hf.janitor.run("catalog-nearest");
    await equalsExact();
    expect(await indexes()).toEqual(["ollama:tiny:32"]);
  }, 90_000);
});

test("what is there is told apart from what may be used", async () => {
  const there = {
    available: "0.8.1",
    installed: "0.8.1",
    mayCreate: true,
    mayUse: true,
    hasColumn: true,
    ownsTable: true,
  };
  expect(whyNot(there)).toBeNull();
  expect(whyNot({ ...there, installed: "0.4.4" })).toMatch(/no HNSW/);
  expect(whyNot({ ...there, mayUse: false })).toMatch(/may not use/);
  expect(whyNot({ ...there, hasColumn: false, ownsTable: false })).toMatch(/role owns/);
  expect(whyNot({ ...there, installed: null, mayCreate: false })).toMatch(/its owner must/);
  expect(whyNot({ ...there, installed: null, available: null })).toMatch(/no pgvector/);
  expect([
    indexedAs({ label: "x", dimension: 2_001 }, "0.6.2"),
    indexedAs({ label: "x", dimension: 2_000 }, "0.5.0"),
  ]).toEqual([undefined, "vector"]);
});

describe("where there is none", () => {
  const bench = useHoldfast("embedded");
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, { works: false, pgvector: "create" });
  });

  test("asked to create it: nothing happens, and the reason is said", async () => {
    await bench.hf.janitor.run("catalog-nearest");
    expect((await readAvailable(bench.hf.sql)).available).toBeNull();
    const { body } = await scene.call("GET", `/${CATALOG}/embedding-health`);
    expect(body.pgvector).toEqual({ version: null, why: "This database server has no pgvector." });
  });
});
