// The fault that this app is there to end: a job that takes longer than its lease was taken away at its last chunk, for ever.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { startEmbedder } from "../storm/embedder.mjs";
import { CATALOG, makeDocument, openScene, type Scene } from "./scene.ts";

describe("a job that is longer than its lease", () => {
  const bench = useHoldfast("server");
  let embedder: Awaited<ReturnType<typeof startEmbedder>>;
  let scene: Scene;
  beforeAll(async () => {
    // 5 calls of 500 ms, and the last one of 2.5 s: 10 leases.
    embedder = await startEmbedder({
      behave: ({ texts }) => (texts.length === 1 ? "ok" : { slow: texts[0]?.includes("/0040") === true ? 2_500 : 500 }),
    });
    scene = await openScene(bench.hf, {
      embedder: { provider: "openai", url: embedder.url, model: "tiny" },
      batchSize: 8,
      leaseDuration: "500ms",
      embedTimeout: "10s",
      reconcileEvery: "1h",
    });
  });
  afterAll(async () => {
    await scene.stopWork();
    await embedder.close();
  });

  test("is claimed once, fails never, embeds each operation once, and moves all the while", async () => {
    const { body } = await scene.call("PUT", `/${CATALOG}/specs/long`, makeDocument(48));
    const seen = new Set<string>();
    const watching = setInterval(() => {
      void scene.call("GET", `/${CATALOG}/embedding-status`).then((answer) => seen.add(answer.body.specs[0].badge));
    }, 100);
    const job = await bench.hf.jobs.wait(body.job, { timeout: "20s" });
    clearInterval(watching);
    expect(job).toMatchObject({ state: "done", attempt: 1, claimCount: 1 });
    expect(await bench.hf.jobs.attempts(job.id)).toEqual([]);
    const counts = [...embedder.seen].filter(([line]) => line !== "dimension").map(([, each]) => each.sent);
    expect(counts).toEqual(Array(48).fill(1));
    for (const badge of ["indexing 8/48", "indexing 24/48", "indexing 40/48"]) expect([...seen]).toContain(badge);
    expect([...seen].filter((badge) => badge.startsWith("retrying"))).toEqual([]);
  }, 30_000);

  test("a time for one call that is not below the lease is warned about at start", async () => {
    const said: string[] = [];
    const note = (message: string, fields?: object): void =>
      void said.push(`${message} ${JSON.stringify(fields ?? {})}`);
    const other = await bench.another({ log: { debug: () => {}, info: () => {}, warn: note, error: note } });
    const worker = await other.work(scene.kinds);
    await worker.stop();
    expect(said.join("\n")).toMatch(/callTimeout|call-timeout-not-below-lease/);
  });
});
