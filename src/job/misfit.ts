import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PayloadInvalid } from "../errors.ts";

const MOST_ISSUES = 10;

/** What a schema has against a value, place by place. `what` is the value: "The payload of mail.send". */
export function misfit(what: string, found: readonly StandardSchemaV1.Issue[], hint: string): PayloadInvalid {
  const issues = found.slice(0, MOST_ISSUES).map(({ path = [], message }) => {
    const place = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return place === "" ? message : `${place}: ${message}`;
  });
  return new PayloadInvalid(`${what} does not fit its schema: ${issues.join("; ")}`, hint);
}
