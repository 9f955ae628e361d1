// Documents of every format become operations; what is none is refused with the reason, and hurts nobody.
import type { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { parseDocument } from "../src/parse/parse-document.ts";

const OPENAPI_30 = {
  openapi: "3.0.3",
  info: { title: "Pets", version: "1.2" },
  paths: {
    "/pets/{petId}": {
      parameters: [{ $ref: "#/components/parameters/Id" }],
      get: {
        operationId: "showPetById",
        summary: "Info for a pet",
        tags: ["pets"],
        responses: { 200: { description: "ok" } },
      },
      delete: { description: "Removes it for ever.", responses: { 204: { description: "gone" } } },
    },
  },
  components: {
    parameters: {
      Id: { name: "petId", in: "path", required: true, description: "Which pet", schema: { type: "string" } },
    },
  },
};
const OPENAPI_31 = `
openapi: 3.1.0
info: { title: Boats, version: "2" }
paths:
  /boats:
    $ref: "#/components/pathItems/Boats"
components:
  pathItems:
    Boats:
      get: { summary: All boats }
      post: { summary: Adds a boat }
`;
const SWAGGER = `{"swagger":"2.0","info":{"title":"Old","version":"0"},"paths":{"/old":{"get":{"summary":"The old one","responses":{"200":{"description":"ok"}}}}}}`;

describe("a document", () => {
  test("OpenAPI 3.0 in JSON: operations with their texts, references and names taken apart", async () => {
    const parsed = await parseDocument(JSON.stringify(OPENAPI_30));
    expect(parsed).toMatchObject({ format: "OpenAPI 3.0", title: "Pets", version: "1.2", problems: [] });
    expect(parsed.operations.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /pets/{petId}",
      "DELETE /pets/{petId}",
    ]);
    expect(parsed.operations[0]!.content).toBe(
      "GET /pets/{petId}\nshow Pet By Id pets pet Id\nInfo for a pet\npets\nParameters\npet Id: Which pet",
    );
    expect(parsed.operations[1]!.content).toContain("Removes it for ever.");
  });

  test("OpenAPI 3.1 in YAML, with a path behind a reference; Swagger 2", async () => {
    const boats = await parseDocument(OPENAPI_31);
    expect(boats.format).toBe("OpenAPI 3.1");
    expect(boats.operations.map(({ summary }) => summary)).toEqual(["All boats", "Adds a boat"]);
    const old = await parseDocument(SWAGGER);
    expect(old).toMatchObject({ format: "Swagger 2.0", problems: [] });
    expect(old.operations).toHaveLength(1);
  });

  test("what its schema says against it is listed, and it is taken all the same", async () => {
    const parsed = await parseDocument(`{"openapi":"3.0.0","paths":{"/x":{"get":{"summary":"No responses"}}}}`);
    expect(parsed.operations).toHaveLength(1);
    expect(parsed.problems.length).toBeGreaterThan(0);
  });

  test.each([
    ["", /empty/],
    ["{", /not JSON/],
    ["just words", /not an object/],
    ["a: b: c: d", /neither JSON nor YAML/],
    ["{}", /neither "openapi" nor "swagger"/],
    [`{"openapi":"3.2.0"}`, /version "3\.2\.0"/],
  ])("%j is refused", async (text, reason) => {
    await expect(parseDocument(text)).rejects.toThrow(reason);
    await expect(parseDocument(text)).rejects.toMatchObject({ status: 422, code: "CATALOG_DOCUMENT_UNREADABLE" });
  });

  test("a version without quotes, which YAML makes a number of, and one without its last part are read", async () => {
    const formats = ["swagger: 2.0", "openapi: 3.0", "openapi: 3.1", 'openapi: "3.0"'].map(
      async (line) => (await parseDocument(`${line}\npaths: {}`)).format,
    );
    expect(await Promise.all(formats)).toEqual(["Swagger 2.0", "OpenAPI 3.0", "OpenAPI 3.1", "OpenAPI 3.0"]);
  });

  test("what is no text where a text belongs is no fault of the server", async () => {
    const odd = `{"toString":1,"valueOf":1}`;
    const parsed = await parseDocument(`{"openapi":"3.0.0","info":{"title":${odd},"version":${odd}},"paths":${odd}}`);
    expect(parsed).toMatchObject({ title: "", version: "", operations: [] });
    for (const text of [`{"swagger":${odd}}`, "openapi: &a [*a]"]) {
      await expect(parseDocument(text)).rejects.toMatchObject({ code: "CATALOG_DOCUMENT_UNREADABLE" });
    }
  });

  test("names of the language's own are names like others", async () => {
    const parsed = await parseDocument(
      `{"openapi":"3.0.0","__proto__":{"paths":1},"paths":{"__proto__":{"get":{}},"/constructor":{"__proto__":{"put":{}},
       "get":{"parameters":[{"$ref":"#/constructor"},{"$ref":"#/__proto__"}]}}}}`,
    );
    expect(parsed.operations.map(({ content }) => content)).toEqual(["GET /constructor\nconstructor"]);
  });

  test("one anchor that is used for 300 operations is no bomb", async () => {
    const paths = Array.from({ length: 300 }, (_, n) => `  /p${n}: { get: { responses: *all } }`);
    const text = `openapi: 3.0.0\ninfo: { title: a, version: "1" }\nx-all: &all { "200": { description: ok } }\npaths:\n${paths.join("\n")}`;
    expect(await parseDocument(text)).toMatchObject({ problems: [], operations: { length: 300 } });
  });

  test("a bomb of aliases, references in a circle and to elsewhere, and a time that is over: refused or passed over", async () => {
    const levels = Array.from(
      { length: 12 },
      (_, n) => `l${n + 1}: &l${n + 1} [${Array(10).fill(`*l${n}`).join(",")}]`,
    );
    await expect(parseDocument(`openapi: 3.0.0\nl0: &l0 x\n${levels.join("\n")}`)).rejects.toThrow(/alias/i);
    const circle = await parseDocument(
      `{"openapi":"3.0.0","info":{"title":"c","version":"1"},"paths":{"/a":{"$ref":"#/paths/~1b"},"/b":{"$ref":"#/paths/~1a"},"/c":{"$ref":"http://127.0.0.1:1/x"}}}`,
    );
    expect(circle.operations).toEqual([]);
    await expect(parseDocument(SWAGGER, { timeoutMs: 1 })).rejects.toMatchObject({ code: "CATALOG_DOCUMENT_TOO_MUCH" });
  });

  test("many at once are read a few at a time; more than can wait are refused, and the next is taken", async () => {
    let [running, most] = [0, 0];
    const onWorker = (worker: Worker): void => {
      running += 1;
      most = Math.max(most, running);
      worker.once("exit", () => (running -= 1));
    };
    process.on("worker", onWorker);
    try {
      const ends = await Promise.allSettled(Array.from({ length: 30 }, () => parseDocument(SWAGGER)));
      const refused = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
      expect(ends.length - refused.length).toBe(10);
      for (const reason of refused) expect(reason).toMatchObject({ status: 503, code: "CATALOG_BUSY" });
      expect(most).toBe(2);
      expect(await parseDocument(SWAGGER)).toMatchObject({ format: "Swagger 2.0" });
      // One that is refused gives its place back too.
      await Promise.allSettled(Array.from({ length: 10 }, () => parseDocument("{")));
      expect(await parseDocument(SWAGGER)).toMatchObject({ format: "Swagger 2.0" });
    } finally {
      process.off("worker", onWorker);
    }
  }, 60_000);
});
