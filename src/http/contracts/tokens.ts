// /api/v1/tokens: who may call. For admins only.
import { z } from "zod";
import { ROLES } from "../../shared/roles.ts";
import { contract } from "../contract.ts";
import { idParams, isoTime, textField, uuid } from "../fields.ts";

const accessToken = z
  .object({
    id: uuid,
    name: z.string(),
    role: z.enum(ROLES),
    recipient: z.string().nullable().meta({ description: "It opens only what is for this recipient." }),
    owner: z.string().nullable().meta({ description: "It opens only what is this owner's." }),
    createdAt: isoTime,
    expiresAt: isoTime.nullable(),
    lastUsedAt: isoTime.nullable().meta({ description: "To the minute." }),
    revokedAt: isoTime.nullable(),
  })
  .meta({ id: "AccessToken" });

export type AccessTokenView = z.output<typeof accessToken>;

const newToken = z
  .strictObject({
    name: z.string({ error: 'Give a text: "name": "dashboard of Ada".' }).meta({ examples: ["dashboard of Ada"] }),
    role: z
      .enum(ROLES, { error: `Give one of ${ROLES.join(", ")}.` })
      .nullish()
      .meta({ description: "viewer if not given." }),
    recipient: textField("recipient", "ws-17"),
    owner: textField("owner", "user-5"),
    expires: textField("expires", "30d"),
  })
  .meta({ id: "NewAccessToken" });

export type NewTokenBody = z.input<typeof newToken>;

const admin = { access: "admin" } as const;

export const tokenContracts = {
  createToken: contract({
    ...admin,
    method: "POST",
    path: "/api/v1/tokens",
    summary: "Make a token. This is the only answer that ever shows it.",
    body: newToken,
    output: accessToken.extend({ token: z.string() }),
    answers: { 201: "It counts from now on." },
  }),
  listTokens: contract({
    ...admin,
    method: "GET",
    path: "/api/v1/tokens",
    summary: "All tokens, without their secrets, which are not stored.",
    output: z.object({ tokens: z.array(accessToken) }),
    answers: { 200: "At most 1,000; revoked ones last." },
  }),
  revokeToken: contract({
    ...admin,
    method: "POST",
    path: "/api/v1/tokens/:id/revoke",
    summary: "From the next request on it opens nothing.",
    params: idParams,
    output: z.object({ id: uuid, revoked: z.literal(true) }),
    answers: { 200: "It is revoked; twice is once." },
  }),
};
