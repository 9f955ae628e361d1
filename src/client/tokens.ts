// hf.tokens: who may call the HTTP API. A token is shown once, when it is made; what is stored is a hash.
//
// A token is hf_<id>_<secret>: the id finds the row, and the hashes of the secrets are compared in constant time, so
// that neither the answer nor its time says how close a guess was.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { NotFound, OptionInvalid } from "../errors.ts";
import { cleanText } from "../job/storable.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { type Role, ROLES } from "../shared/roles.ts";
import { isUuid, uuidv7 } from "../shared/uuid.ts";
import type { Store } from "../store/sql.ts";
import { findToken, touchToken } from "../store/tokens/find.ts";
import { insertToken } from "../store/tokens/insert.ts";
import { hasUnscopedToken, listTokens } from "../store/tokens/list.ts";
import { revokeToken } from "../store/tokens/revoke.ts";
import type { AccessToken } from "../store/tokens/rows.ts";

/** What a new access token may do, for whom, and until when. */
export interface NewToken {
  /** How people recognise it. */
  name: string;
  /** What it may do; the least is the default. */
  role?: Role | undefined;
  /** It opens only what is for this recipient. */
  recipient?: string | undefined;
  /** It opens only what is this owner's. */
  owner?: string | undefined;
  /** How long it counts; for ever if not given. */
  expires?: Duration | undefined;
}

/** `hf.tokens`: who may call the HTTP API. Tokens are shown once and stored as hashes. */
export interface Tokens {
  /** `token` is the only copy there will ever be. */
  create(options: NewToken): Promise<AccessToken & { token: string }>;
  list(): Promise<AccessToken[]>;
  /** It opens nothing from the next request on. */
  revoke(id: string): Promise<void>;
  /** What a token that somebody shows stands for; undefined if for nothing. */
  check(token: string): Promise<AccessToken | undefined>;
  /** Whether there is a token that is not bound to a recipient or an owner. */
  hasUnscoped(): Promise<boolean>;
}

const FORM = /^hf_([0-9a-f]{32})_([\w-]{43})$/;
const LONGEST = 200;

export function makeTokens(store: Store): Tokens {
  return {
    async create(options) {
      refuseUnknown("tokens.create()", options, ["name", "role", "recipient", "owner", "expires"]);
      const { role = "viewer", expires } = options;
      if (!ROLES.includes(role)) {
        throw new OptionInvalid(`role is ${JSON.stringify(role)}.`, `Give one of ${ROLES.join(", ")}.`);
      }
      const recipient = optionalText("recipient", options.recipient);
      const owner = optionalText("owner", options.owner);
      if (recipient !== null && owner !== null) {
        throw new OptionInvalid(
          "The token has both a recipient and an owner.",
          "Give one of them, or make two tokens.",
        );
      }
      if (role === "admin" && (recipient !== null || owner !== null)) {
        throw new OptionInvalid("An admin's token cannot be bound to somebody.", "Give the role viewer or operator.");
      }
      const id = uuidv7();
      const secret = randomBytes(32).toString("base64url");
      const made = await insertToken(store, {
        id,
        secretHash: digest(secret).toString("hex"),
        name: text("name", options.name),
        role,
        recipient,
        owner,
        expiresInMs: expires === undefined ? null : durationMs("expires", expires),
      });
      return { ...made, token: `hf_${id.replaceAll("-", "")}_${secret}` };
    },
    list: () => listTokens(store),
    async revoke(id) {
      if (!isUuid(id))
        throw new OptionInvalid(`The token's id is ${JSON.stringify(id)}.`, "See `holdfast token list`.");
      if (await revokeToken(store, id)) return;
      throw new NotFound(`There is no token ${id}.`, "See `holdfast token list`.");
    },
    async check(given) {
      const [, hex, secret] = FORM.exec(given) ?? [];
      if (hex === undefined || secret === undefined) return undefined;
      const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
      const found = await findToken(store, id);
      // Nobody's id takes as long as somebody's.
      const expected = found ? Buffer.from(found.secretHash, "hex") : digest("");
      if (!timingSafeEqual(digest(secret), expected) || !found) return undefined;
      if (isDueForTouch(found.token.lastUsedAt)) touchToken(store, id).catch(() => {});
      return found.token;
    },
    hasUnscoped: () => hasUnscopedToken(store),
  };
}

/** Whether to ask at all; the statement itself goes by the database's clock. */
function isDueForTouch(lastUsedAt: Date | null): boolean {
  return lastUsedAt === null || Math.abs(Date.now() - lastUsedAt.getTime()) > 60_000;
}

function digest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

function optionalText(name: string, value: unknown): string | null {
  return value === undefined || value === null ? null : text(name, value);
}

function text(name: string, value: unknown): string {
  if (typeof value === "string" && value.trim() !== "" && cleanText(value, LONGEST) === value) {
    return value;
  }
  const shown = value === undefined ? "not given" : JSON.stringify(value).slice(0, 100);
  throw new OptionInvalid(`${name} is ${shown}.`, `Give a text of 1 to ${LONGEST} characters.`);
}
