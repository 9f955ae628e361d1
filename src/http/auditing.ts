// Writes down what people did: who, which contract, to what, with which answer. Before the answer goes out, so that what
// was done and is known to be done is also written down; an entry that cannot be written is a failure in the log, not in
// the answer, because what was asked for has happened.
import type { Audit } from "../client/audit.ts";
import type { Caller } from "../shared/caller.ts";
import { NOBODY } from "./callers.ts";
import type { Answer } from "./routes/route.ts";

export interface Audited {
  caller: Caller;
  /** The contract's name. */
  action: string;
  request: Request;
  answered: Answer<unknown> | Response;
}

export type Auditing = (audited: Audited) => Promise<void>;

export function makeAuditing(audit: Audit, onError: (error: unknown, incident: string) => void): Auditing {
  return async ({ caller, action, request, answered }) => {
    // Whoever did not come in did nothing; and nobody may fill the table from outside.
    if (caller === NOBODY) return;
    const status = answered instanceof Response ? answered.status : (answered.status ?? 200);
    try {
      await audit.add({ caller: caller.name, action, target: targetOf(request, answered), status });
    } catch (error) {
      onError(error, `audit of ${action}`);
    }
  };
}

/** What was made, if something was; otherwise what stood in the address. */
function targetOf(request: Request, answered: Answer<unknown> | Response): string {
  const made: unknown = answered instanceof Response ? null : answered.body;
  if (made !== null && typeof made === "object" && "id" in made) return String(made.id);
  const { pathname, search } = new URL(request.url);
  return pathname.replace(/^\/api\/v1/, "") + search;
}
