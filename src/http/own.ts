// What a token that is bound to an owner may ask for: its owner's.
import type { Caller } from "../shared/caller.ts";
import { Refusal } from "./errors.ts";

export function refuseOtherOwner(owner: string | null, caller: Caller): void {
  if (caller.owner === null || owner === caller.owner) return;
  throw forbidden(
    `This token is for what is owned by ${JSON.stringify(caller.owner)} only.`,
    "Leave the owner out, or use a token that may.",
  );
}

export const forbidden = (message: string, hint: string): Refusal =>
  new Refusal("HOLDFAST_HTTP_FORBIDDEN", message, hint);
