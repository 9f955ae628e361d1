// /api/v1/tokens.
import type { Holdfast } from "../../client/client.ts";
import { tokenContracts } from "../contracts/tokens.ts";
import { toNewToken, toTokenView } from "../token-view.ts";
import { route } from "./route.ts";

export function makeTokenRoutes(hf: Holdfast) {
  return {
    createToken: route(tokenContracts.createToken, async ({ body }) => {
      const { token, ...made } = await hf.tokens.create(toNewToken(body));
      return { status: 201, body: { ...toTokenView(made), token } };
    }),
    listTokens: route(tokenContracts.listTokens, async () => {
      return { body: { tokens: (await hf.tokens.list()).map(toTokenView) } };
    }),
    revokeToken: route(tokenContracts.revokeToken, async ({ params: { id } }) => {
      await hf.tokens.revoke(id);
      return { body: { id, revoked: true } };
    }),
  };
}
