// The contracts as an OpenAPI 3.1 document. Nothing is written twice: schemas come from the contracts' own, descriptions
// from their meta.
import { z } from "zod";
import { type AnyContract, hasJson, isBytes, isMedia } from "./contract.ts";
import { CONTRACTS } from "./contracts.ts";
import { HTTP_CODES } from "./errors.ts";

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document of the API, made from its contracts. */
export function openApiDocument(version: string): Json {
  const paths: Record<string, Json> = {};
  const schemas: Record<string, unknown> = { Error: errorSchema() };
  for (const [operationId, contract] of Object.entries<AnyContract>(CONTRACTS)) {
    const path = contract.path.replace(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[contract.method.toLowerCase()] = operation(operationId, contract, schemas);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Holdfast",
      version,
      description: "Durable background work on Postgres. Ids are texts, times are ISO 8601 in UTC.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: { token: { type: "http", scheme: "bearer", description: "holdfast token create makes one." } },
      responses: { Error: { description: "Why not.", content: asJson({ $ref: "#/components/schemas/Error" }) } },
    },
  };
}

function operation(operationId: string, contract: AnyContract, schemas: Record<string, unknown>): Json {
  const { access, summary, scope, body, output, answers, path } = contract;
  const content = isMedia(output) ? { [output.media]: { schema: {} } } : asJson(schemaOf(output, "output", schemas));
  const responses: Json = { default: { $ref: "#/components/responses/Error" } };
  for (const [status, description] of Object.entries(answers)) responses[status] = { description, content };
  const made: Json = {
    operationId,
    summary,
    tags: [tagOf(path)],
    parameters: [...parameters(contract, "path", schemas), ...parameters(contract, "query", schemas)],
    responses,
  };
  if (access === "public") made["security"] = [];
  else made["description"] = `Wants the role ${access}${scope === null ? "" : `, or a token of the ${scope}`}.`;
  if (body !== null) {
    made["requestBody"] = {
      required: true,
      content: isBytes(body)
        ? {
            ...Object.fromEntries(body.bytes.map((type) => [type, { schema: {} }])),
            ...(hasJson(body) && asJson(schemaOf(body.json, "input", schemas))),
          }
        : asJson(schemaOf(body, "input", schemas)),
    };
  }
  return made;
}

const tagOf = (path: string): string => /^\/api\/v1\/(\w+)/.exec(path)?.[1] ?? "health";

const asJson = (schema: unknown): Json => ({ "application/json": { schema } });

function parameters(contract: AnyContract, place: "path" | "query", schemas: Record<string, unknown>): Json[] {
  const fields = place === "path" ? contract.params : contract.query;
  return Object.entries(fields.shape).map(([name, field]) => {
    const { description, ...schema } = schemaOf(field, "input", schemas);
    return { name, in: place, required: place === "path", description, schema };
  });
}

/** A schema that has an id goes into `components` once, and is referred to. */
function schemaOf(schema: z.core.$ZodType, io: "input" | "output", schemas: Record<string, unknown>): Json {
  const made: Json = z.toJSONSchema(schema, {
    io,
    target: "draft-2020-12",
    unrepresentable: "any",
    override({ jsonSchema }) {
      // A number in a query is written as text, and is still a number to whoever calls.
      if (jsonSchema.type === "integer") delete jsonSchema.pattern;
    },
  });
  const { $schema: _, $defs, ...rest } = made;
  for (const [id, definition] of Object.entries<unknown>({ ...($defs as Json | undefined) })) {
    schemas[id] = withRefs(definition);
  }
  const own = rest["id"];
  if (typeof own !== "string") return withRefs(rest) as Json;
  schemas[own] = withRefs(rest);
  return { $ref: `#/components/schemas/${own}` };
}

/** `id` names a schema in the document; in JSON Schema it would be an unknown word. */
function withRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withRefs);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).filter(([name, inner]) => !(name === "id" && typeof inner === "string"));
  return Object.fromEntries(
    entries.map(([name, inner]) => [
      name,
      name === "$ref" && typeof inner === "string"
        ? inner.replace("#/$defs/", "#/components/schemas/")
        : withRefs(inner),
    ]),
  );
}

function errorSchema(): Json {
  const text = { type: "string" };
  const examples = Object.keys(HTTP_CODES).slice(0, 1);
  return {
    type: "object",
    properties: {
      error: {
        type: "object",
        properties: {
          code: { ...text, description: "Stable, for programs: docs/errors.md and docs/http.md.", examples },
          message: { ...text, description: "What is wrong, with the thing and the value." },
          hint: { ...text, description: "What to do next." },
        },
        required: ["code", "message", "hint"],
      },
    },
    required: ["error"],
  };
}
