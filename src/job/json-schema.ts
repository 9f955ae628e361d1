// A kind's schema as JSON Schema, where the schema's library can say it: for forms, and for examples.
import type { StandardSchemaV1 } from "@standard-schema/spec";

export function jsonSchemaOf({ "~standard": standard }: StandardSchemaV1): Record<string, unknown> | null {
  try {
    return hasJsonSchema(standard) ? standard.jsonSchema.input({ target: "draft-2020-12" }) : null;
  } catch {
    // A schema that JSON Schema cannot say.
    return null;
  }
}

/** A later addition to the standard. */
function hasJsonSchema(
  standard: object,
): standard is { jsonSchema: { input(options: object): Record<string, unknown> } } {
  if (!("jsonSchema" in standard)) return false;
  const { jsonSchema } = standard;
  return jsonSchema !== null && typeof jsonSchema === "object" && "input" in jsonSchema;
}
