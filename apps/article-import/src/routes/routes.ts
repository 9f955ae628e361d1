// Everything the page asks for. Who calls is an owner: that of the token, or the one person of a server without owners.
import type { AppRequest, AppRoute, Batch, Caller, Holdfast } from "holdfast";
import type { Desk } from "../app.ts";
import { KIND } from "../kind-name.ts";
import { makeActRoutes } from "./act.ts";
import { makeCreateRoutes } from "./create.ts";
import { makeLookRoutes } from "./look.ts";
import { makePickupRoutes } from "./pickup.ts";

/** Of whoever shows a token that is bound to no owner, or none. */
const ONE_PERSON = "me";

export interface Asked extends Desk {
  owner: string;
  request: AppRequest;
}

export type DeskOf = (hf: Holdfast) => Desk;

export function makeRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    ...makeCreateRoutes(deskOf),
    ...makeLookRoutes(deskOf),
    ...makeActRoutes(deskOf),
    ...makePickupRoutes(deskOf),
  ];
}

export interface RouteInput {
  method: AppRoute["method"];
  /** After /article-import. */
  path: `/${string}`;
  role?: AppRoute["role"];
  maxBody?: number;
  answer(asked: Asked): unknown;
}

export function makeRoute(deskOf: DeskOf, { method, path, role, maxBody, answer }: RouteInput): AppRoute {
  return {
    method,
    path: `/article-import${path}`,
    auth: "token",
    scope: "owner",
    ...(role !== undefined && { role }),
    ...(maxBody !== undefined && { maxBody }),
    handle: (request) => answer({ ...deskOf(request.hf), owner: ownerOf(request.caller), request }),
  };
}

const ownerOf = (caller: Caller | null): string => caller?.owner ?? ONE_PERSON;

/** Somebody else's import, and one of another kind, are the same as none. */
export async function findImport({ hf, owner, request }: Asked): Promise<Batch | undefined> {
  const { id = "" } = request.params;
  if (!/^[0-9a-f-]{36}$/i.test(id)) return undefined;
  const batch = await hf.batches.get(id.toLowerCase());
  return batch && batch.owner === owner && batch.kind === KIND ? batch : undefined;
}

export async function bodyOf({ request }: Asked): Promise<Record<string, unknown>> {
  const body = await request.json();
  return body !== null && typeof body === "object" && !Array.isArray(body) ? (body as Record<string, unknown>) : {};
}

export function refuse(status: number, code: string, message: string, hint: string): Response {
  return Response.json({ error: { code: `ARTICLES_${code}`, message, hint } }, { status });
}

export const noImport = (): Response =>
  refuse(404, "IMPORT_UNKNOWN", "There is no such import.", "It may have been deleted; go back to the list.");
