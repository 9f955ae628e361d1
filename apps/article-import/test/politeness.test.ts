// Sites are spared: so many pages at a time, so long between two, over all processes; what they ask for is kept.
import { describe, expect, test } from "vitest";
import { durationMs } from "holdfast";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { retryAfter } from "../src/fetching/fetch-page.ts";
import { makePoliteness } from "../src/fetching/politeness.ts";
import { SampleSite } from "../src/index.ts";
import { longestRunMs, readOptions } from "../src/options.ts";
import { importOf, openScene, served } from "./scene.ts";

describe("with two processes", () => {
  const bench = useHoldfast("server");
  test("a host gets so many requests at a time, and a pause between two", async () => {
    const site = await SampleSite.start({ port: 0, slowMs: 150 });
    const options = {
      perHost: 2,
      hostDelay: "100ms",
      robots: "ignore",
      concurrency: 6,
      allowOrigins: [site.url],
    } as const;
    const scene = await openScene(bench.hf, options);
    await openScene(await bench.another(), options);
    const links = Array.from({ length: 12 }, (_, index) => `${site.url}/slow?${index}`);
    const ids = await Promise.all([importOf(scene, links.slice(0, 6)), importOf(scene, links.slice(6))]);
    for (const id of ids)
      expect((await served(scene, id, 25_000)).every(({ state }) => state === "handed-over")).toBe(true);
    expect(site.mostOpen).toBeLessThanOrEqual(2);
    const starts = site.times.map(({ at }) => at);
    expect(starts).toHaveLength(12);
    // The clock of the table is exact; how soon a request is on its way after its turn is not.
    const gaps = starts.slice(1).map((at, index) => at - starts[index]!);
    expect(gaps.filter((gap) => gap < 50).length).toBeLessThanOrEqual(2);
    expect(starts.at(-1)! - starts[0]!).toBeGreaterThan(11 * 100 * 0.9);
    expect(site.times.every(({ agent }) => agent.startsWith("HoldfastArticles/"))).toBe(true);
    await site.close();
  }, 40_000);
});

describe("a place at a host", () => {
  const bench = useHoldfast("server");
  const { signal } = new AbortController();
  const longestVisitMs = longestRunMs(readOptions({}, {}));
  const open = async () => {
    await openScene(bench.hf, { works: false });
    return makePoliteness(bench.hf, { perHost: 1, delayMs: 0, longestVisitMs });
  };

  test("stays taken for the longest visit allowed; one who left late does not free it for a third", async () => {
    const politeness = await open();
    const leaveFirst = await politeness.enter("a.example", signal);
    await bench.hf.clock.advance(`${longestVisitMs}ms`);
    await expect(politeness.enter("a.example", signal)).rejects.toThrow("has enough visitors");
    // Whoever had it must be gone by now: somebody else takes it over.
    await bench.hf.clock.advance("31s");
    const leaveSecond = await politeness.enter("a.example", signal);
    await leaveFirst();
    await expect(politeness.enter("a.example", signal)).rejects.toThrow("has enough visitors");
    await leaveSecond();
    await (
      await politeness.enter("a.example", signal)
    )();
  }, 30_000);

  test("a run is given the time of all that it may do, also where that is longer than by default", () => {
    for (const given of [{}, { fetchTimeout: "5m" }, { readTimeout: "2m" }] as const) {
      const options = readOptions(given, {});
      const most = 2 * durationMs("", options.fetchTimeout) + durationMs("", options.readTimeout);
      expect(longestRunMs(options)).toBeGreaterThan(most);
    }
  });
});

describe("a site that wants a pause", () => {
  const bench = useHoldfast("server");
  test("429 with Retry-After: it is tried when the site says, and nobody else goes there before", async () => {
    const scene = await openScene(bench.hf, { robots: "ignore", concurrency: 1 });
    const { site } = scene;
    const id = await importOf(scene, [`${site.url}/busy/1`, `${site.url}/many/1`]);
    expect((await served(scene, id)).map(({ state }) => state)).toEqual(["handed-over", "handed-over"]);
    const [first, ...others] = site.times;
    expect(first!.path).toBe("/busy/1");
    expect(others).toHaveLength(2);
    for (const { at } of others) expect(at - first!.at).toBeGreaterThan(1_900);
  }, 30_000);
});

describe("robots.txt", () => {
  const bench = useHoldfast("server");
  test("is obeyed for our name; where it cannot be read, it is asked for again", async () => {
    const scene = await openScene(bench.hf, {});
    const { site } = scene;
    site.robots = {
      status: 200,
      text: "User-agent: HoldfastArticles\nDisallow: /many/2\n\nUser-agent: *\nDisallow: /\n",
    };
    const items = await served(scene, await importOf(scene, [`${site.url}/many/1`, `${site.url}/many/2`]));
    expect(items.map(({ state, error }) => error?.code ?? state)).toEqual(["handed-over", "ARTICLES_ROBOTS"]);
    // Looked up once.
    expect(site.asked.get("/robots.txt")).toBeLessThanOrEqual(2);
    await bench.hf.clock.advance("61m");
    site.robots = { status: 503, text: "" };
    const [item] = await served(scene, await importOf(scene, [`${site.url}/many/3`]));
    expect(item).toMatchObject({ state: "error", attempt: 3, error: { code: "ARTICLES_ROBOTS" } });
    expect(site.asked.get("/many/3")).toBeUndefined();
  }, 30_000);
});

describe("robots.txt and redirects", () => {
  const bench = useHoldfast("server");
  test("where a page redirects to is asked about too: on the same host, and on another by its own rules", async () => {
    const start = (): Promise<SampleSite> => SampleSite.start({ port: 0 });
    const [site, other, third] = await Promise.all([start(), start(), start()]);
    const scene = await openScene(bench.hf, { allowOrigins: [site.url, other.url, third.url] });
    other.robots = { status: 200, text: "User-agent: *\nDisallow: /many/\n" };
    // Its rules are known from here on.
    await served(scene, await importOf(scene, [`${other.url}/articles/2`]));
    const to = (url: string): string => `${site.url}/to?url=${encodeURIComponent(url)}`;
    const links = [
      to("/private/diary"),
      to(`${other.url}/many/1`),
      to("/articles/1"),
      to("/to?url=/private/deep"),
      to(`${third.url}/many/2`),
    ];
    const items = await served(scene, await importOf(scene, links));
    expect(items.map(({ state, error }) => error?.code ?? state)).toEqual([
      "ARTICLES_ROBOTS",
      "ARTICLES_ROBOTS",
      "handed-over",
      "ARTICLES_ROBOTS",
      "ARTICLES_PRIVATE_ADDRESS",
    ]);
    expect([site.asked.get("/private/diary"), site.asked.get("/private/deep")]).toEqual([undefined, undefined]);
    expect([other.asked.get("/robots.txt"), other.asked.get("/many/1")]).toEqual([1, undefined]);
    // Nobody gets inside by a redirect, not even to ask what robots may read.
    expect(third.asked.size).toBe(0);
    await Promise.all([site.close(), other.close(), third.close()]);
  }, 30_000);
});

test("Retry-After has two forms, and some that mean nothing", () => {
  const now = Date.parse("2030-01-01T00:00:00Z");
  expect(retryAfter("120", now)).toBe(120);
  expect(retryAfter("0", now)).toBe(1);
  expect(retryAfter("Tue, 01 Jan 2030 00:01:00 GMT", now)).toBe(60);
  expect(retryAfter("Tue, 01 Jan 2020 00:01:00 GMT", now)).toBe(1);
  expect(retryAfter("soon", now)).toBeUndefined();
  expect(retryAfter("-5", now)).toBeUndefined();
  expect(retryAfter(null, now)).toBeUndefined();
});
