// Fields that several contracts have. What a field's error says is the hint that a caller gets: what to give instead.
import { z } from "zod";
import { OptionInvalid } from "../errors.ts";
import { refuseRoundedIntegers } from "../job/storable.ts";

export const isoTime = z.string().meta({ format: "date-time", description: "ISO 8601, in UTC" });
export const uuid = z.string().meta({ format: "uuid" });

/** An id in a path. Whether it is one is said by whoever looks it up. */
export const idParams = z.strictObject({ id: uuid.transform((id) => id.toLowerCase()) });

/** A whole number in a query, where everything arrives as text. */
export function wholeNumber(least: number, most: number, description: string) {
  const hint = `Give a whole number from ${least} to ${most}.`;
  return z
    .string()
    .regex(least < 0 ? /^-?\d{1,9}$/ : /^\d{1,9}$/, { error: hint })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error: hint })
    .optional()
    .meta({ type: "integer", minimum: least, maximum: most, description });
}

/** Several whole numbers from 1 with commas, in a query. */
export const wholeNumbers = (description: string) =>
  z
    .string()
    .regex(/^\d{1,15}(,\d{1,15})*$/, { error: "Give whole numbers with commas: 4,9,12." })
    .transform((text) => text.split(",").map(Number))
    .optional()
    .meta({ description, examples: ["4,9,12"] });

/** JSON in a query: what a body would have as it is. */
export function jsonText<S extends z.ZodType>(schema: S, example: string, description: string) {
  return z
    .string()
    .transform((text, context): unknown => {
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        context.addIssue({ code: "custom", message: `Give JSON, escaped for a URL: ${example}` });
        return z.NEVER;
      }
      refuseRoundedIntegers("The query", text);
      return value;
    })
    .pipe(schema)
    .optional()
    .meta({ description, examples: [example] });
}

/** One word of a list, in a query. */
export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words, description: string) {
  return z
    .enum(words, { error: `Give one of ${words.join(", ")}.` })
    .optional()
    .meta({ description });
}

/** Some words of a list with commas, in a query. */
export const words = <const Word extends string>(name: string, known: readonly Word[]) =>
  z
    .string()
    .transform((text) => text.split(",").map((word) => toWord(name, word, known)))
    .optional()
    .meta({ description: `${known.join(", ")}; several with commas.` });

function toWord<Word extends string>(name: string, text: string, known: readonly Word[]): Word {
  const word = known.find((each) => each === text);
  if (word !== undefined) return word;
  throw new OptionInvalid(`${name} is ${JSON.stringify(text)}.`, `Give one of ${known.join(", ")}.`);
}

/** A text in a body. The API itself shows what was not given as null, so null is "not given" here too. */
export const textField = (name: string, example: string, description?: string) =>
  z
    .string({ error: `Give a text: "${name}": "${example}".` })
    .nullish()
    .meta({ ...(description !== undefined && { description }), examples: [example] });

export const anyText = (description: string) => z.string().optional().meta({ description });

export const cursor = z.string().optional().meta({ description: "The `next` of the page before." });
