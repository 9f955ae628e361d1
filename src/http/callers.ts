// Who is asking, and may they. A caller shows a token: the server's own (HOLDFAST_TOKEN, an admin's), or one that
// hf.tokens made. Hashes are compared, in constant time. Without a token only the embedded tier on this machine is
// open, and even there a token that is shown must be one that counts.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Tokens } from "../client/tokens.ts";
import { OptionInvalid } from "../errors.ts";
import type { Caller } from "../shared/caller.ts";
import { hasRole, type Role, ROLES } from "../shared/roles.ts";
import type { AnyContract } from "./contract.ts";
import { Refusal } from "./errors.ts";

/** For a server that knows its callers by itself: null refuses. */
export type Authorize = (request: Request) => GivenCaller | null | Promise<GivenCaller | null>;

/** Who calls, as a server of your own has found out. */
export interface GivenCaller {
  name?: string;
  role: Role;
  recipient?: string | null;
  owner?: string | null;
}

export interface CallersInput {
  tokens: Tokens;
  token: string | undefined;
  authorize: Authorize | undefined;
  /** Whoever comes without a token is an admin. */
  anonymous: boolean;
}

export const NOBODY: Caller = { name: "anonymous", role: "viewer", recipient: null, owner: null };
const LOCAL_ADMIN: Caller = { name: "local", role: "admin", recipient: null, owner: null };
const TOKEN_ADMIN: Caller = { name: "HOLDFAST_TOKEN", role: "admin", recipient: null, owner: null };

export type Identify = (request: Request) => Promise<Caller>;

export function makeIdentify({ tokens, token, authorize, anonymous }: CallersInput): Identify {
  if (token !== undefined) checkTokenForm(token);
  const expected = token === undefined ? null : digest(token);

  return async (request) => {
    if (authorize) {
      const given = await authorize(request);
      if (given) return asCaller(given);
    }
    const header = request.headers.get("authorization");
    if (header === null && anonymous) return LOCAL_ADMIN;
    const shown = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
    if (shown === undefined) throw unauthorized("This server wants a token.");
    if (expected !== null && timingSafeEqual(digest(shown), expected)) return TOKEN_ADMIN;
    const found = await tokens.check(shown);
    if (!found) throw unauthorized("The token is not one that this server takes, or not any more.");
    return found;
  };
}

/** Throws unless this caller may use this route, with these values in its path. */
export function admit(
  caller: Caller,
  { access, scope }: Pick<AnyContract, "access" | "scope">,
  params: Record<string, string>,
): void {
  if (access === "public") return;
  if (caller.recipient !== null && !(scope === "recipient" && params["recipient"] === caller.recipient)) {
    throw forbidden(`This token is for the recipient ${JSON.stringify(caller.recipient)} only.`);
  }
  if (caller.owner !== null && scope !== "owner") {
    throw forbidden(`This token is for what is owned by ${JSON.stringify(caller.owner)} only.`);
  }
  admitRole(caller, access);
}

function admitRole(caller: Caller, least: Role): void {
  if (hasRole(caller.role, least)) return;
  throw forbidden(`This needs the role ${least}, and the token has the role ${caller.role}.`);
}

function asCaller({ name = "authorize()", role, recipient = null, owner = null }: GivenCaller): Caller {
  if (!ROLES.includes(role)) {
    throw new TypeError(`authorize() gave the role ${JSON.stringify(role)}; there are ${ROLES.join(", ")}.`);
  }
  return { name, role, recipient, owner };
}

function forbidden(message: string): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_FORBIDDEN",
    message,
    "Use a token that may: `holdfast token create --role …` makes one.",
  );
}

function unauthorized(message: string): Refusal {
  return new Refusal(
    "HOLDFAST_HTTP_UNAUTHORIZED",
    message,
    "Send the header Authorization: Bearer <token>, with HOLDFAST_TOKEN of the server or what `holdfast token create` printed.",
    { "www-authenticate": 'Bearer realm="holdfast"' },
  );
}

function checkTokenForm(token: string): void {
  // A header cannot carry anything else.
  if (/^[\x21-\x7e]+$/.test(token)) return;
  throw new OptionInvalid(
    token === "" ? "The token is empty." : "The token holds a space or a character that is not ASCII.",
    "Use a long random text of letters and digits.",
  );
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
