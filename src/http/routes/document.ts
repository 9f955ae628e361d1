// /api/v1/openapi.json: made once, when somebody first asks.
import { documentContracts } from "../contracts/document.ts";
import { openApiDocument } from "../openapi.ts";
import { route } from "./route.ts";

export function makeDocumentRoutes(version: string) {
  let document: Record<string, unknown> | undefined;
  return {
    openApi: route(documentContracts.openApi, async () => ({ body: (document ??= openApiDocument(version)) })),
  };
}
