// A payload that a newcomer can send as it stands: the fields that a schema requires, each with something that fits.
interface Schema {
  type?: string | string[];
  const?: unknown;
  default?: unknown;
  enum?: unknown[];
  examples?: unknown[];
  format?: string;
  minimum?: number;
  minItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
}

const TEXTS: Readonly<Record<string, string>> = {
  email: "ada@example.com",
  uri: "https://example.com",
  uuid: "00000000-0000-4000-8000-000000000000",
  date: "2030-01-31",
  time: "08:00:00",
  "date-time": "2030-01-31T08:00:00Z",
};

/** {} where nothing is known. */
export function examplePayload(schema: Record<string, unknown> | null): unknown {
  return schema === null ? {} : fitting(schema as Schema, "");
}

function fitting(schema: Schema, name: string): unknown {
  const { const: only, default: usual, enum: choices, examples, anyOf, oneOf } = schema;
  const given = [only, examples?.[0], usual, choices?.[0]].find((value) => value !== undefined);
  if (given !== undefined) return given;
  const first = (anyOf ?? oneOf)?.[0];
  if (first) return fitting(first, name);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "string":
      return TEXTS[schema.format ?? ""] ?? (name === "name" ? "Ada" : "text");
    case "integer":
    case "number":
      return Math.max(1, schema.minimum ?? 1);
    case "boolean":
      return true;
    case "array":
      return Array.from({ length: schema.minItems ?? 0 }, () => fitting(schema.items ?? {}, ""));
    case "null":
      return null;
    default:
      return Object.fromEntries(
        (schema.required ?? []).map((field) => [field, fitting(schema.properties?.[field] ?? {}, field)]),
      );
  }
}
