// Removes a schema with everything in it: only ones that were made to be thrown away.
import type { Db } from "../db/db.ts";
import { quoteSchema } from "../shared/quote-schema.ts";

const TRIAL = "holdfast_trial_";

/** The name of a schema that `dropTrialSchema` will take. */
export const trialSchema = (suffix: string): string => `${TRIAL}${suffix}`;

export async function dropTrialSchema(db: Db, schema: string): Promise<void> {
  if (!schema.startsWith(TRIAL)) throw new Error(`${schema} is no schema for a trial.`);
  await db.script(`drop schema if exists ${quoteSchema(schema)} cascade`);
}
