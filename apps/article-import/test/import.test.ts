// Links become articles, or say why not.
import { beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { importOf, openScene, type Scene, served } from "./scene.ts";

describe("an import", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, { fetchTimeout: "1s" });
  });

  test("every sort of page comes to its outcome, with the reason in words", async () => {
    const { site } = scene;
    const paths = {
      "/articles/1": "handed-over",
      "/german": "handed-over",
      "/consent": "handed-over",
      "/hostile": "handed-over",
      "/notes.txt": "handed-over",
      "/flaky/7": "handed-over",
      "/slow": "handed-over",
      "/missing": "ARTICLES_NOT_FOUND",
      "/gone": "ARTICLES_GONE",
      "/locked": "ARTICLES_FORBIDDEN",
      "/down": "ARTICLES_SITE_DOWN",
      "/never": "ARTICLES_TIMEOUT",
      "/loop": "ARTICLES_BAD_REDIRECT",
      "/inside": "ARTICLES_PRIVATE_ADDRESS",
      "/to?url=http%3A%2F%2F127.0.0.1%3A1%2F": "ARTICLES_PRIVATE_ADDRESS",
      "/huge": "ARTICLES_TOO_LARGE",
      "/paper.pdf": "ARTICLES_NOT_A_PAGE",
      "/empty": "ARTICLES_NO_ARTICLE",
      "/private/diary": "ARTICLES_ROBOTS",
    };
    const id = await importOf(
      scene,
      Object.keys(paths).map((path) => site.url + path),
    );
    const items = await served(scene, id, 25_000);
    const came = Object.fromEntries(
      items.map((item) => [(item.url as string).slice(site.url.length), item.error?.code ?? item.state]),
    );
    expect(came).toEqual(paths);
    const of = (path: string) => items.find((item) => item.url === site.url + path);
    expect(of("/missing").error.message).toBe(`${new URL(site.url).host} has no such page (404).`);
    // What is final is asked for once; what may pass, three times.
    expect([site.asked.get("/missing"), site.asked.get("/gone"), site.asked.get("/down")]).toEqual([1, 1, 3]);
    expect(of("/down").attempt).toBe(3);
    expect(site.asked.get("/private/diary")).toBeUndefined();
    const taken = await scene.takeAll("laptop");
    expect(taken).toHaveLength(7);
    const batch = (await scene.call("GET", `/imports/${id}`)).body;
    expect(batch).toMatchObject({
      state: "done",
      warnings: 1,
      counts: { saved: 6, "consent-wall": 1, error: 12 },
      countedAs: { saved: 7 },
    });
  }, 40_000);
});
