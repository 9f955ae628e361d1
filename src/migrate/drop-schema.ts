// Takes a whole schema away, with everything in it: for one that was made to be thrown away.
import type { Db } from "../db/db.ts";
import { quoteSchema } from "../shared/quote-schema.ts";

export async function dropSchema(db: Db, schema: string): Promise<void> {
  await db.query(`drop schema if exists ${quoteSchema(schema)} cascade`);
}
