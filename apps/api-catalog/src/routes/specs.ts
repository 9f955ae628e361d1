import type { AppRoute } from "holdfast";
import { parseDocument } from "../parse/parse-document.ts";
import { Refused } from "../refused.ts";
import { bodyOf, checkName, type DeskOf, findCatalog, findSpec, makeRoute } from "./route.ts";

export function makeSpecRoutes(deskOf: DeskOf, maxBody: number): AppRoute[] {
  return [
    makeRoute(deskOf, {
      method: "PUT",
      path: "/:catalog/specs/:spec",
      maxBody,
      async answer(asked) {
        const catalog = await findCatalog(asked);
        const name = checkName("spec", asked.request.params["spec"]);
        const text = await readText(asked.request.bytes());
        const document = await parseDocument(text);
        const { isNew, isChanged, job } = await asked.specs.put(catalog.id, name, text, document);
        const { format, title, version, operations, problems } = document;
        return Response.json(
          { name, format, title, version, operations: operations.length, problems, changed: isChanged, job },
          { status: isNew ? 201 : 200 },
        );
      },
    }),
    makeRoute(deskOf, {
      method: "PATCH",
      path: "/:catalog/specs/:spec",
      async answer(asked) {
        const { catalog, name } = await findSpec(asked);
        const to = checkName("spec", (await bodyOf(asked))["name"]);
        if (to !== name) await asked.specs.rename(catalog, name, to);
        return { name: to };
      },
    }),
    makeRoute(deskOf, {
      method: "DELETE",
      path: "/:catalog/specs/:spec",
      async answer(asked) {
        const { catalog, name } = await findSpec(asked);
        return { deleted: await asked.specs.remove(catalog, name) };
      },
    }),
  ];
}

async function readText(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces));
  } catch {
    throw new Refused(422, "DOCUMENT_UNREADABLE", "The document is not UTF-8.", "Send it as UTF-8.");
  }
}
