// A request's path, query and body as its contract says they are, or an OptionInvalid that names the field, its value
// and what to give instead. The hint is the one that the contract's field has.
import { z } from "zod";
import { OptionInvalid } from "../errors.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import type { Fields } from "./contract.ts";

export function readParams<F extends Fields>(fields: F, params: Record<string, string>): z.output<F> {
  refuseNul(params);
  return parse(fields, params, "The path");
}

/** `?state=&kind=mail.send`: an empty parameter is one that was not given. */
export function readQuery<F extends Fields>(fields: F, query: URLSearchParams): z.output<F> {
  const known = Object.keys(fields.shape);
  const given = Object.fromEntries(query);
  refuseUnknown("The query", given, known, "parameter");
  const twice = known.find((name) => query.getAll(name).length > 1);
  if (twice !== undefined) {
    const hint = twice === "state" ? "Write several states with commas: state=dead,pending." : "Give it once.";
    throw new OptionInvalid(`The query has ${twice} more than once.`, hint);
  }
  refuseNul(given);
  const filled = Object.entries(given).filter(([, value]) => value !== "");
  return parse(fields, Object.fromEntries(filled), "The query");
}

export function readBody<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  if (schema instanceof z.ZodObject) {
    const known = Object.keys(schema.shape);
    if (body === null || typeof body !== "object" || Array.isArray(body)) {
      const example = known.slice(0, 2).map((name) => `"${name}": …`);
      throw new OptionInvalid("The body is not a JSON object.", `Send { ${example.join(", ")} }.`);
    }
    refuseUnknown("The body", body, known, "field");
  }
  return parse(schema, body, "The body");
}

function parse<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  const name = path.map(String).join(".");
  const found = path.reduce<unknown>((at, part) => (isIndexable(at) ? at[part] : undefined), value);
  if (name === "") throw new OptionInvalid(`${where} does not have the right form.`, message);
  if (found === undefined) throw new OptionInvalid(`${where} has no ${name}.`, message);
  // A number in a URL is a text of digits; quotes around it would only puzzle.
  const isDigits = where !== "The body" && typeof found === "string" && /^-?\d{1,15}$/.test(found);
  throw new OptionInvalid(`${name} is ${isDigits ? found : JSON.stringify(found).slice(0, 100)}.`, message);
}

/** PostgreSQL's texts cannot hold it, and would say so as a failure of ours. */
function refuseNul(values: Record<string, string>): void {
  const found = Object.entries(values).find(([, value]) => value.includes("\0"));
  if (found) throw new OptionInvalid(`${found[0]} holds a NUL character.`, "Leave it out.");
}

function isIndexable(value: unknown): value is Record<PropertyKey, unknown> {
  return value !== null && typeof value === "object";
}
