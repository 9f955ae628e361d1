// What somebody saw go wrong, each with the test that it does not come back.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob, Fatal } from "holdfast";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { KIND } from "../src/names.ts";
import { startEmbedder } from "../storm/embedder.mjs";
import { until } from "../../../test/support/until.ts";
import { CATALOG, makeDocument, openScene, type Scene } from "./scene.ts";

describe("faults", () => {
  const bench = useHoldfast("server");
  let embedder: Awaited<ReturnType<typeof startEmbedder>>;
  let scene: Scene;
  const put = (name: string, document: object, catalog = CATALOG) =>
    scene.call("PUT", `/${catalog}/specs/${name}`, document);
  const about = (count: number, word: string) => makeDocument(count, (n) => `${word} ${n}`);
  const search = async (q: string, more = "") => (await scene.call("GET", `/${CATALOG}/search?q=${q}${more}`)).body;
  const dead = async () => (await bench.hf.jobs.list({ state: "dead" })).jobs;

  beforeAll(async () => {
    embedder = await startEmbedder();
    scene = await openScene(bench.hf, {
      embedder: { provider: "ollama", url: embedder.url, model: "tiny" },
      batchSize: 4,
      embedTimeout: "500ms",
      ladder: ["20ms"],
      attempts: 2,
      reconcileEvery: "1h",
    });
  });
  afterAll(async () => {
    await scene.stopWork();
    await embedder.close();
  });

  test("a failed spec that was deleted, or whose catalog was, left a dead job behind", async () => {
    embedder.state.behave = ({ texts }) => (texts[0]!.includes("cursed") ? "fail" : "ok");
    await scene.call("POST", "", { id: "other" });
    await put("cursed", about(1, "cursed"));
    await put("cursed", about(1, "cursed"), "other");
    await until("two dead jobs", async () => (await dead()).length === 2);
    const { notes } = await search("thing");
    expect(notes).toEqual(["Not all specs are indexed: there may be more by meaning."]);
    await scene.call("DELETE", `/${CATALOG}/specs/cursed`);
    expect(await dead()).toHaveLength(1);
    await scene.call("DELETE", "/other");
    expect(await dead()).toEqual([]);
  });

  test("a catalog with more than 500 dead jobs was deleted, and the 501st stayed", async () => {
    await scene.call("POST", "", { id: "crowd" });
    await scene.stopWork();
    const hopeless = defineJob<{ spec: string; catalog: string }>(KIND, {
      run: () => {
        throw new Fatal("Nothing can be embedded.");
      },
    });
    const worker = await bench.hf.work([hopeless], { concurrency: 50 });
    const jobs = Array.from({ length: 501 }, () => ({ payload: { spec: randomUUID(), catalog: "crowd" } }));
    await bench.hf.enqueueMany(hopeless, jobs);
    const buried = async () => (await bench.hf.jobs.count({ state: "dead", payload: { catalog: "crowd" } })).count;
    await until("501 dead jobs", async () => (await buried()) === 501, 30_000);
    await worker.stop();
    await scene.work();
    expect((await scene.call("DELETE", "/crowd")).body).toEqual({ deleted: true });
    expect(await dead()).toEqual([]);
  }, 60_000);

  test("a spec that was deleted during its last try became a dead job", async () => {
    let calls = 0;
    embedder.state.behave = ({ texts }) => {
      if (!texts[0]!.includes("doomed")) return "ok";
      calls += 1;
      return "hang";
    };
    const { body } = await put("doomed", about(1, "doomed"));
    await until("its last try", () => Promise.resolve(calls === 2));
    await scene.call("DELETE", `/${CATALOG}/specs/doomed`);
    expect(await bench.hf.jobs.wait(body.job, { timeout: "5s" })).toMatchObject({ state: "done" });
  });

  test("after a new upload, tries were counted from a fruitful one before it, and it was tried for ever", async () => {
    embedder.state.behave = ({ texts }) => (texts[0]!.includes("late") ? "busy" : "ok");
    await put("late", about(1, "late"));
    await scene.reaches("late", "retrying");
    await bench.hf.sql.query(
      "update :schema.catalog_specs set fruitful_job_id = job_id, fruitful_attempt = 100 where name = 'late'",
    );
    embedder.state.behave = ({ texts }) => (texts[0]!.includes("late") ? "fail" : "ok");
    await put("late", about(1, "later"));
    expect(await scene.reaches("late", "failed", 5_000)).toMatchObject({ tries: 2 });
    await scene.call("DELETE", `/${CATALOG}/specs/late`);
  });

  test("another dimension in the middle of a run: all vectors are of the one that stays", async () => {
    embedder.state.behave = ({ texts }) => {
      if (texts[0]!.includes("/0004")) embedder.state.dimension = 64;
      return "ok";
    };
    await put("bent", about(10, "bent"));
    expect(await scene.reaches("bent", "indexed")).toMatchObject({ embedded: 10, model: "ollama:tiny:64" });
    const { rows } = await bench.hf.sql.query(
      `select v.model, count(*)::int as n from :schema.catalog_vectors v join :schema.catalog_specs s on s.id = v.spec_id
       where s.name = 'bent' group by 1`,
    );
    expect(rows).toEqual([{ model: "ollama:tiny:64", n: 10 }]);
  });

  test("all vectors of another model, not yet in the place of the old ones, passed for indexed", async () => {
    const before = embedder.calls.filter(({ count }) => count > 1).length;
    // As a process leaves it that was killed after its last chunk.
    await bench.hf.sql.query("update :schema.catalog_specs set model = 'ollama:before:64' where name = 'bent'");
    expect(await search("bent")).toMatchObject({ isComplete: false, unfinished: [{ name: "bent", embedded: 10 }] });
    await bench.hf.janitor.run("catalog-reconcile");
    await scene.reaches("bent", "indexed");
    expect(embedder.calls.filter(({ count }) => count > 1)).toHaveLength(before);
    expect(await search("bent", "&by=meaning&limit=1")).toMatchObject({ isComplete: true, hits: [{ spec: "bent" }] });
  });

  test("an operationId that was only spelled otherwise stayed the old one", async () => {
    const named = (operationId: string) => ({ openapi: "3.0.0", paths: { "/x": { get: { operationId } } } });
    await put("named", named("list_all-things"));
    await put("named", named("list-all_things"));
    await scene.reaches("named", "indexed");
    const { hits } = await search("list+all+things", "&by=words&limit=1");
    expect(hits).toMatchObject([{ spec: "named", operationId: "list-all_things" }]);
  });

  test("a question without an answer of the embedder: by meaning said that it was by words", async () => {
    embedder.state.behave = () => "zero";
    const { notes, hits } = await search("bent", "&by=meaning");
    expect([hits, notes]).toEqual([
      [],
      [expect.stringMatching(/^Not searched by meaning: The question has no vector/)],
    ]);
    expect((await search("bent")).notes[0]).toMatch(/^By words only: The question has no vector/);
    expect((await search("bent", "&by=words")).notes).toEqual([]);
    embedder.state.behave = () => "ok";
  });

  test("a question that was given up after embedTimeout was said to have waited 10 s", async () => {
    embedder.state.behave = () => "hang";
    const { trouble } = await search("bent", "&by=meaning");
    embedder.state.behave = () => "ok";
    expect(trouble).toBe("The embedder did not answer within 0.5 s.");
  });

  test("with more than a thousand catalogs some were not found; the specs of one beyond a thousand were not shown", async () => {
    await bench.hf.sql.query(
      "insert into :schema.catalog_catalogs (id, name) select 'c' || n, 'c' || n from generate_series(1, 1001) n",
    );
    expect((await scene.call("GET", `/${CATALOG}/embedding-status`)).status).toBe(200);
    await bench.hf.sql.query(
      `insert into :schema.catalog_specs (id, catalog_id, name, title, version, format, content_hash, problems, operation_count)
       select gen_random_uuid(), 'c1', 's' || n, '', '', '', '', '[]', 0 from generate_series(1, 1000) n`,
    );
    const { status, body } = await put("more", about(1, "more"), "c1");
    expect([status, body.error.code]).toEqual([409, "CATALOG_FULL"]);
    expect((await put("s1", about(1, "more"), "c1")).status).toBe(200);
  });
});
