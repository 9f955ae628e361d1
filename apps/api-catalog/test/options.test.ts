// What can be chosen, and what is refused; the routes that refuse; a catalog without an embedder.
import { beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { apiCatalog } from "../src/index.ts";
import { readOptions } from "../src/options.ts";
import { CATALOG, makeDocument, openScene, type Scene } from "./scene.ts";

test("the defaults, also for whoever sets only the time of a call", () => {
  expect(readOptions({}, {})).toMatchObject({
    batchSize: 32,
    leaseDuration: "10m",
    embedTimeout: "5m",
    workers: 1,
    attempts: 5,
  });
  expect(readOptions({ embedTimeout: "1m" }, {}).leaseDuration).toBe("10m");
});

test("what is undefined is not set", () => {
  expect(readOptions({ workers: undefined, leaseDuration: undefined } as object, {})).toEqual(readOptions({}, {}));
});

test.each([
  [{ batchSize: 0 }, /batchSize is 0/],
  [{ workers: -1 }, /workers is -1/],
  [{ leaseDuration: "-1s" as "1s" }, /leaseDuration/],
  [{ bachSize: 3 }, /no option bachSize/],
])("%j is refused", (given, message) => {
  expect(() => apiCatalog(given as object, {})).toThrow(message);
});

describe("without an embedder", () => {
  const bench = useHoldfast("embedded");
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, { embedder: { provider: "off" }, works: false });
  });

  test("nothing is embedded, nothing pretends to be, and words are found", async () => {
    expect(scene.kinds).toEqual([]);
    await scene.call("PUT", `/${CATALOG}/specs/things`, makeDocument(3));
    expect(await scene.reaches("things", "not-indexed")).toMatchObject({ badge: "not indexed", embedded: 0 });
    const { body } = await scene.call("GET", `/${CATALOG}/search?q=thing`);
    expect(body).toMatchObject({ trouble: "No embedder is set.", isComplete: false });
    expect(body.hits).toHaveLength(3);
    expect(body.notes).toEqual(["By words only: No embedder is set."]);
    expect(await bench.hf.sql.query("select 1 from :schema.catalog_vectors")).toMatchObject({ rows: [] });
    expect((await scene.call("POST", `/${CATALOG}/specs/things/reembed`)).status).toBe(409);
    expect((await scene.call("GET", `/${CATALOG}/embedding-health`)).body.verdict).toBe("off");
  });

  test("a name may have spaces and any letters, and no slash", async () => {
    const name = encodeURIComponent("Bücher & mehr");
    expect((await scene.call("PUT", `/${CATALOG}/specs/${name}`, makeDocument(1))).status).toBe(201);
    expect(await scene.reaches("Bücher & mehr", "not-indexed")).toMatchObject({ operations: 1 });
    expect((await scene.call("PATCH", `/${CATALOG}/specs/${name}`, { name: "a/b" })).status).toBe(422);
    expect((await scene.call("DELETE", `/${CATALOG}/specs/${name}`)).body).toEqual({ deleted: true });
  });

  test("zeros, halves of characters, and a character at the place where a text is cut are no trouble", async () => {
    const long = (length: number): string => `${"x".repeat(length - 1)}😀`;
    const document = makeDocument(1) as { paths: Record<string, { get: Record<string, unknown> }> };
    document.paths["/things/0000"]!.get = {
      operationId: "a\u0000b\ud83d",
      summary: long(500),
      description: long(4_000),
      tags: [long(100)],
      responses: {},
    };
    document.paths[`/${long(999)}`] = { get: { description: "\udc00" } };
    // Three bytes each, and not to be made shorter: more than an index takes.
    const wide = Array.from({ length: 999 }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7_919) % 20_000))).join("");
    document.paths[`/${wide}`] = { get: { summary: "wide" } };
    const stored = await scene.call("PUT", `/${CATALOG}/specs/odd`, document);
    expect([stored.status, stored.body.operations]).toEqual([201, 3]);
    expect(
      (await scene.call("GET", `/${CATALOG}/search?q=${encodeURIComponent("x\u0000 reads ' | & ! \\ :*")}`)).status,
    ).toBe(200);
    await scene.call("DELETE", `/${CATALOG}/specs/odd`);
  });

  test("what is refused says why", async () => {
    const codes = await Promise.all(
      (
        [
          ["POST", "", { id: "No Good" }],
          ["POST", "", { id: CATALOG }],
          ["GET", "/unknown", undefined],
          ["DELETE", `/${CATALOG}/specs/unknown`, undefined],
          ["PUT", `/${CATALOG}/specs/x`, "no document"],
          ["GET", `/${CATALOG}/search?q=`, undefined],
          ["GET", `/${CATALOG}/search?q=x&by=magic`, undefined],
          ["GET", `/${CATALOG}/search?q=x&limit=many`, undefined],
          ["PUT", `/${CATALOG}/specs/%2e%2e%20`, {}],
          ["GET", `/${CATALOG}/embedding-jobs?status=odd`, undefined],
          ["GET", `/${CATALOG}/embedding-jobs?limit=-1`, undefined],
        ] as const
      ).map(async ([method, path, body]) => {
        const answer = await scene.call(method, path, body);
        expect(answer.body.error.hint).not.toBe("");
        return [answer.status, answer.body.error.code];
      }),
    );
    expect(codes).toEqual([
      [422, "CATALOG_ID_INVALID"],
      [409, "CATALOG_EXISTS"],
      [404, "CATALOG_UNKNOWN"],
      [404, "CATALOG_SPEC_UNKNOWN"],
      [422, "CATALOG_DOCUMENT_UNREADABLE"],
      [422, "CATALOG_QUERY_EMPTY"],
      [422, "CATALOG_BY_INVALID"],
      [422, "CATALOG_LIMIT_INVALID"],
      [422, "CATALOG_NAME_INVALID"],
      [422, "CATALOG_STATUS_INVALID"],
      [422, "CATALOG_LIMIT_INVALID"],
    ]);
  });
});
