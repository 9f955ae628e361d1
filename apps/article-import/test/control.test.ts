// Pause, resume, cancel, retry, delete; who may; what is refused; the switch; the figures.
import { beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { articleImport } from "../src/index.ts";
import { until } from "../../../test/support/until.ts";
import { type Device, importOf, openScene, type Scene, served } from "./scene.ts";

describe("an import in its owner's hands", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  let ada: Device;
  beforeAll(async () => {
    scene = await openScene(bench.hf, { fetchTimeout: "3s" });
    ada = await scene.as("ada");
  });
  const pages = (from: number, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${scene.site.url}/many/${from + index}`);
  const look = async (id: string) => (await ada.call("GET", `/imports/${id}`)).body;

  test("three at a time; paused, what runs finishes and nothing starts; resumed, it goes on; cancelled, what waits is not fetched", async () => {
    const slow = Array.from({ length: 8 }, (_, index) => `${scene.site.url}/slow?${index}`);
    const id = await importOf(ada, slow, { name: "Slow ones" });
    await until("three to run", async () => (await look(id)).counts.running === 3);
    expect((await ada.call("POST", `/imports/${id}/pause`, {})).body.state).toBe("paused");
    await until("them to finish", async () => (await look(id)).counts.running === 0);
    const paused = await look(id);
    expect(paused).toMatchObject({ state: "paused", name: "Slow ones", total: 8 });
    const before = scene.site.asked.get("/slow")!;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(scene.site.asked.get("/slow")).toBe(before);
    await ada.call("POST", `/imports/${id}/resume`, {});
    await until("some more", async () => scene.site.asked.get("/slow")! > before);
    const cancelled = (await ada.call("POST", `/imports/${id}/cancel`, {})).body;
    expect(cancelled.state).toBe("cancelled");
    const items = await served(ada, id);
    expect(items.filter(({ state }) => state === "cancelled").length).toBeGreaterThan(0);
    expect((await ada.call("POST", `/imports/${id}/resume`, {})).status).toBe(409);
    expect((await ada.call("POST", `/imports/${id}/retry-failed`, {})).status).toBe(409);
    await ada.takeAll("laptop");
    await until("its end", async () => (await look(id)).finishedAt !== null);
    expect((await ada.call("DELETE", `/imports/${id}`)).body).toEqual({ deleted: true });
    expect((await ada.call("GET", `/imports/${id}`)).status).toBe(404);
    expect((await ada.call("DELETE", `/imports/${id}`)).body).toEqual({ deleted: false });
    expect(scene.site.mostOpen).toBeLessThanOrEqual(3);
  });

  test("what failed is retried with all its tries, together or one by one", async () => {
    const { site } = scene;
    const id = await importOf(ada, [`${site.url}/missing/1`, `${site.url}/missing/2`, ...pages(20, 1)]);
    await served(ada, id);
    await ada.takeAll("laptop");
    expect(await look(id)).toMatchObject({ state: "done", counts: { error: 2, saved: 1 }, completions: 1 });
    expect((await ada.call("POST", `/imports/${id}/items/2/retry`, {})).body).toEqual({ retried: 1 });
    await until("its end", async () => (await look(id)).completions === 2);
    expect([site.asked.get("/missing/1"), site.asked.get("/missing/2")]).toEqual([1, 2]);
    expect((await ada.call("POST", `/imports/${id}/retry-failed`, {})).body.retried).toBe(2);
    await until("its end", async () => (await look(id)).completions === 3);
    expect(
      (await ada.call("GET", "/imports?filter=errors")).body.imports.map((each: { id: string }) => each.id),
    ).toContain(id);
    expect((await ada.call("GET", "/imports?filter=active")).body.imports).toEqual([]);
  });

  test("nothing, too much and nonsense are refused with what to do; asked again with its key it is the same import", async () => {
    expect(await ada.call("POST", "/imports", { text: "no link at all" })).toMatchObject({
      status: 422,
      body: { error: { code: "ARTICLES_NO_LINKS" } },
    });
    expect(await ada.call("POST", "/imports", {})).toMatchObject({
      status: 422,
      body: { error: { code: "ARTICLES_TEXT_MISSING" } },
    });
    const many = Array.from({ length: 5_001 }, (_, index) => `https://a.example/${index}`).join(" ");
    expect(await ada.call("POST", "/imports", { text: many })).toMatchObject({
      status: 422,
      body: { error: { code: "ARTICLES_TOO_MANY_LINKS" } },
    });
    const key = "a-key-of-this-test";
    const first = await ada.call("POST", "/imports", { text: pages(30, 1)[0], key });
    const again = await ada.call("POST", "/imports", { text: pages(30, 1)[0], key });
    expect([first.status, again.status, again.body.id]).toEqual([201, 200, first.body.id]);
    const tool = (urls: unknown) => ada.call("POST", "/tools/import_articles_from_urls", { urls });
    expect((await tool(pages(31, 2))).status).toBe(201);
    for (const wrong of [[], undefined, [7], ["nonsense"], pages(1, 51)]) expect((await tool(wrong)).status).toBe(422);
    expect(() => articleImport({ perHost: 0 }, {})).toThrow("perHost is 0");
    expect(() => articleImport({ allowOrigins: ["http://intra.example"] }, {})).toThrow('has "http://intra.example"');
    expect(() => articleImport({ robot: "obey" } as never, {})).toThrow("no option robot");
    expect(() => articleImport({}, { ARTICLES_IMPORT_WORKER_DISABLED: "perhaps" })).toThrow('is "perhaps"');
  });

  test("somebody else's import is the same as none, on every route", async () => {
    const id = await importOf(ada, pages(40, 1));
    await served(ada, id);
    const { pickups } = (await ada.call("GET", "/pickups")).body;
    const mallory = await scene.as("mallory");
    const routes = [
      ["GET", `/imports/${id}`],
      ["GET", `/imports/${id}/items`],
      ["POST", `/imports/${id}/pause`],
      ["POST", `/imports/${id}/resume`],
      ["POST", `/imports/${id}/cancel`],
      ["POST", `/imports/${id}/retry-failed`],
      ["POST", `/imports/${id}/items/1/retry`],
      ["POST", `/imports/${id}/items/1/ack`],
      ["GET", `/pickups/${pickups[0].id}`],
    ] as const;
    for (const [method, path] of routes) {
      const body = method === "POST" ? { outcome: "saved", device: "x" } : undefined;
      expect([path, (await mallory.call(method, path, body)).status]).toEqual([path, 404]);
    }
    expect((await mallory.call("DELETE", `/imports/${id}`)).body).toEqual({ deleted: false });
    expect((await mallory.call("GET", "/imports")).body.imports).toEqual([]);
    expect((await mallory.call("GET", "/pickups")).body.pickups).toEqual([]);
    const { token: viewer } = await bench.hf.tokens.create({ name: "looks", role: "viewer", owner: "ada" });
    const asked = await fetch(`${scene.url}/article-import/pickups/${pickups[0].id}`, {
      headers: { authorization: `Bearer ${viewer}` },
    });
    expect(asked.status).toBe(403);
    expect((await fetch(`${scene.url}/article-import/imports`)).status).toBe(401);
    expect(await served(ada, id)).toMatchObject([{ state: "handed-over" }]);
  });

  test("the five figures are at /metrics, with the buckets that they had elsewhere", async () => {
    const text = await (
      await fetch(`${scene.url}/metrics`, { headers: { authorization: "Bearer a-token-for-the-importer-tests" } })
    ).text();
    const of = (name: string): number =>
      Number(new RegExp(`^holdfast_articles_import_${name.replaceAll(/[{}"]/g, "\\$&")} (\\S+)$`, "m").exec(text)?.[1]);
    expect(of('runs_total{result="processed"}')).toBeGreaterThan(5);
    expect(of('items_total{result="extracted"}')).toBeGreaterThan(3);
    expect(of('items_total{result="error"}')).toBe(5);
    expect(of('items_total{result="cancelled"}')).toBeGreaterThan(0);
    expect(of('items_total{result="consent_wall"}')).toBe(0);
    expect(of('jobs_completed_total{result="done"}')).toBeGreaterThan(2);
    expect(of('jobs_completed_total{result="cancelled"}')).toBe(1);
    expect(of("pickups_expired_total")).toBe(0);
    const buckets = [...text.matchAll(/holdfast_articles_import_extract_duration_seconds_bucket\{le="([^"]+)"\}/g)].map(
      ([, le]) => le,
    );
    expect(buckets).toEqual(["0.25", "0.5", "1", "2", "4", "8", "15", "30", "+Inf"]);
    expect(of("extract_duration_seconds_count")).toBeGreaterThan(5);
  });
});

describe("with ARTICLES_IMPORT_WORKER_DISABLED=true", () => {
  const bench = useHoldfast("server");
  test("imports are taken and run by another process", async () => {
    const scene = await openScene(bench.hf, { env: { ARTICLES_IMPORT_WORKER_DISABLED: "true" } });
    expect(scene.kinds).toEqual([]);
    expect((await scene.call("GET", "/me")).body).toMatchObject({ owner: "me", worker: false });
    const id = await importOf(scene, [`${scene.site.url}/many/1`]);
    expect((await scene.call("GET", `/imports/${id}`)).body).toMatchObject({ state: "queued", counts: { pending: 1 } });
    await openScene(await bench.another(), { allowOrigins: [scene.site.url] });
    expect(await served(scene, id)).toMatchObject([{ state: "handed-over" }]);
  });
});
