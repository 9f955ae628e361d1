import { OptionInvalid } from "../errors.ts";

/** Any name Postgres itself can keep, as a quoted identifier. */
export function quoteSchema(schema: string): string {
  const bytes = typeof schema === "string" ? Buffer.byteLength(schema) : 0;
  if (bytes < 1 || bytes > 63 || schema.includes("\0") || schema.startsWith("pg_")) {
    throw new OptionInvalid(
      `schema is ${JSON.stringify(schema)}, which cannot name a schema.`,
      "Use 1 to 63 bytes of text that does not start with pg_.",
    );
  }
  return `"${schema.replaceAll('"', '""')}"`;
}
