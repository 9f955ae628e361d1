// Fields that several contracts have. What a field's error says is the hint that a caller gets: what to give instead.
import { z } from "zod";

export const isoTime = z.string().meta({ format: "date-time", description: "ISO 8601, in UTC" });
export const uuid = z.string().meta({ format: "uuid" });

/** An id in a path. Whether it is one is said by whoever looks it up. */
export const idParams = z.strictObject({ id: uuid.transform((id) => id.toLowerCase()) });

/** A whole number in a query, where everything arrives as text. */
export function wholeNumber(least: number, most: number, description: string) {
  const hint = `Give a whole number from ${least} to ${most}.`;
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: hint })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error: hint })
    .optional()
    .meta({ type: "integer", minimum: least, maximum: most, description });
}

/** One word of a list, in a query. */
export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words, description: string) {
  return z
    .enum(words, { error: `Give one of ${words.join(", ")}.` })
    .optional()
    .meta({ description });
}

export const anyText = (description: string) => z.string().optional().meta({ description });

export const cursor = z.string().optional().meta({ description: "The `next` of the page before." });
