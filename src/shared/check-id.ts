// An id that somebody gave, as the database writes it; or the error says what was given.
import { OptionInvalid } from "../errors.ts";
import { isUuid } from "./uuid.ts";

export function checkId(id: unknown, what: string): string {
  if (!isUuid(id)) throw new OptionInvalid(`${what} is ${JSON.stringify(id)}.`, "Ids look like 0192a1b2-….");
  return id.toLowerCase();
}
