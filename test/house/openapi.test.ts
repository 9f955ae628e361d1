// The OpenAPI document is made from the contracts, so no route can be missing from it; this holds that it stays so, and
// that what is made is OpenAPI.
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { type AnyContract, isBytes, isMedia } from "#src/http/contract.js";
import { CONTRACTS } from "#src/http/contracts.js";
import { openApiDocument } from "#src/http/openapi.js";

interface Operation {
  operationId: string;
  security?: unknown[];
  parameters: { name: string; in: string }[];
  requestBody?: { content: object };
  responses: Record<string, { content?: object }>;
}

// A copy: the validator resolves references in place.
const made = (): Record<string, unknown> & { paths: Record<string, Record<string, Operation>> } =>
  JSON.parse(JSON.stringify(openApiDocument("1.2.3"))) as never;

test("every route is in the document, with its parameters, its body and its answers, and nothing else is", () => {
  const { paths } = made();
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
  );
  const real = Object.entries(CONTRACTS).map(
    ([name, { method, path }]) => `${name} ${method} ${path.replace(/:(\w+)/g, "{$1}")}`,
  );
  expect(documented.toSorted()).toEqual(real.toSorted());
  for (const contract of Object.values<AnyContract>(CONTRACTS)) {
    const operation = paths[contract.path.replace(/:(\w+)/g, "{$1}")]![contract.method.toLowerCase()]!;
    const inPath = [...contract.path.matchAll(/:(\w+)/g)].map(([, name]) => name);
    expect(operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)).toEqual(inPath);
    expect(Object.keys(contract.params.shape)).toEqual(inPath);
    expect(operation.parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name)).toEqual(
      Object.keys(contract.query.shape),
    );
    const sent = contract.body === null ? [] : isBytes(contract.body) ? contract.body.bytes : ["application/json"];
    expect(Object.keys(operation.requestBody?.content ?? {})).toEqual(sent);
    const type = isMedia(contract.output) ? contract.output.media : "application/json";
    for (const status of Object.keys(contract.answers)) {
      expect(Object.keys(operation.responses[status]?.content ?? {})).toEqual([type]);
    }
    expect(operation.security?.length === 0).toBe(contract.access === "public");
  }
});

test("it is valid OpenAPI 3.1, and every reference in it leads somewhere", async () => {
  const result = await new Validator().validate(made());
  expect(result.valid, JSON.stringify(result.errors)).toBe(true);
  const document = made();
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
    ([, reference = ""]) => reference,
  );
  expect(references.length).toBeGreaterThan(10);
  for (const reference of references) {
    const target = reference
      .slice("#/".length)
      .split("/")
      .reduce<unknown>((at, part) => (at as Record<string, unknown>)[part], document);
    expect(target, reference).toBeTypeOf("object");
  }
});

test("a document that lacks something is not valid", async () => {
  const document = made();
  delete document["info"];
  expect((await new Validator().validate(document)).valid).toBe(false);
});
