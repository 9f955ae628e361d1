// From a document to vectors: what is embedded, when, how often, and what is seen meanwhile. On both tiers.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../../../test/support/open-test.ts";
import { startEmbedder } from "../storm/embedder.mjs";
import { until } from "../../../test/support/until.ts";
import { CATALOG, makeDocument, openScene, type Scene } from "./scene.ts";

describe.each(TIERS)("indexing (%s)", (tier) => {
  const bench = useHoldfast(tier);
  let embedder: Awaited<ReturnType<typeof startEmbedder>>;
  let scene: Scene;
  const put = (name: string, document: object) => scene.call("PUT", `/${CATALOG}/specs/${name}`, document);
  /** Operations, and not questions. */
  const sent = (): number =>
    [...embedder.seen].reduce((sum, [line, { sent: n }]) => sum + (line.startsWith("GET /") ? n : 0), 0);
  const rows = async (name: string) => {
    const { rows: found } = await bench.hf.sql.query<{ operations: number; distinct: number; models: string[] }>(
      `select count(*)::int as operations, count(distinct v.operation)::int as distinct, array_agg(distinct v.model) as models
       from :schema.catalog_vectors v join :schema.catalog_specs s on s.id = v.spec_id where s.name = $1`,
      [name],
    );
    return found[0]!;
  };
  const search = async (q: string, more = "") =>
    (await scene.call("GET", `/${CATALOG}/search?q=${encodeURIComponent(q)}${more}`)).body;

  beforeAll(async () => {
    embedder = await startEmbedder();
    scene = await openScene(bench.hf, {
      embedder: { provider: "ollama", url: embedder.url, model: "tiny" },
      batchSize: 8,
      embedTimeout: "700ms",
      reconcileEvery: "1h",
      attempts: 4,
    });
  });
  afterAll(async () => {
    await scene.stopWork();
    await embedder.close();
  });

  test("every operation once, in chunks of the batch size; a second upload embeds what changed, and nothing else", async () => {
    expect((await put("things", makeDocument(20))).body).toMatchObject({ operations: 20, changed: true });
    expect(await scene.reaches("things", "indexed")).toMatchObject({ badge: "20/20 indexed", embedded: 20 });
    expect(sent()).toBe(20);
    expect(embedder.calls.map(({ count }) => count)).toEqual(expect.arrayContaining([8, 8, 4]));

    expect((await put("things", makeDocument(20))).body).toMatchObject({ changed: false });
    const edited = makeDocument(19, (n) => (n < 3 ? `changed number ${n}` : `thing number ${n}`));
    expect((await put("things", edited)).status).toBe(200);
    await scene.reaches("things", "indexed");
    await until("what left the document to go", async () => (await rows("things")).operations === 19);
    expect(sent()).toBe(23);
  });

  test("a rename embeds nothing; what is deleted is gone from rows and searches", async () => {
    const before = sent();
    expect((await scene.call("PATCH", `/${CATALOG}/specs/things`, { name: "objects" })).body).toEqual({
      name: "objects",
    });
    await scene.reaches("objects", "indexed");
    await put(
      "short",
      makeDocument(2, (n) => `brief ${n}`),
    );
    await scene.reaches("short", "indexed");
    expect((await search("brief")).hits[0]).toMatchObject({ spec: "short" });
    expect((await scene.call("PATCH", `/${CATALOG}/specs/short`, { name: "objects" })).status).toBe(409);
    await scene.call("DELETE", `/${CATALOG}/specs/short`);
    expect((await search("brief")).hits.filter(({ spec }: { spec: string }) => spec === "short")).toEqual([]);
    expect((await rows("short")).operations).toBe(0);
    expect(sent()).toBe(before + 2);
  });

  test("a chunk that fails costs that chunk: those before it stay, the next try goes on behind them", async () => {
    let failures = 0;
    const before = sent();
    embedder.state.behave = ({ texts }) => {
      const isThird = texts[0]?.includes("/things/0016") === true && texts.length > 1;
      if (!isThird || failures > 1) return "ok";
      failures += 1;
      return failures === 1 ? "short" : "fail";
    };
    await put(
      "resumed",
      makeDocument(30, (n) => `resumed ${n}`),
    );
    const { jobId } = await scene.reaches("resumed", "indexed");
    await bench.hf.jobs.wait(jobId, { timeout: "10s" });
    expect(sent() - before).toBe(30 + 2 * 8);
    const { body } = await scene.call("GET", `/${CATALOG}/embedding-jobs?spec_name=resumed`);
    expect(body.jobs).toHaveLength(1);
    expect(body.jobs[0]).toMatchObject({ spec_name: "resumed", state: "done", attempt: 3 });
    const attempts = await bench.hf.jobs.attempts(body.jobs[0].id);
    expect(attempts.map(({ error }) => error?.message)).toEqual([
      "ollama:tiny answered with 7 vectors for texts 17 to 24.",
      "ollama:tiny answered 500: out of memory",
    ]);
    embedder.state.behave = () => "ok";
  });

  test("calls that are too slow become smaller, and it ends; waiting for the next try is said, with the reason", async () => {
    const before = embedder.calls.length;
    embedder.state.behave = ({ texts }) => (texts.length > 2 ? { slow: 1_500 } : "ok");
    await put(
      "slow",
      makeDocument(8, (n) => `slow ${n}`),
    );
    await scene.reaches("slow", "indexed");
    const counts = embedder.calls.slice(before).map(({ count }) => count);
    expect(counts.slice(0, 4)).toEqual([8, 4, 2, 2]);

    embedder.state.behave = () => "busy";
    await put(
      "busy",
      makeDocument(4, (n) => `busy ${n}`),
    );
    const waiting = await scene.reaches("busy", "retrying");
    expect(waiting).toMatchObject({ badge: "retrying (1 try)", lastError: "ollama:tiny answered 429: slow down" });
    const { body: health } = await scene.call("GET", `/${CATALOG}/embedding-health`);
    expect(health).toMatchObject({ verdict: "retrying", provider: "ollama", model: "ollama:tiny:128" });
    expect(health.banner).toMatch(/^3\/4 specs indexed \(0 running, 1 queued, 0 failed\)$/);
    embedder.state.behave = () => "ok";
    await scene.reaches("busy", "indexed");
  });

  test("an edit during the run runs again; a search meanwhile says that it is not complete", async () => {
    embedder.state.behave = () => ({ slow: 300 });
    await put(
      "edited",
      makeDocument(24, (n) => `violet ${n}`),
    );
    await until("the first chunk", async () => (await rows("edited")).operations >= 8);
    const during = await search("violet");
    expect(during.isComplete).toBe(false);
    expect(during.unfinished[0]).toMatchObject({ name: "edited", operations: 24 });
    expect(
      during.hits.some(({ spec, by }: { spec: string; by: string[] }) => spec === "edited" && by.includes("meaning")),
    ).toBe(true);
    await put(
      "edited",
      makeDocument(24, (n) => (n === 0 ? "turquoise 0" : `violet ${n}`)),
    );
    embedder.state.behave = () => "ok";
    await scene.reaches("edited", "indexed");
    const after = await search("turquoise", "&by=meaning&limit=1");
    expect(after).toMatchObject({ isComplete: true, hits: [{ spec: "edited", path: "/things/0000", isStale: false }] });
    expect(await rows("edited")).toMatchObject({ operations: 24, distinct: 24 });
  });

  test("all of it again: also while it runs, and once; an unknown spec is 404", async () => {
    const before = sent();
    const first = await scene.call("POST", `/${CATALOG}/specs/edited/reembed`);
    expect([first.status, first.body.status, first.body.created]).toEqual([202, "queued", true]);
    await until("all again", async () => sent() - before >= 24);
    await scene.reaches("edited", "indexed");
    expect(sent() - before).toBe(24);
    embedder.state.behave = () => ({ slow: 400 });
    await scene.call("POST", `/${CATALOG}/specs/edited/reembed`);
    await scene.reaches("edited", "indexing");
    const again = await scene.call("POST", `/${CATALOG}/specs/edited/reembed`);
    expect(again.body.created).toBe(false);
    embedder.state.behave = () => "ok";
    await scene.reaches("edited", "indexed");
    expect(await rows("edited")).toMatchObject({ operations: 24, distinct: 24 });
    expect((await scene.call("POST", `/${CATALOG}/specs/nothing/reembed`)).status).toBe(404);
    expect((await scene.call("GET", "/nothing/embedding-status")).status).toBe(404);
  });

  test("a spec that is deleted during the run ends its job at once, without another try", async () => {
    embedder.state.behave = () => ({ slow: 400 });
    const { body } = await put(
      "doomed",
      makeDocument(40, (n) => `doomed ${n}`),
    );
    await until("the first chunk", async () => (await rows("doomed")).operations >= 8);
    await scene.call("DELETE", `/${CATALOG}/specs/doomed`);
    const job = await bench.hf.jobs.wait(body.job, { timeout: "5s" });
    embedder.state.behave = () => "ok";
    expect(job).toMatchObject({ state: "done", attempt: 1 });
    expect(job.lastError?.message ?? JSON.stringify(job.result)).toMatch(/deleted/);
  });

  test("what keeps failing is given up, rests, and is asked for again when it has rested; then all is well", async () => {
    embedder.state.behave = ({ texts }) => (texts[0]?.includes("cursed") === true ? "fail" : "ok");
    await put(
      "cursed",
      makeDocument(3, (n) => `cursed ${n}`),
    );
    const failed = await scene.reaches("cursed", "failed");
    expect(failed).toMatchObject({ badge: "failed", tries: 4, lastError: "ollama:tiny answered 500: out of memory" });
    await bench.hf.janitor.run("catalog-reconcile");
    expect(await scene.reaches("cursed", "failed")).toMatchObject({ isParked: true });
    await bench.hf.janitor.run("catalog-reconcile");
    expect((await scene.reaches("cursed", "failed")).jobId).toBe(failed.jobId);
    embedder.state.behave = () => "ok";
    // Its rest is over.
    await bench.hf.sql.query(
      "update :schema.catalog_specs set parked_until_at = :schema.clock() where name = 'cursed'",
    );
    await bench.hf.janitor.run("catalog-reconcile");
    expect(await scene.reaches("cursed", "indexed")).toMatchObject({ isParked: false });
    expect(await bench.hf.jobs.list({ state: "dead" })).toMatchObject({ jobs: [] });
  });

  test("a try that embedded something is none of those after which it is given up", async () => {
    // Each try gets one chunk further: six of them, where four in a row without anything would be the end.
    let isGood = false;
    embedder.state.behave = ({ texts }) => {
      if (!texts[0]!.includes("uphill")) return "ok";
      isGood = !isGood;
      return isGood ? "ok" : "fail";
    };
    await put(
      "uphill",
      makeDocument(48, (n) => `uphill ${n}`),
    );
    const { jobId } = await scene.reaches("uphill", "indexed");
    await bench.hf.jobs.wait(jobId, { timeout: "10s" });
    const { body } = await scene.call("GET", `/${CATALOG}/embedding-jobs?spec_name=uphill`);
    expect(body.jobs).toMatchObject([{ state: "done", attempt: 6 }]);
    embedder.state.behave = () => "ok";
  });

  test("the reconciler sees a vector of another text, although the count is right", async () => {
    await bench.hf.sql.query(
      `update :schema.catalog_vectors v set hash = 'of another text' from :schema.catalog_specs s
       where s.id = v.spec_id and s.name = 'edited' and v.operation = 'GET /things/0007'`,
    );
    const before = sent();
    await bench.hf.janitor.run("catalog-reconcile");
    await scene.reaches("edited", "indexed");
    expect(sent() - before).toBe(1);
  });

  test("another model is built beside the old one, which is seen until the last vector is there", async () => {
    const old = await rows("edited");
    expect(old.models).toEqual(["ollama:tiny:128"]);
    // The model behind the same name is another one now.
    embedder.state.dimension = 64;
    embedder.state.behave = ({ texts }) => (texts.length > 1 ? { slow: 250 } : "ok");
    expect((await search("turquoise")).hits.length).toBeGreaterThan(0);
    await scene.call("POST", `/${CATALOG}/specs/edited/reembed`);
    await until("the first chunk of the other", async () => (await rows("edited")).models.length === 2);
    const { rows: seen } = await bench.hf.sql.query("select model from :schema.catalog_specs where name = 'edited'");
    expect(seen).toEqual([{ model: "ollama:tiny:128" }]);
    const during = await search("turquoise", "&by=both");
    expect(during.isComplete).toBe(false);
    expect(during.hits[0]).toMatchObject({ spec: "edited", by: ["words"] });
    embedder.state.behave = () => "ok";
    await until("the flip", async () => (await rows("edited")).models.join() === "ollama:tiny:64");
    expect((await search("turquoise", "&by=meaning&limit=1")).hits[0]).toMatchObject({ path: "/things/0000" });
  });
});
