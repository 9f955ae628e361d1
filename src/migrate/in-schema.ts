// The SQL of a migration, for one schema.
import { quoteSchema } from "../shared/quote-schema.ts";

/** With the schema's name for `:schema`. */
export function inSchema(sql: string, schema: string): string {
  const quoted = quoteSchema(schema);
  return withFreeQuotes(sql, quoted).replaceAll(":schema", () => quoted);
}

/** A schema may have any name: the dollar quotes around bodies must not be part of it. */
function withFreeQuotes(sql: string, quoted: string): string {
  let text = sql;
  for (const quote of new Set(sql.match(/\$\w*\$/g))) {
    let free = quote;
    while (quoted.includes(free)) free = `$q${free.slice(1)}`;
    text = text.replaceAll(quote, () => free);
  }
  return text;
}
