// What `holdfast dev` says to try fits the schema of the kind.
import { expect, test } from "vitest";
import { z } from "zod";
import { examplePayload } from "#src/cli/example-payload.js";
import { jsonSchemaOf } from "#src/job/json-schema.js";

const SCHEMAS: Record<string, z.ZodType> = {
  "a text that must not be empty": z.object({ name: z.string().min(1) }),
  "formats and limits": z.object({
    to: z.email(),
    page: z.url(),
    id: z.uuid(),
    at: z.iso.datetime(),
    n: z.int().min(5),
  }),
  "fields inside of fields": z.object({
    user: z.object({ tags: z.array(z.string()).min(1), role: z.enum(["a", "b"]) }),
  }),
  "one of several": z.object({ what: z.union([z.number(), z.string()]), or: z.literal("this") }),
  "no object at all": z.string(),
};

test.each(Object.entries(SCHEMAS))("an example of %s is taken", (_, schema) => {
  expect(schema.safeParse(examplePayload(jsonSchemaOf(schema))).success).toBe(true);
});

test("what need not be given is left out; without a schema it is an empty object", () => {
  const schema = z.object({ name: z.string(), nick: z.string().optional() });
  expect(examplePayload(jsonSchemaOf(schema))).toEqual({ name: "Ada" });
  expect(examplePayload(null)).toEqual({});
});
