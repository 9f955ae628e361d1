// The name of an inbox: a recipient's, or that of an owner of batches, to whom results are handed back there. It stands in
// URLs, logs and tokens.
import { OptionInvalid } from "../errors.ts";

const FORM = /^[A-Za-z0-9_][A-Za-z0-9_.:@+~-]{0,199}$/;

/** `what` is it the name of: "The recipient". */
export function checkInboxName(what: string, name: unknown): string {
  if (typeof name === "string" && FORM.test(name)) return name;
  throw new OptionInvalid(
    `${what} is ${typeof name === "string" ? JSON.stringify(name.slice(0, 100)) : String(name)}.`,
    "Give 1 to 200 letters, digits and _ . : @ + ~ -, beginning with a letter, a digit or _.",
  );
}
